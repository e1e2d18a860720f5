/* executor/backend/cpu/margin_losses.c - the losses hinge and squared_error: outputs with a target of 1 or -1 each.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "core/model/precision.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <string.h>

static float target(const struct ghp_local *local, int64_t label, int64_t i)
{
    return (local->c == 1 ? label > 0 : i == label) ? 1.0f : -1.0f;
}

static double loss_of(enum ghp_op op, float x, float t)
{
    double d = (double)x - (double)t, margin = 1 - (double)t * (double)x;
    if (op == GHP_OP_HINGE) return margin > 0 ? margin : 0;
    return 0.5 * d * d;
}

static float slope_of(enum ghp_op op, float x, float t)
{
    if (op == GHP_OP_HINGE) return t * x < 1 ? -t : 0;
    return x - t;
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
    PASSES(GHP_OP_HINGE), PASSES(GHP_OP_SQUARED_ERROR), {.name = NULL}};

#else /* the bodies, for each precision (cpu/precisions.h). Tensors are [rows][c], rows = n h. */

static bool KERNEL(is_right)(const struct ghp_local *local, const SCALAR *x, int64_t label)
{
    int64_t greatest = 0;
    if (local->c == 1) return (GET(x[0]) > 0) == (label > 0);
    for (int64_t i = 1; i < local->c; i++)
        greatest = GET(x[i]) > GET(x[greatest]) ? i : greatest;
    return greatest == label;
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->h, 1);
    double *sum = ghp_cpu_kernel_part_metrics(args, share.part);
    for (int i = 0; i < GHP_METRIC_COUNT; i++)
        sum[i] = 0.0;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * local->c;
        int64_t label = row < args->valid_samples * local->h ? args->at.labels[row] : -1;
        memmove((SCALAR *)args->at.y + row * local->c, x, (size_t)local->c * sizeof *x);
        if (label < 0) continue;
        for (int64_t i = 0; i < local->c; i++)
            sum[GHP_METRIC_LOSS] += loss_of(local->op, GET(x[i]), target(local, label, i));
        sum[GHP_METRIC_CORRECT] += KERNEL(is_right)(local, x, label) ? 1.0 : 0.0;
        sum[GHP_METRIC_SAMPLES] += 1.0;
    }
}

static void KERNEL(backward_data)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->h, 1);
    float scale = (float)args->loss_scale;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *y = (const SCALAR *)args->at.y + row * local->c;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * local->c;
        int64_t label = args->at.labels[row];
        for (int64_t i = 0; i < local->c; i++)
            dx[i] = PUT(
                label < 0 ? 0.0f : scale * slope_of(local->op, GET(y[i]), target(local, label, i)));
    }
}

#endif
