/* executor/backend/cpu/regression.c - the loss of outputs that are to be numbers, each with a label of its own.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "core/model/precision.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

/* Error and slope of d, which `delta` bends: of SQUARED it never does, of ABSOLUTE always.
 *
 *     |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2), times `factor` */
struct curve {
    enum ghp_error error;
    float delta, factor;
};

static struct curve curve_of(const struct ghp_loss *loss)
{
    bool smooth = loss->error == GHP_ERROR_SMOOTH_L1;

    return (struct curve){loss->error, (float)loss->delta, smooth ? (float)(1 / loss->delta) : 1};
}

static double error_of(struct curve by, double d)
{
    double delta = (double)by.delta, size = fabs(d);

    if (by.error == GHP_ERROR_SQUARED) return d * d;
    if (by.error == GHP_ERROR_ABSOLUTE) return size;
    return (size <= delta ? d * d / 2 : delta * (size - delta / 2)) * (double)by.factor;
}

static float slope_of(struct curve by, float d)
{
    float sign = d > 0 ? 1.0f : d < 0 ? -1.0f : 0.0f;

    if (by.error == GHP_ERROR_SQUARED) return 2 * d;
    if (by.error == GHP_ERROR_ABSOLUTE) return sign;
    return (fabsf(d) <= by.delta ? d : by.delta * sign) * by.factor;
}

#define BODY "executor/backend/cpu/regression.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_regression[] = {
    {GHP_OP_REGRESSION, GHP_PASS_FORWARD, "loop",
     GHP_CPU_KERNEL_EACH(forward, ghp_cpu_kernel_add_metrics), ghp_cpu_kernel_metric_bytes},
    {GHP_OP_REGRESSION, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(backward_data, NULL),
     NULL},
    {.name = NULL}};

#else /* the bodies, for each precision (cpu/precisions.h) */

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    int64_t all = ghp_local_labels(local);
    int64_t counted = local->n > 0 ? all / local->n * args->valid_samples : 0;
    struct ghp_range at = ghp_part_range(part, all, 1);
    const SCALAR *x = args->at.x[0];
    struct curve curve = curve_of(&local->loss);
    double *sum = ghp_cpu_kernel_part_metrics(args, part.index);
    double loss = 0, absolute = 0;

    memmove((SCALAR *)args->at.y + at.first, x + at.first, (size_t)(at.end - at.first) * sizeof *x);
    if (at.end > counted) at.end = counted;
    for (int64_t i = at.first; i < at.end; i++) {
        double d = (double)GET(x[i]) - (double)ghp_label_number(args->at.labels[i]);

        loss += error_of(curve, d);
        absolute += fabs(d);
    }
    sum[GHP_METRIC_LOSS] = loss;
    sum[GHP_METRIC_CORRECT] = absolute;
    sum[GHP_METRIC_SAMPLES] = at.end > at.first ? (double)(at.end - at.first) : 0;
}

static void KERNEL(backward_data)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_labels(local), 1);
    struct curve curve = curve_of(&local->loss);
    float scale = (float)args->loss_scale;
    const SCALAR *y = args->at.y;
    SCALAR *dx = args->at.dx[0];

    for (int64_t i = at.first; i < at.end; i++)
        dx[i] = PUT(scale * slope_of(curve, GET(y[i]) - ghp_label_number(args->at.labels[i])));
}

#endif
