/* executor/backend/reference/bias.c - bias: y = x + b of the channel. Its gradient passes unchanged. */
#include "executor/backend/reference/reference.h"

#include <string.h>

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *b = args->at.w[0];
    double *y = args->at.y;

    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int64_t c = 0; c < local->c; c++)
            y[pixel * local->c + c] = x[pixel * local->c + c] + b[c];
}

static void backward_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *db = args->at.dw[0];

    memset(db, 0, (size_t)local->c * sizeof *db);
    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int64_t c = 0; c < local->c; c++)
            db[c] += dy[pixel * local->c + c];
}

const struct ghp_reference_kernel ghp_reference_bias[] = {
    {GHP_OP_BIAS, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X | GHP_REFERENCE_W, GHP_REFERENCE_Y,
     NULL},
    {GHP_OP_BIAS, GHP_PASS_BACKWARD_WEIGHT, backward_weight, GHP_REFERENCE_DY, GHP_REFERENCE_DW,
     NULL},
    {.run = NULL},
};
