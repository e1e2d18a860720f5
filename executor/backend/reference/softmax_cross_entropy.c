/* executor/backend/reference/softmax_cross_entropy.c - the loss: y = softmax(x); -log y[label] and whether the label's
 * is the greatest are added to the metrics. dx = (y - 1 at the label) loss_scale. A row is a position of a sample;
 * where its label is negative it is left out, and dx is 0. */
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
    int64_t classes = local->c, rows = ghp_reference_pixels(local);

    for (int64_t n = 0; n < rows; n++) {
        const double *x = (const double *)args->at.x[0] + n * classes;
        double *y = (double *)args->at.y + n * classes, sum = 0.0;
        int64_t best = greatest_of(x, classes);

        for (int64_t i = 0; i < classes; i++)
            sum += exp(x[i] - x[best]);
        int32_t label = n < args->valid_samples * local->h ? args->at.labels[n] : -1;
        if (label >= 0) {
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
    int64_t classes = local->c, rows = ghp_reference_pixels(local);
    const double *y = args->at.y;
    double *dx = args->at.dx[0];

    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < classes; i++) {
            int32_t label = args->at.labels[n];
            double target = i == label ? 1.0 : 0.0;

            dx[n * classes + i] =
                label < 0 ? 0.0 : (y[n * classes + i] - target) * args->loss_scale;
        }
}

const struct ghp_reference_kernel ghp_reference_softmax_cross_entropy[] = {
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_Y, GHP_REFERENCE_DX,
     NULL},
    {.run = NULL},
};
