/* executor/backend/reference/linear.c - linear layer: x [n][c], y [n][k], w [k][c]; n counts the positions of all
 * samples. And bias: y = x + b of the channel, whose gradient is passed on unchanged. */
#include "executor/backend/reference/reference.h"

#include <string.h>

/* y[n][k] = sum over c of x[n][c] w[k][c]; a column of w lies in scratch while it is used. */
static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t channels = local->c, rows = ghp_reference_pixels(local);
    const double *x = args->at.x[0], *w = args->at.w[0];
    double *y = args->at.y, *column = args->at.scratch;

    memset(y, 0, (size_t)(rows * local->k) * sizeof *y);
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t k = 0; k < local->k; k++)
            column[k] = w[k * channels + c];
        for (int64_t n = 0; n < rows; n++)
            ghp_reference_add_scaled(local->k, x[n * channels + c], column, y + n * local->k);
    }
}

/* dx[n][c] = sum over k of dy[n][k] w[k][c] */
static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t channels = local->c, rows = ghp_reference_pixels(local);
    const double *dy = args->at.dy, *w = args->at.w[0];
    double *dx = args->at.dx[0];

    memset(dx, 0, (size_t)(rows * channels) * sizeof *dx);
    for (int64_t k = 0; k < local->k; k++)
        for (int64_t n = 0; n < rows; n++)
            ghp_reference_add_scaled(channels, dy[n * local->k + k], w + k * channels,
                                     dx + n * channels);
}

/* dw[k][c] = sum over n of dy[n][k] x[n][c] */
static void backward_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t channels = local->c, rows = ghp_reference_pixels(local);
    const double *x = args->at.x[0], *dy = args->at.dy;
    double *dw = args->at.dw[0];

    memset(dw, 0, (size_t)(local->k * channels) * sizeof *dw);
    for (int64_t k = 0; k < local->k; k++)
        for (int64_t n = 0; n < rows; n++)
            ghp_reference_add_scaled(channels, dy[n * local->k + k], x + n * channels,
                                     dw + k * channels);
}

static int64_t outputs(const struct ghp_local *local)
{
    return local->k;
}

/* ---- bias ---- */

static void add_bias(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *b = args->at.w[0];
    double *y = args->at.y;

    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int64_t c = 0; c < local->c; c++)
            y[pixel * local->c + c] = x[pixel * local->c + c] + b[c];
}

static void sum_bias(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *db = args->at.dw[0];

    memset(db, 0, (size_t)local->c * sizeof *db);
    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int64_t c = 0; c < local->c; c++)
            db[c] += dy[pixel * local->c + c];
}

const struct ghp_reference_kernel ghp_reference_linear[] = {
    {GHP_OP_LINEAR, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X | GHP_REFERENCE_W, GHP_REFERENCE_Y,
     outputs},
    {GHP_OP_LINEAR, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_DY | GHP_REFERENCE_W,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_LINEAR, GHP_PASS_BACKWARD_WEIGHT, backward_weight, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DW, NULL},
    {GHP_OP_BIAS, GHP_PASS_FORWARD, add_bias, GHP_REFERENCE_X | GHP_REFERENCE_W, GHP_REFERENCE_Y,
     NULL},
    {GHP_OP_BIAS, GHP_PASS_BACKWARD_WEIGHT, sum_bias, GHP_REFERENCE_DY, GHP_REFERENCE_DW, NULL},
    {.run = NULL},
};
