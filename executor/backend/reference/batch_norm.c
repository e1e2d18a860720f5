/* executor/backend/reference/batch_norm.c - batch norm, in passes between which workers reduce their sums.
 *
 *     STATS            stats = sum of d, sum of d d                  d = x - running mean, which all workers share
 *     FORWARD          y = gamma xhat + beta                         xhat = (x - mean) / sqrt(variance + epsilon)
 *     BACKWARD_STATS   stats = sum of dy, sum of dy xhat
 *     BACKWARD_WEIGHT  dgamma = sum of dy xhat, dbeta = sum of dy
 *     BACKWARD_DATA    dx = gamma inverse (dy - mean of dy - xhat mean of dy xhat)
 *
 * Sums and means are over `stat_count` values of a channel. Saved: each channel's mean, then each channel's inverse
 * deviation. */
#include "executor/backend/reference/reference.h"

#include <math.h>
#include <string.h>

static void stats(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *running_mean = args->at.state[0];
    double *sum = args->at.stats, *square = sum + local->c;

    memset(sum, 0, (size_t)(2 * local->c) * sizeof *sum);
    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int64_t c = 0; c < local->c; c++) {
            double d = x[pixel * local->c + c] - running_mean[c];

            sum[c] += d;
            square[c] += d * d;
        }
}

/* Moves a running statistic by `by`. If other samples of the batch have statistics of their own, it notes these
 * samples' part of the way separately. */
static void move(const struct ghp_kernel_arguments *args, int state, int64_t c, double by)
{
    double *running = args->at.state[state], *delta = args->at.stats_delta[state];

    if (delta == NULL)
        running[c] += by;
    else
        delta[c] = (args->stats_delta_adds ? delta[c] : 0.0) + args->stats_delta_share * by;
}

/* Mean and variance of a channel in training, which the running statistics are mixed with. */
static void train_channel(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          int64_t c, double *mean, double *variance)
{
    const double *running_mean = args->at.state[0], *running_variance = args->at.state[1];
    const double count = (double)args->stat_count, mix = local->norm.momentum;
    const double offset = args->at.stats[c] / count;

    *mean = running_mean[c] + offset;
    *variance = fmax(args->at.stats[local->c + c] / count - offset * offset, 0.0);
    double unbiased = count > 1.0 ? *variance * count / (count - 1.0) : *variance;
    move(args, 0, c, mix * offset);
    move(args, 1, c, mix * (unbiased - running_variance[c]));
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *gamma = args->at.w[0], *beta = args->at.w[1];
    double *y = args->at.y, *saved = args->at.saved;

    for (int64_t c = 0; c < local->c; c++) {
        double mean = ((const double *)args->at.state[0])[c];
        double variance = ((const double *)args->at.state[1])[c];

        if (args->training) train_channel(local, args, c, &mean, &variance);
        double inverse = 1.0 / sqrt(variance + local->norm.epsilon);
        if (args->training) {
            saved[c] = mean;
            saved[local->c + c] = inverse;
        }
        for (int64_t i = c; i < ghp_local_in_elements(local); i += local->c)
            y[i] = gamma[c] * ((x[i] - mean) * inverse) + beta[c];
    }
}

static void backward_stats(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *dy = args->at.dy;
    const double *mean = args->at.saved, *inverse = mean + local->c;
    double *sum = args->at.stats, *product = sum + local->c;

    memset(sum, 0, (size_t)(2 * local->c) * sizeof *sum);
    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int64_t c = 0; c < local->c; c++) {
            int64_t i = pixel * local->c + c;

            sum[c] += dy[i];
            product[c] += dy[i] * ((x[i] - mean[c]) * inverse[c]);
        }
}

static void backward_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    double *dgamma = args->at.dw[0], *dbeta = args->at.dw[1];

    for (int64_t c = 0; c < local->c; c++) {
        dgamma[c] = args->at.stats[local->c + c];
        dbeta[c] = args->at.stats[c];
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *dy = args->at.dy, *gamma = args->at.w[0];
    const double *mean = args->at.saved, *inverse = mean + local->c;
    const double *sum = args->at.stats, *product = sum + local->c;
    const double count = (double)args->stat_count;
    double *dx = args->at.dx[0];

    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int64_t c = 0; c < local->c; c++) {
            int64_t i = pixel * local->c + c;
            double xhat = (x[i] - mean[c]) * inverse[c];

            dx[i] = gamma[c] * inverse[c] * (dy[i] - sum[c] / count - xhat * (product[c] / count));
        }
}

const struct ghp_reference_kernel ghp_reference_batch_norm[] = {
    {GHP_OP_BATCH_NORM, GHP_PASS_STATS, stats, GHP_REFERENCE_X | GHP_REFERENCE_STATE, 0, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, forward,
     GHP_REFERENCE_X | GHP_REFERENCE_W | GHP_REFERENCE_STATE | GHP_REFERENCE_SAVED,
     GHP_REFERENCE_Y | GHP_REFERENCE_STATE | GHP_REFERENCE_SAVED, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_STATS, backward_stats,
     GHP_REFERENCE_X | GHP_REFERENCE_DY | GHP_REFERENCE_SAVED, 0, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_WEIGHT, backward_weight, 0, GHP_REFERENCE_DW, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, backward_data,
     GHP_REFERENCE_X | GHP_REFERENCE_DY | GHP_REFERENCE_W | GHP_REFERENCE_SAVED, GHP_REFERENCE_DX,
     NULL},
    {.run = NULL},
};
