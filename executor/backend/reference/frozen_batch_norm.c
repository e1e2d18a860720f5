/* executor/backend/reference/frozen_batch_norm.c - a batch norm on its running statistics.
 *
 *     FORWARD        y = gamma (x - mean) / sqrt(variance + epsilon) + beta
 *     BACKWARD_DATA  dx = gamma dy / sqrt(variance + epsilon) */
#include "executor/backend/reference/reference.h"

#include <math.h>

static double scale_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       int64_t c)
{
    const double *gamma = args->at.w[0], *variance = args->at.state[1];

    return gamma[c] / sqrt(variance[c] + local->norm.epsilon);
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *beta = args->at.w[1], *mean = args->at.state[0];
    double *y = args->at.y;

    for (int64_t c = 0; c < local->c; c++) {
        double scale = scale_of(local, args, c);

        for (int64_t i = c; i < ghp_local_in_elements(local); i += local->c)
            y[i] = scale * (x[i] - mean[c]) + beta[c];
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t c = 0; c < local->c; c++) {
        double scale = scale_of(local, args, c);

        for (int64_t i = c; i < ghp_local_in_elements(local); i += local->c)
            dx[i] = scale * dy[i];
    }
}

const struct ghp_reference_kernel ghp_reference_frozen_batch_norm[] = {
    {GHP_OP_FROZEN_BATCH_NORM, GHP_PASS_FORWARD, forward,
     GHP_REFERENCE_X | GHP_REFERENCE_W | GHP_REFERENCE_STATE, GHP_REFERENCE_Y, NULL},
    {GHP_OP_FROZEN_BATCH_NORM, GHP_PASS_BACKWARD_DATA, backward_data,
     GHP_REFERENCE_DY | GHP_REFERENCE_W | GHP_REFERENCE_STATE, GHP_REFERENCE_DX, NULL},
    {.run = NULL},
};
