/* executor/backend/reference/softmax_cross_entropy.c - the loss: y = softmax(x); -log y[label] and whether the label's
 * is the greatest are added to the metrics. dx = (y - 1 at the label) loss_scale. */
#include "executor/backend/reference/reference.h"

#include <math.h>

/* The first of the greatest. */
static int64_t greatest_of(const double *x, int64_t n)
{
    int64_t greatest = 0;

    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[greatest]) greatest = i;
    return greatest;
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t classes = local->c * local->h * local->w;

    for (int64_t n = 0; n < local->n; n++) {
        const double *x = (const double *)args->at.x[0] + n * classes;
        double *y = (double *)args->at.y + n * classes, sum = 0.0;
        int64_t best = greatest_of(x, classes);

        for (int64_t i = 0; i < classes; i++)
            sum += exp(x[i] - x[best]);
        if (n < args->valid_samples) {
            int32_t label = args->at.labels[n];

            args->at.metrics[GHP_METRIC_LOSS] += log(sum) - (x[label] - x[best]);
            args->at.metrics[GHP_METRIC_CORRECT] += best == label ? 1.0 : 0.0;
            args->at.metrics[GHP_METRIC_SAMPLES] += 1.0;
        }
        for (int64_t i = 0; i < classes; i++)
            y[i] = exp(x[i] - x[best]) / sum;
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t classes = local->c * local->h * local->w;
    const double *y = args->at.y;
    double *dx = args->at.dx[0];

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t i = 0; i < classes; i++) {
            double target = i == args->at.labels[n] ? 1.0 : 0.0;

            dx[n * classes + i] = (y[n * classes + i] - target) * args->loss_scale;
        }
}

const struct ghp_reference_kernel ghp_reference_softmax_cross_entropy[] = {
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_Y, GHP_REFERENCE_DX,
     NULL},
    {.run = NULL},
};
