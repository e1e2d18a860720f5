/* executor/backend/reference/regression.c - the loss of outputs that are to be numbers: y is x, dx the derivative of the
 * error of each output times loss_scale. The metrics have the sum of errors and of |x - label|. An output whose label is
 * NaN is left out. */
#include "core/model/precision.h"
#include "executor/backend/reference/reference.h"

#include <math.h>
#include <string.h>

/* of: with the delta of the last two. */
static double error(const struct ghp_loss *of, double d)
{
    double bent = fabs(d) <= of->delta ? d * d / 2 : of->delta * (fabs(d) - of->delta / 2);

    switch (of->error) {
    case GHP_ERROR_SQUARED: return d * d;
    case GHP_ERROR_ABSOLUTE: return fabs(d);
    case GHP_ERROR_HUBER: return bent;
    default: return bent / of->delta;
    }
}

static double slope(const struct ghp_loss *of, double d)
{
    double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
    double bent = fabs(d) <= of->delta ? d : of->delta * sign;

    switch (of->error) {
    case GHP_ERROR_SQUARED: return 2 * d;
    case GHP_ERROR_ABSOLUTE: return sign;
    case GHP_ERROR_HUBER: return bent;
    default: return bent / of->delta;
    }
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t all = ghp_local_losses(local);
    const double *x = args->at.x[0];

    memmove(args->at.y, x, (size_t)all * sizeof *x);
    for (int64_t i = 0; i < all / local->n * args->valid_samples; i++) {
        double label = (double)ghp_label_number(args->at.labels[ghp_reference_label(local, i)]);
        double d = x[i] - label;

        if (!isnan(label)) ghp_reference_add_metrics(local, args, i, error(&local->loss, d), fabs(d));
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t all = ghp_local_losses(local);
    const double *y = args->at.y;
    double *dx = args->at.dx[0];

    for (int64_t i = 0; i < all; i++) {
        double label = (double)ghp_label_number(args->at.labels[ghp_reference_label(local, i)]);

        dx[i] = isnan(label) ? 0.0
                             : args->loss_scale * ghp_reference_output_weight(local, args, i) *
                                   slope(&local->loss, y[i] - label);
    }
}

const struct ghp_reference_kernel ghp_reference_regression[] = {
    {GHP_OP_REGRESSION, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_REGRESSION, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_Y, GHP_REFERENCE_DX,
     NULL},
    {.run = NULL}};
