/* executor/backend/reference/position_norm.c - layer_norm, rms_norm and softmax: the channels of each sample
 * and pixel.
 *
 * Saved: the inverse deviation of each row, then, of layer_norm, their means. */
#include "executor/backend/reference/reference.h"

#include <math.h>

static bool is_centred(const struct ghp_local *local)
{
    return local->op == GHP_OP_LAYER_NORM;
}

/* One a pixel, or one for each of its heads. */
static int64_t rows_of(const struct ghp_local *local)
{
    return ghp_reference_pixels(local) * (local->c / ghp_local_head(local));
}

static double mean_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                      int64_t row)
{
    const double *saved = args->at.saved;

    return is_centred(local) ? saved[rows_of(local) + row] : 0.0;
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    double *y = args->at.y, *saved = args->at.saved;
    const double *w = args->at.w[0];
    int64_t c = ghp_local_head(local), rows = rows_of(local);

    for (int64_t row = 0; row < rows; row++) {
        const double *x = (const double *)args->at.x[0] + row * c;
        double mean = 0.0, square = 0.0;

        for (int64_t i = 0; is_centred(local) && i < c; i++)
            mean += x[i] / (double)c;
        for (int64_t i = 0; i < c; i++)
            square += (x[i] - mean) * (x[i] - mean) / (double)c;
        double inverse = 1.0 / sqrt(square + local->norm.epsilon);
        for (int64_t i = 0; i < c; i++)
            y[row * c + i] = (x[i] - mean) * inverse * (w[i] + local->norm.offset);
        if (saved == NULL) continue;
        saved[row] = inverse;
        if (is_centred(local)) saved[rows + row] = mean;
    }
}

/* With g = dy w and z = (x - mean) inverse: dx = inverse (g - mean of g - z mean of g z), without the mean of g where
 * x is not centred. */
static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *w = args->at.w[0], *inverses = args->at.saved;
    double *dx = args->at.dx[0];
    int64_t c = ghp_local_head(local);

    for (int64_t row = 0; row < rows_of(local); row++) {
        const double *x = (const double *)args->at.x[0] + row * c;
        const double *dy = (const double *)args->at.dy + row * c;
        double mean = mean_of(local, args, row), inverse = inverses[row], a = 0.0, b = 0.0;

        for (int64_t i = 0; i < c; i++) {
            if (is_centred(local)) a += dy[i] * (w[i] + local->norm.offset) / (double)c;
            b += dy[i] * (w[i] + local->norm.offset) * (x[i] - mean) * inverse / (double)c;
        }
        for (int64_t i = 0; i < c; i++)
            dx[row * c + i] =
                inverse * (dy[i] * (w[i] + local->norm.offset) - a - (x[i] - mean) * inverse * b);
    }
}

static void backward_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *dy = args->at.dy, *inverses = args->at.saved;
    double *dw = args->at.dw[0];
    int64_t c = ghp_local_head(local);

    for (int64_t i = 0; i < c; i++) {
        dw[i] = 0.0;
        for (int64_t row = 0; row < rows_of(local); row++)
            dw[i] += dy[row * c + i] * (x[row * c + i] - mean_of(local, args, row)) * inverses[row];
    }
}

/* ---- softmax ---- */

static void softmax_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++) {
        const double *x = (const double *)args->at.x[0] + pixel * local->c;
        double *y = (double *)args->at.y + pixel * local->c, greatest = x[0], sum = 0.0;

        for (int64_t i = 1; i < local->c; i++)
            greatest = fmax(greatest, x[i]);
        for (int64_t i = 0; i < local->c; i++)
            sum += exp(x[i] - greatest);
        for (int64_t i = 0; i < local->c; i++)
            y[i] = exp(x[i] - greatest) / sum;
    }
}

/* dx = y (dy - sum of dy y) */
static void softmax_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++) {
        const double *y = (const double *)args->at.y + pixel * local->c,
                     *dy = (const double *)args->at.dy + pixel * local->c;
        double *dx = (double *)args->at.dx[0] + pixel * local->c, sum = 0.0;

        for (int64_t i = 0; i < local->c; i++)
            sum += dy[i] * y[i];
        for (int64_t i = 0; i < local->c; i++)
            dx[i] = y[i] * (dy[i] - sum);
    }
}

#define PASSES(op)                                                                                 \
    {op,                                                                                           \
     GHP_PASS_FORWARD,                                                                             \
     forward,                                                                                      \
     GHP_REFERENCE_X | GHP_REFERENCE_W,                                                            \
     GHP_REFERENCE_Y | GHP_REFERENCE_SAVED,                                                        \
     NULL},                                                                                        \
        {op,                                                                                       \
         GHP_PASS_BACKWARD_DATA,                                                                   \
         backward_data,                                                                            \
         GHP_REFERENCE_X | GHP_REFERENCE_W | GHP_REFERENCE_DY | GHP_REFERENCE_SAVED,               \
         GHP_REFERENCE_DX,                                                                         \
         NULL},                                                                                    \
    {                                                                                              \
        op, GHP_PASS_BACKWARD_WEIGHT, backward_weight,                                             \
            GHP_REFERENCE_X | GHP_REFERENCE_DY | GHP_REFERENCE_SAVED, GHP_REFERENCE_DW, NULL       \
    }

const struct ghp_reference_kernel ghp_reference_position_norm[] = {
    PASSES(GHP_OP_LAYER_NORM),
    PASSES(GHP_OP_RMS_NORM),
    {GHP_OP_SOFTMAX, GHP_PASS_FORWARD, softmax_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_SOFTMAX, GHP_PASS_BACKWARD_DATA, softmax_backward, GHP_REFERENCE_Y | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {.run = NULL}};
