/* executor/backend/reference/margin_losses.c - losses of outputs with a target of 1 or -1 each: hinge and squared_error.
 * y is x; dx is the derivative times loss_scale. A row is a position of a sample; where its label is negative it is left
 * out, and dx is 0. */
#include "executor/backend/reference/reference.h"

#include <math.h>
#include <string.h>

static double target(const struct ghp_local *local, int32_t label, int64_t i)
{
    if (local->c == 1) return label > 0 ? 1.0 : -1.0;
    return i == label ? 1.0 : -1.0;
}

static bool is_right(const struct ghp_local *local, const double *x, int32_t label)
{
    int64_t greatest = 0;

    if (local->c == 1) return (x[0] > 0) == (label > 0);
    for (int64_t i = 1; i < local->c; i++)
        if (x[i] > x[greatest]) greatest = i; /* of equals the first */
    return greatest == label;
}

static double loss(enum ghp_op op, double x, double t)
{
    return op == GHP_OP_HINGE ? fmax(0, 1 - t * x) : 0.5 * (x - t) * (x - t);
}

static double slope(enum ghp_op op, double x, double t)
{
    if (op == GHP_OP_HINGE) return t * x < 1 ? -t : 0.0;
    return x - t;
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t rows = ghp_reference_pixels(local);

    for (int64_t n = 0; n < rows; n++) {
        const double *x = (const double *)args->at.x[0] + n * local->c;
        int32_t label = n < args->valid_samples * local->h ? args->at.labels[n] : -1;

        memmove((double *)args->at.y + n * local->c, x, (size_t)local->c * sizeof *x);
        if (label < 0) continue;
        for (int64_t i = 0; i < local->c; i++)
            args->at.metrics[GHP_METRIC_LOSS] += loss(local->op, x[i], target(local, label, i));
        args->at.metrics[GHP_METRIC_CORRECT] += is_right(local, x, label) ? 1.0 : 0.0;
        args->at.metrics[GHP_METRIC_SAMPLES] += 1.0;
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t rows = ghp_reference_pixels(local);
    const double *y = args->at.y;
    double *dx = args->at.dx[0];

    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < local->c; i++) {
            int32_t label = args->at.labels[n];

            dx[n * local->c + i] = label < 0
                                       ? 0.0
                                       : args->loss_scale * slope(local->op, y[n * local->c + i],
                                                                  target(local, label, i));
        }
}

#define PASSES(op)                                                                                 \
    {op, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},                       \
    {                                                                                              \
        op, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_Y, GHP_REFERENCE_DX, NULL         \
    }

const struct ghp_reference_kernel ghp_reference_margin_losses[] = {
    PASSES(GHP_OP_HINGE), PASSES(GHP_OP_SQUARED_ERROR), {.run = NULL}};
