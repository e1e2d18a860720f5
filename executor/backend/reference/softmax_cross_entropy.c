/* executor/backend/reference/softmax_cross_entropy.c - the loss: y = softmax(x); -log y[label] and whether the label's
 * is the greatest are added to the metrics. dx = (y - target) loss_scale; the target is 1 at the label, or with
 * `smoothing` s of K classes 1 - s there and s / K more at each; its loss is then the mean of -log y by it. Classes
 * may have weights, which loss and dx of their labels' rows are multiplied by. A row is a position of a sample; if
 * its label is negative it is left out, and dx is 0. If it has a second label, both have their parts of what a label
 * has more than every class. Rows of several outputs count by their output's weight, and hits are those of the first.
 *
 * Where classes are divided, x and y are a part of each row, STATS writes what enum ghp_row says of it, and the forward
 * pass puts together what all parts said. Columns after the last class are padding: no pass reads them, y and dx are 0
 * there. */
#include "executor/backend/reference/reference.h"

#include <math.h>
#include <string.h>

struct target {          /* of the classes of a row */
    double label, every; /* what the label has more than every class */
    int64_t second;      /* label; -1: none */
    double second_label; /* what it has more than every class */
};

static struct target target_of(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args, int64_t row)
{
    struct ghp_second_label second = {0, 0};
    double label = 1 - local->loss.smoothing;

    if (args->at.seconds != NULL) second = args->at.seconds[ghp_reference_label(local, row)];
    return (struct target){label * (1 - second.weight),
                           local->loss.smoothing / (double)args->global_channels,
                           second.weight > 0 ? second.label : -1, label * second.weight};
}

/* The weight of the label's class; label >= 0. */
static double weight_of(const struct ghp_kernel_arguments *args, int32_t label)
{
    return args->class_weights != NULL ? args->class_weights[label] : 1.0;
}

/* Writes what enum ghp_row says of a row of n logits x; label < 0 or >= n: it is not among them. */
static void say(const double *x, int64_t n, int64_t label, struct target target,
                double row[GHP_ROW_COUNT])
{
    int64_t greatest = 0;

    memset(row, 0, GHP_ROW_COUNT * sizeof *row);
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[greatest]) greatest = i; /* of equals the first */
    row[GHP_ROW_MAX] = n > 0 ? x[greatest] : -INFINITY;
    for (int64_t i = 0; i < n; i++)
        row[GHP_ROW_SUM] += exp(x[i] - x[greatest]);
    for (int64_t i = 0; target.every > 0 && i < n; i++)
        row[GHP_ROW_LABEL] += target.every * x[i];
    if (label < 0 || label >= n) return;
    row[GHP_ROW_LABEL] += target.label * x[label];
    if (target.second >= 0) row[GHP_ROW_LABEL] += target.second_label * x[target.second];
    row[GHP_ROW_CORRECT] = greatest == label ? 1.0 : 0.0;
}

/* Classes among the columns. */
static int64_t classes_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t left = args->global_channels - args->first_channel;

    return left < 0 ? 0 : left < local->c ? left : local->c;
}

static void stats(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t rows = ghp_reference_pixels(local), own = args->first_channel / local->c;

    memset(args->at.stats, 0, (size_t)ghp_local_stats_bytes(local));
    for (int64_t n = 0; n < rows; n++)
        say((const double *)args->at.x[0] + n * local->c, classes_of(local, args),
            args->at.labels[n] - args->first_channel, target_of(local, args, n),
            args->at.stats + (own * rows + n) * GHP_ROW_COUNT);
}

/* What all parts say of row n. */
static void put_together(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         int64_t n, double row[GHP_ROW_COUNT])
{
    int64_t rows = ghp_reference_pixels(local);
    int greatest = 0;

    memset(row, 0, GHP_ROW_COUNT * sizeof *row);
#define PART(part, what) args->at.stats[((part)*rows + n) * GHP_ROW_COUNT + (what)]
    for (int part = 1; part < local->parts; part++)
        if (PART(part, GHP_ROW_MAX) > PART(greatest, GHP_ROW_MAX)) greatest = part;
    row[GHP_ROW_MAX] = PART(greatest, GHP_ROW_MAX);
    row[GHP_ROW_CORRECT] = PART(greatest, GHP_ROW_CORRECT);
    for (int part = 0; part < local->parts; part++) {
        row[GHP_ROW_SUM] +=
            PART(part, GHP_ROW_SUM) * exp(PART(part, GHP_ROW_MAX) - row[GHP_ROW_MAX]);
        row[GHP_ROW_LABEL] += PART(part, GHP_ROW_LABEL);
    }
#undef PART
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t classes = classes_of(local, args), rows = ghp_reference_pixels(local);

    for (int64_t n = 0; n < rows; n++) {
        const double *x = (const double *)args->at.x[0] + n * local->c;
        double *y = (double *)args->at.y + n * local->c, row[GHP_ROW_COUNT];
        int32_t label = n < args->valid_samples * local->h
                            ? args->at.labels[ghp_reference_label(local, n)]
                            : -1;

        if (local->parts > 0)
            put_together(local, args, n, row);
        else
            say(x, classes, label, target_of(local, args, n), row);
        if (label >= 0) {
            double loss = log(row[GHP_ROW_SUM]) - (row[GHP_ROW_LABEL] - row[GHP_ROW_MAX]);

            if (args->class_weights != NULL) loss *= weight_of(args, label) / args->mean_weight;
            ghp_reference_add_metrics(local, args, n, loss, row[GHP_ROW_CORRECT]);
        }
        for (int64_t i = 0; i < local->c; i++)
            y[i] = i < classes ? exp(x[i] - row[GHP_ROW_MAX]) / row[GHP_ROW_SUM] : 0.0;
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t rows = ghp_reference_pixels(local), classes = classes_of(local, args);
    const double *y = args->at.y;
    double *dx = args->at.dx[0];

    for (int64_t n = 0; n < rows; n++) {
        struct target of = target_of(local, args, n);
        int32_t label = args->at.labels[ghp_reference_label(local, n)];
        double scale = args->loss_scale * ghp_reference_output_weight(local, args, n);

        for (int64_t i = 0; i < local->c; i++) {
            bool pads = i >= classes;
            double target = of.every;

            if (args->first_channel + i == label) target += of.label;
            if (args->first_channel + i == of.second) target += of.second_label;
            dx[n * local->c + i] = label < 0 || pads ? 0.0
                                                     : (y[n * local->c + i] - target) *
                                                           (scale * weight_of(args, label));
        }
    }
}

const struct ghp_reference_kernel ghp_reference_softmax_cross_entropy[] = {
    {GHP_OP_SOFTMAX_CE, GHP_PASS_STATS, stats, GHP_REFERENCE_X, 0, NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_Y, GHP_REFERENCE_DX,
     NULL},
    {.run = NULL},
};
