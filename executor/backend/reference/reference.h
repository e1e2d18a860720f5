/* executor/backend/reference/reference.h - the reference backend's kernels: one pass of one operation, by its
 * definition.
 *
 * Loops are plain and all numbers doubles: of a network in float a kernel gets copies, and what it writes is rounded
 * once, at the end (backend_reference.c). Each output's terms are added in the order of their indices. Nothing is
 * shared with the kernels of other backends, so that no mistake is in both.
 *
 * One file an operation or a small family, with one row for each pass in the table at its end. A file is named nowhere
 * else: the build finds the tables of the folder (cmake/GhpTables.cmake).
 * tests/executor/backend/reference/test_reference.c wants a row for every pass that an operation has, and holds it
 * against a definition and finite differences. */
#ifndef GHP_EXECUTOR_BACKEND_REFERENCE_REFERENCE_H
#define GHP_EXECUTOR_BACKEND_REFERENCE_REFERENCE_H

#include "executor/backend/backend_private.h"

enum ghp_reference_operand { /* tensors of numbers in struct ghp_tensors */
                             GHP_REFERENCE_X = 1,
                             GHP_REFERENCE_DX = 2,
                             GHP_REFERENCE_Y = 4,
                             GHP_REFERENCE_DY = 8,
                             GHP_REFERENCE_W = 16,
                             GHP_REFERENCE_DW = 32,
                             GHP_REFERENCE_STATE = 64, /* and stats_delta */
                             GHP_REFERENCE_SAVED = 128
};

/* args->at: those of the row's operands that are there are doubles; scratch is the row's own. */
typedef void ghp_reference_fn(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args);

struct ghp_reference_kernel {
    enum ghp_op op;
    enum ghp_pass pass;
    ghp_reference_fn *run; /* NULL ends a table */
    unsigned reads;        /* operands; also those that the pass may leave as they are */
    unsigned writes;
    int64_t (*scratch)(const struct ghp_local *local); /* [doubles]; NULL: none */
};

/* The rows of all files in this folder, NULL-terminated; the build writes it (cmake/GhpTables.cmake). */
extern const struct ghp_reference_kernel *const ghp_reference_tables[];

/* Updates of all optimizers, NULL-terminated; the build writes it (cmake/GhpTables.cmake). */
extern const struct ghp_update_kernel *const ghp_reference_updates[];

/* struct ghp_backend_ops: square, has_update, update, direct, accumulate (update.c) */
enum ghp_status ghp_reference_square(struct ghp_backend *backend, const struct ghp_square_sum *sum);
bool ghp_reference_has_update(const struct ghp_optimizer *optimizer);
enum ghp_status ghp_reference_update(struct ghp_backend *backend, const struct ghp_update *update);
enum ghp_status ghp_reference_direct(struct ghp_backend *backend, const struct ghp_update *update,
                                     const struct ghp_direction_squares *squares);
enum ghp_status ghp_reference_accumulate(struct ghp_backend *backend, void *to, const void *from,
                                         struct ghp_buffer_extent extent);

/* Number i of a tensor of floats (bytes 4) or doubles (8). */
static inline double ghp_reference_get(const void *tensor, int bytes, int64_t i)
{
    return bytes == 4 ? (double)((const float *)tensor)[i] : ((const double *)tensor)[i];
}

static inline void ghp_reference_put(void *tensor, int bytes, int64_t i, double value)
{
    if (bytes == 4)
        ((float *)tensor)[i] = (float)value;
    else
        ((double *)tensor)[i] = value;
}

/* Samples x pixels of x. */
static inline int64_t ghp_reference_pixels(const struct ghp_local *local)
{
    return local->n * local->h * local->w;
}

/* ---- losses of several outputs, whose rows are [n][h / outputs][outputs] ---- */

/* The output that loss i (ghp_local_losses) is of, and its label. */
static inline int ghp_reference_output(const struct ghp_local *local, int64_t i)
{
    bool each = ghp_op_of(local->op)->takes_numbers || local->loss.multi_label;

    if (local->loss.alone > 0) return local->loss.alone - 1;
    return local->loss.outputs > 1 ? (int)(i / (each ? local->c : 1) % local->loss.outputs) : 0;
}

static inline int64_t ghp_reference_label(const struct ghp_local *local, int64_t i)
{
    bool each = ghp_op_of(local->op)->takes_numbers || local->loss.multi_label;
    int64_t width = each ? local->c : 1;

    if (local->loss.outputs < 2 || local->loss.own_labels) return i;
    return i / width / local->loss.outputs * width + i % width;
}

/* What it counts. */
static inline double ghp_reference_output_weight(const struct ghp_local *local,
                                                 const struct ghp_kernel_arguments *args, int64_t i)
{
    const double *weights =
        args->output_weights != NULL ? args->output_weights : local->loss.weights;

    return local->loss.outputs > 1 ? weights[ghp_reference_output(local, i)] : 1;
}

/* Adds a loss, and a hit or the like of the output that is counted, to the metrics. */
static inline void ghp_reference_add_metrics(const struct ghp_local *local,
                                             const struct ghp_kernel_arguments *args, int64_t i,
                                             double loss, double correct)
{
    args->at.metrics[GHP_METRIC_LOSS] += ghp_reference_output_weight(local, args, i) * loss;
    if (ghp_reference_output(local, i) != args->counted_output) return;
    args->at.metrics[GHP_METRIC_CORRECT] += correct;
    args->at.metrics[GHP_METRIC_SAMPLES] += 1.0;
}

/* sum[i] += factor x[i], i < n; neither overlaps the other. */
static inline void ghp_reference_add_scaled(int64_t n, double factor, const double *restrict x,
                                            double *restrict sum)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * x[i];
}

/* Row of x that output row p sees at row r of its window; outside 0 .. h - 1 it is padding. */
static inline int64_t ghp_reference_row(const struct ghp_window *window, int64_t p, int64_t r)
{
    return p * window->stride_h - window->pad_top + r * window->dilation_h;
}

static inline int64_t ghp_reference_column(const struct ghp_window *window, int64_t q, int64_t s)
{
    return q * window->stride_w - window->pad_left + s * window->dilation_w;
}

/* Whether row h, column w of x is not padding. */
static inline bool ghp_reference_inside(const struct ghp_local *local, int64_t h, int64_t w)
{
    return h >= 0 && h < local->h && w >= 0 && w < local->w;
}

#endif
