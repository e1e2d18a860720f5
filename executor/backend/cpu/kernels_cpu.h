/* executor/backend/cpu/kernels_cpu.h - ghp's CPU kernels: what the oneDNN backend computes itself.
 *
 * A *loop* is one pass of one operation in plain C, for float and bfloat16: what is bound by memory anyway, and what
 * the library refuses. Loops are cut into parts by rows or channels; sums that cross parts go through scratch and are
 * added in part order, so results repeat bit for bit for a given number of parts.
 *
 * To add one: a row in the table of the file that it belongs to, or of a new file, which is named nowhere else
 * (cmake/GhpTables.cmake); its body in the same file (which includes itself once for each precision:
 * precisions.h) or in the *_body.h next to it.
 * tests/executor/backend/onednn/test_onednn.c compares it with the reference's. */
#ifndef GHP_EXECUTOR_BACKEND_CPU_KERNELS_CPU_H
#define GHP_EXECUTOR_BACKEND_CPU_KERNELS_CPU_H

#include "executor/backend/backend_private.h"
#include "executor/platform/parallel.h"

enum ghp_cpu_precision { GHP_PRECISION_FLOAT, GHP_PRECISION_BF16, GHP_PRECISION_COUNT };

typedef void ghp_cpu_kernel_fn(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args, struct ghp_part part);

struct ghp_cpu_kernel_stages { /* part of before and after: {0, parts} */
    ghp_cpu_kernel_fn *before; /* once, or NULL */
    ghp_cpu_kernel_fn *run;    /* for each part */
    ghp_cpu_kernel_fn *after;  /* once, or NULL */
};

struct ghp_cpu_kernel {
    enum ghp_op op;
    enum ghp_pass pass;
    const char *name; /* NULL ends a table */
    struct ghp_cpu_kernel_stages stages[GHP_PRECISION_COUNT];
    int64_t (*scratch_bytes)(const struct ghp_local *local, int parts,
                             int element_bytes); /* NULL: 0 */
};

/* A part of a loop that is built again for each way, whose constants decide what is left of it. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A loop over a tile: unrolled, or sums would not stay in registers. */
#ifdef __clang__
#define UNROLLED(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)
#else
#define UNROLLED(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif

/* The stages of a loop that has nothing to do before, from its bodies in all precisions; after: the same for all, or
 * NULL. */
#define GHP_CPU_KERNEL_EACH(run, after)                                                            \
    {                                                                                              \
        {NULL, run##_float, after},                                                                \
        {                                                                                          \
            NULL, run##_bf16, after                                                                \
        }                                                                                          \
    }

/* The rows of all files in this folder, NULL-terminated; the build writes it (cmake/GhpTables.cmake). */
extern const struct ghp_cpu_kernel *const ghp_cpu_kernel_tables[];

/* The loops of losses that one of several outputs may have. */
extern const struct ghp_cpu_kernel ghp_cpu_kernels_softmax[], ghp_cpu_kernels_margin_losses[],
    ghp_cpu_kernels_regression[];

/* A batch norm on its running statistics, on tensors in blocks of channels. */
extern const struct ghp_cpu_kernel ghp_cpu_kernels_frozen_blocks[];

/* The loop of a pass; NULL if the operation has no such pass. */
const struct ghp_cpu_kernel *ghp_cpu_kernel_find(enum ghp_op op, enum ghp_pass pass);
/* A batch norm's, on tensors in these formats, with what they say is fused; NULL: there is none. Backward with a ReLU
 * w is read too. */
const struct ghp_cpu_kernel *ghp_cpu_kernel_norm(enum ghp_pass pass, struct ghp_kernel_spec spec);
extern const struct ghp_cpu_kernel ghp_cpu_kernel_add_relu; /* an addition with the ReLU after it */
extern const struct ghp_cpu_kernel
    ghp_cpu_kernel_max_relu; /* a max pool forward, with the ReLU before it */
/* Linear layers over few samples, in float and with `fast` numerics (cpu/small_batch.c): whether there are loops for
 * that operation, and the one of a pass. */
#define GHP_CPU_KERNEL_SMALL_BATCH "small_batch"
bool ghp_cpu_kernel_is_small_batch(const struct ghp_backend *backend,
                                   const struct ghp_local *local);
const struct ghp_cpu_kernel *ghp_cpu_kernel_small_batch(enum ghp_pass pass);
/* The same of weight gradients of channel-wise convolutions (cpu/convolution/depthwise.c), on plain tensors. */
#define GHP_CPU_KERNEL_DEPTHWISE "depthwise"
bool ghp_cpu_kernel_is_depthwise(const struct ghp_backend *backend, const struct ghp_local *local,
                                 enum ghp_pass pass, struct ghp_kernel_spec spec);
extern const struct ghp_cpu_kernel ghp_cpu_kernel_depthwise;

/* Losses, in cpu/softmax.c: a part's metrics, in scratch, whose bytes these are; and all parts' added up in
 * order. */
double *ghp_cpu_kernel_part_metrics(const struct ghp_kernel_arguments *args, int part);
int64_t ghp_cpu_kernel_metric_bytes(const struct ghp_local *local, int parts, int element_bytes);
void ghp_cpu_kernel_add_metrics(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part);

/* The output that a loss's row is of, if it has several: rows are [n][h / outputs][outputs]. */
static inline int ghp_cpu_loss_output(const struct ghp_local *local, int64_t row)
{
    if (local->loss.alone > 0) return local->loss.alone - 1;
    return local->loss.outputs > 1 ? (int)(row % local->loss.outputs) : 0;
}

/* The row of labels that it takes. */
static inline int64_t ghp_cpu_loss_labels(const struct ghp_local *local, int64_t row)
{
    bool shares = local->loss.outputs > 1 && !local->loss.own_labels;

    return shares ? row / local->loss.outputs : row;
}

/* What it counts. */
static inline double ghp_cpu_loss_weight(const struct ghp_local *local,
                                         const struct ghp_kernel_arguments *args, int64_t row)
{
    const double *weights =
        args->output_weights != NULL ? args->output_weights : local->loss.weights;

    return local->loss.outputs > 1 ? weights[ghp_cpu_loss_output(local, row)] : 1;
}

/* A kernel that runs a loop. Returns GHP_OK; GHP_ERR_INPUT (no such pass); GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_cpu_kernel_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, struct ghp_kernel **kernel);
enum ghp_status ghp_cpu_kernel_prepare_by(struct ghp_backend *backend,
                                          const struct ghp_local *local,
                                          const struct ghp_cpu_kernel *cpu_kernel,
                                          struct ghp_kernel **kernel);
void ghp_cpu_kernel_run(const struct ghp_kernel *kernel, const struct ghp_kernel_arguments *args);

/* Updates of all optimizers, NULL-terminated; the build writes it (cmake/GhpTables.cmake). */
extern const struct ghp_update_kernel *const ghp_cpu_updates[];

bool ghp_cpu_kernel_has_update(const struct ghp_optimizer *optimizer);
enum ghp_status ghp_cpu_kernel_update(struct ghp_backend *backend, const struct ghp_update *update);
enum ghp_status ghp_cpu_kernel_direct(struct ghp_backend *backend, const struct ghp_update *update,
                                      const struct ghp_direction_squares *squares);
enum ghp_status ghp_cpu_kernel_square(struct ghp_backend *backend,
                                      const struct ghp_square_sum *sum);
enum ghp_status ghp_cpu_kernel_accumulate(struct ghp_backend *backend, void *to, const void *from,
                                          struct ghp_buffer_extent extent);
enum ghp_status ghp_cpu_kernel_accumulate_masked(struct ghp_backend *backend,
                                                 const struct ghp_masked_sum *sum);

/* The body of this, one part of it; in cpu/elementwise.c. */
void ghp_cpu_kernel_accumulate_part(const struct ghp_masked_sum *sum, struct ghp_range range);

#endif
