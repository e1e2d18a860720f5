/* executor/backend/cpu/regression.c - the loss of outputs that are to be numbers, each with a label of its own; NaN is
 * left out.
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

/* The end of the losses from `first` on, before `end`, that are of one output in a row: all, if there is one. */
static int64_t row_end(const struct ghp_local *local, int64_t first, int64_t end)
{
    int64_t next = (first / local->c + 1) * local->c;

    return local->loss.outputs > 1 && next < end ? next : end;
}

/* The labels of the row that loss i is in; label i - first is that of loss i. */
static const int32_t *labels_of(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, int64_t first)
{
    int64_t row = first / local->c;

    return args->at.labels + first + (ghp_cpu_loss_labels(local, row) - row) * local->c;
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
    int64_t all = ghp_local_losses(local);
    int64_t counted = local->n > 0 ? all / local->n * args->valid_samples : 0;
    struct ghp_range own = ghp_part_range(part, all, 1);
    const SCALAR *x = args->at.x[0];
    struct curve curve = curve_of(&local->loss);
    double *sum = ghp_cpu_kernel_part_metrics(args, part.index);

    memmove((SCALAR *)args->at.y + own.first, x + own.first,
            (size_t)(own.end - own.first) * sizeof *x);
    for (int i = 0; i < GHP_METRIC_COUNT; i++)
        sum[i] = 0;
    if (own.end > counted) own.end = counted;
    for (int64_t at = own.first, next; at < own.end; at = next) {
        const int32_t *labels = labels_of(local, args, at);
        double loss = 0, absolute = 0, samples = 0;

        next = row_end(local, at, own.end);
        for (int64_t i = at; i < next; i++) {
            float label = ghp_label_number(labels[i - at]);
            double d = isnan(label) ? 0 : (double)GET(x[i]) - (double)label;

            samples += isnan(label) ? 0 : 1;
            loss += error_of(curve, d);
            absolute += fabs(d);
        }
        sum[GHP_METRIC_LOSS] += loss * ghp_cpu_loss_weight(local, args, at / local->c);
        if (ghp_cpu_loss_output(local, at / local->c) != args->counted_output) continue;
        sum[GHP_METRIC_CORRECT] += absolute;
        sum[GHP_METRIC_SAMPLES] += samples;
    }
}

static void KERNEL(backward_data)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range own = ghp_part_range(part, ghp_local_losses(local), 1);
    struct curve curve = curve_of(&local->loss);
    const SCALAR *y = args->at.y;
    SCALAR *dx = args->at.dx[0];

    for (int64_t at = own.first, next; at < own.end; at = next) {
        const int32_t *labels = labels_of(local, args, at);
        float scale = (float)(args->loss_scale * ghp_cpu_loss_weight(local, args, at / local->c));

        next = row_end(local, at, own.end);
        for (int64_t i = at; i < next; i++) {
            float label = ghp_label_number(labels[i - at]);

            dx[i] = PUT(isnan(label) ? 0 : scale * slope_of(curve, GET(y[i]) - label));
        }
    }
}

#endif
