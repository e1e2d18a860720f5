/* executor/backend/cpu/margin_losses.c - the losses hinge, squared_error and binary_cross_entropy: outputs with a
 * target of 1 or -1 each. A row has a label; if each of its columns has its own (multi_label), each is a row here.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

static int64_t columns_of(const struct ghp_local *local)
{
    return local->loss.multi_label ? 1 : local->c;
}

static float target(int64_t columns, int64_t label, int64_t i)
{
    return (columns == 1 ? label > 0 : i == label) ? 1.0f : -1.0f;
}

/* What an output's loss counts: binary_cross_entropy is the mean over the outputs, the others are sums. */
static double weight_of(const struct ghp_local *local)
{
    return local->op == GHP_OP_BINARY_CE ? 1.0 / (double)columns_of(local) : 1.0;
}

static double loss_of(enum ghp_op op, float x, float t)
{
    double d = (double)x - (double)t, margin = 1 - (double)t * (double)x;
    if (op == GHP_OP_BINARY_CE) return (margin > 1 ? margin - 1 : 0) + log1p(exp(-fabs((double)x)));
    if (op == GHP_OP_HINGE) return margin > 0 ? margin : 0;
    return 0.5 * d * d;
}

static float slope_of(enum ghp_op op, float x, float t)
{
    if (op == GHP_OP_BINARY_CE) return -t / (1 + expf(t * x));
    if (op == GHP_OP_HINGE) return t * x < 1 ? -t : 0;
    return x - t;
}

/* With multi_label: the row of c columns, of whose outputs there may be several, and the row's place in its labels. */
static int64_t whole_row(const struct ghp_local *local, int64_t row)
{
    return local->loss.multi_label ? row / local->c : row;
}

static int64_t label_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        int64_t row)
{
    int64_t labels = ghp_cpu_loss_labels(local, whole_row(local, row));

    return args->at.labels[local->loss.multi_label ? labels * local->c + row % local->c : labels];
}

#define BODY "executor/backend/cpu/margin_losses.c"
#include "executor/backend/cpu/precisions.h"

#define PASSES(op)                                                                                 \
    {op, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(forward, ghp_cpu_kernel_add_metrics),       \
     ghp_cpu_kernel_metric_bytes},                                                                 \
    {                                                                                              \
        op, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(backward_data, NULL), NULL         \
    }

const struct ghp_cpu_kernel ghp_cpu_kernels_margin_losses[] = {
    PASSES(GHP_OP_HINGE), PASSES(GHP_OP_SQUARED_ERROR), PASSES(GHP_OP_BINARY_CE), {.name = NULL}};

#else /* the bodies, for each precision (cpu/precisions.h). Tensors are [rows][columns]. */

static bool KERNEL(is_right)(int64_t columns, const SCALAR *x, int64_t label)
{
    int64_t greatest = 0;
    if (columns == 1) return (GET(x[0]) > 0) == (label > 0);
    for (int64_t i = 1; i < columns; i++)
        greatest = GET(x[i]) > GET(x[greatest]) ? i : greatest;
    return greatest == label;
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    int64_t columns = columns_of(local), all = ghp_local_losses(local);
    struct ghp_range rows = ghp_part_range(part, all, 1);
    double *sum = ghp_cpu_kernel_part_metrics(args, part.index);
    for (int i = 0; i < GHP_METRIC_COUNT; i++)
        sum[i] = 0.0;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * columns;
        int64_t label =
            row < args->valid_samples * all / local->n ? label_of(local, args, row) : -1;
        double weight = weight_of(local) * ghp_cpu_loss_weight(local, args, whole_row(local, row));
        memmove((SCALAR *)args->at.y + row * columns, x, (size_t)columns * sizeof *x);
        if (label < 0) continue;
        for (int64_t i = 0; i < columns; i++)
            sum[GHP_METRIC_LOSS] +=
                weight * loss_of(local->op, GET(x[i]), target(columns, label, i));
        if (ghp_cpu_loss_output(local, whole_row(local, row)) > 0) continue;
        sum[GHP_METRIC_CORRECT] += KERNEL(is_right)(columns, x, label) ? 1.0 : 0.0;
        sum[GHP_METRIC_SAMPLES] += 1.0;
    }
}

static void KERNEL(backward_data)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t columns = columns_of(local);
    struct ghp_range rows = ghp_part_range(part, ghp_local_losses(local), 1);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *y = (const SCALAR *)args->at.y + row * columns;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * columns;
        int64_t label = label_of(local, args, row);
        float scale = (float)(args->loss_scale * weight_of(local) *
                              ghp_cpu_loss_weight(local, args, whole_row(local, row)));
        for (int64_t i = 0; i < columns; i++)
            dx[i] =
                PUT(label < 0 ? 0.0f
                              : scale * slope_of(local->op, GET(y[i]), target(columns, label, i)));
    }
}

#endif
