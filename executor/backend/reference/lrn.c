/* executor/backend/reference/lrn.c - local response norm over neighbouring channels of a pixel:
 *
 *     s[i] = k + alpha / size sum of x[j] x[j]       |i - j| <= size / 2; saved
 *     y[i] = x[i] s[i]^-beta
 *     dx[i] = dy[i] s[i]^-beta - 2 alpha beta / size x[i] sum of dy[j] x[j] s[j]^(-beta - 1) */
#include "executor/backend/reference/reference.h"

#include <math.h>

/* Sum of the terms of the channels about c. */
static double window_sum(const struct ghp_local *local, const double *terms, int64_t c)
{
    int64_t reach = local->norm.size / 2;
    double sum = 0.0;

    for (int64_t j = c - reach; j <= c + reach; j++)
        if (j >= 0 && j < local->c) sum += terms[j];
    return sum;
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const struct ghp_norm *norm = &local->norm;
    double *square = args->at.scratch;

    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++) {
        const double *x = (const double *)args->at.x[0] + pixel * local->c;
        double *y = (double *)args->at.y + pixel * local->c;

        for (int64_t c = 0; c < local->c; c++)
            square[c] = x[c] * x[c];
        for (int64_t c = 0; c < local->c; c++) {
            double sum = window_sum(local, square, c);
            double s = norm->k + norm->alpha / (double)norm->size * sum;

            y[c] = x[c] * pow(s, -norm->beta);
            if (args->at.saved != NULL) ((double *)args->at.saved)[pixel * local->c + c] = s;
        }
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const struct ghp_norm *norm = &local->norm;
    const double factor = 2.0 * norm->alpha * norm->beta / (double)norm->size;
    double *term = args->at.scratch;

    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++) {
        const double *x = (const double *)args->at.x[0] + pixel * local->c;
        const double *dy = (const double *)args->at.dy + pixel * local->c;
        const double *s = (const double *)args->at.saved + pixel * local->c;
        double *dx = (double *)args->at.dx[0] + pixel * local->c;

        for (int64_t c = 0; c < local->c; c++)
            term[c] = dy[c] * x[c] * pow(s[c], -norm->beta - 1.0);
        for (int64_t c = 0; c < local->c; c++)
            dx[c] = dy[c] * pow(s[c], -norm->beta) - factor * x[c] * window_sum(local, term, c);
    }
}

static int64_t channels(const struct ghp_local *local)
{
    return local->c;
}

const struct ghp_reference_kernel ghp_reference_lrn[] = {
    {GHP_OP_LRN, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y | GHP_REFERENCE_SAVED,
     channels},
    {GHP_OP_LRN, GHP_PASS_BACKWARD_DATA, backward_data,
     GHP_REFERENCE_X | GHP_REFERENCE_DY | GHP_REFERENCE_SAVED, GHP_REFERENCE_DX, channels},
    {.run = NULL},
};
