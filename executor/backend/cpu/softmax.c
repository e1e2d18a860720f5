/* executor/backend/cpu/softmax.c - softmax, and the loss, softmax_cross_entropy.
 *
 * A sequence has many rows, one for each position, and often many classes: exponentials are then of floats and without
 * branches, so that loops become vectors, and their sum is in double. An image has one row, and exponentials are the C
 * library's in double.
 *
 * If classes are divided, columns after the last class are padding: no pass reads them, y and dx are 0 there.
 *
 * ghp-options: -O3 -ffp-contract=fast */
#ifndef KERNEL
#include "executor/backend/cpu/exponential.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

enum { LANES = 64 }; /* maxima side by side */

double *ghp_cpu_kernel_part_metrics(const struct ghp_kernel_arguments *args, int part)
{
    char *base = args->at.scratch;
    return (double *)(void *)(base + part * ghp_align(GHP_METRIC_COUNT * (int64_t)sizeof(double)));
}

int64_t ghp_cpu_kernel_metric_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)local;
    (void)element_bytes;
    return parts * ghp_align(GHP_METRIC_COUNT * (int64_t)sizeof(double));
}

/* Metrics of all parts, in part order; precision does not enter. */
void ghp_cpu_kernel_add_metrics(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    (void)local;
    for (int p = 0; p < part.count; p++)
        for (int i = 0; i < GHP_METRIC_COUNT; i++)
            args->at.metrics[i] += ghp_cpu_kernel_part_metrics(args, p)[i];
}

/* Classes among this worker's columns. */
static int64_t classes_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t left = args->global_channels - args->first_channel;
    return left < 0 ? 0 : left < local->c ? left : local->c;
}

struct row { /* what all parts together say of one */
    double greatest, sum, label;
    bool correct;
};

struct target {          /* of a class, with label smoothing */
    double label, every; /* what the label has more than every class */
};

static struct target target_of(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args)
{
    return (struct target){1 - local->loss.smoothing,
                           local->loss.smoothing / (double)args->global_channels};
}

/* What a row's loss is multiplied by in the metrics, whose mean is by the weights of the labels' classes. */
static double weight_of(const struct ghp_kernel_arguments *args, int32_t label)
{
    return args->class_weights != NULL ? args->class_weights[label] / args->mean_weight : 1;
}

/* The row's second label, of whole rows; NULL: it has none. */
static const struct ghp_second_label *second_of(const struct ghp_kernel_arguments *args,
                                                int64_t row)
{
    const struct ghp_second_label *second = args->at.seconds;
    return second != NULL && second[row].weight > 0 ? &second[row] : NULL;
}

static struct row row_of(const struct ghp_local *local, const double *stats, int64_t n)
{
    int64_t step = local->n * local->h * GHP_ROW_COUNT;
    const double *first = stats + n * GHP_ROW_COUNT, *best = first;
    struct row row = {0};
    for (int part = 1; part < local->parts; part++)
        if (first[part * step + GHP_ROW_MAX] > best[GHP_ROW_MAX]) best = first + part * step;
    row.greatest = best[GHP_ROW_MAX];
    row.correct = best[GHP_ROW_CORRECT] > 0;
    for (int part = 0; part < local->parts; part++) {
        const double *of = first + part * step;
        row.sum += of[GHP_ROW_SUM] * exp(of[GHP_ROW_MAX] - row.greatest);
        row.label += of[GHP_ROW_LABEL];
    }
    return row;
}

#define BODY "executor/backend/cpu/softmax.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_softmax[] = {
    {GHP_OP_SOFTMAX, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(plain_forward, NULL), NULL},
    {GHP_OP_SOFTMAX, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(plain_data, NULL), NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_STATS, "loop", GHP_CPU_KERNEL_EACH(part_stats, NULL), NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, "loop",
     GHP_CPU_KERNEL_EACH(softmax_forward, ghp_cpu_kernel_add_metrics), ghp_cpu_kernel_metric_bytes},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(softmax_data, NULL),
     NULL},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). */

/* Whether the label's is the first of the greatest. */
static bool KERNEL(is_greatest)(int64_t classes, const SCALAR *x, int64_t label)
{
    float own = GET(x[label]);
    int greater = 0;
#pragma omp simd reduction(| : greater)
    for (int64_t i = 0; i < label; i++)
        greater |= GET(x[i]) >= own;
#pragma omp simd reduction(| : greater)
    for (int64_t i = label + 1; i < classes; i++)
        greater |= GET(x[i]) > own;
    return greater == 0;
}

static double KERNEL(sum_of)(int64_t n, const SCALAR *y)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)GET(y[i]);
    return sum;
}

/* The logits' mean by their targets; label outside of 0 .. classes - 1: it is not among them. */
static double KERNEL(targeted)(struct target target, int64_t classes, const SCALAR *x,
                               int64_t label)
{
    double own = label >= 0 && label < classes ? (double)GET(x[label]) : 0.0;
    if (!(target.every > 0)) return own;
    return target.label * own + target.every * KERNEL(sum_of)(classes, x);
}

/* Probabilities of one sample; returns the mean of -log p by the targets, `targeted` being the logits'. */
static double KERNEL(softmax_row)(int64_t classes, const SCALAR *x, SCALAR *y, double targeted)
{
    float greatest = GET(x[0]);
    for (int64_t i = 1; i < classes; i++)
        greatest = GET(x[i]) > greatest ? GET(x[i]) : greatest;
    double sum = 0.0;
    for (int64_t i = 0; i < classes; i++) {
        double e = exp((double)GET(x[i]) - (double)greatest);
        sum += e;
        if (!ROUNDS) y[i] = PUT((float)e);
    }
    float scale = (float)(1.0 / sum);
    double loss = log(sum) - (targeted - (double)greatest);
    for (int64_t i = 0; i < classes; i++) {
        float e = ROUNDS ? (float)exp((double)GET(x[i]) - (double)greatest) : GET(y[i]);
        y[i] = PUT(e * scale);
    }
    return loss;
}

static float KERNEL(greatest_of)(int64_t n, const SCALAR *x)
{
    float most[LANES];
    int64_t i = 0;
    for (int lane = 0; lane < LANES; lane++)
        most[lane] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            most[lane] = GET(x[i + lane]) > most[lane] ? GET(x[i + lane]) : most[lane];
    for (; i < n; i++)
        most[0] = GET(x[i]) > most[0] ? GET(x[i]) : most[0];
    for (int lane = 1; lane < LANES; lane++)
        most[0] = most[lane] > most[0] ? most[lane] : most[0];
    return most[0];
}

/* The greatest of a position's; returns the sum of exp(x - greatest). */
static double KERNEL(position_sum)(int64_t classes, const SCALAR *x, float *greatest)
{
    float most = KERNEL(greatest_of)(classes, x);
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < classes; i++)
        sum += (double)ghp_exponential(GET(x[i]) - most);
    *greatest = most;
    return sum;
}

static void KERNEL(position_put)(int64_t classes, const SCALAR *x, SCALAR *y, float greatest,
                                 float scale)
{
#pragma omp simd
    for (int64_t i = 0; i < classes; i++)
        y[i] = PUT(ghp_exponential(GET(x[i]) - greatest) * scale);
}

/* The same as softmax_row of one position. */
static double KERNEL(position_row)(int64_t classes, const SCALAR *x, SCALAR *y, double targeted)
{
    float greatest;
    double sum = KERNEL(position_sum)(classes, x, &greatest);
    double loss = log(sum) - (targeted - (double)greatest);
    KERNEL(position_put)(classes, x, y, greatest, (float)(1.0 / sum));
    return loss;
}

/* What this worker's part of each row says; of all other parts zeros. */
static void KERNEL(part_stats)(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h, 1);
    int64_t classes = classes_of(local, args), step = local->n * local->h * GHP_ROW_COUNT;
    struct target target = target_of(local, args);
    for (int64_t n = rows.first; n < rows.end; n++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + n * local->c;
        double *row = args->at.stats + n * GHP_ROW_COUNT;
        int64_t label = args->at.labels[n] - args->first_channel;
        float greatest;
        for (int p = 0; p < local->parts; p++)
            memset(row + p * step, 0, GHP_ROW_COUNT * sizeof *row);
        row += args->first_channel / local->c * step;
        row[GHP_ROW_SUM] = KERNEL(position_sum)(classes, x, &greatest);
        row[GHP_ROW_MAX] = (double)greatest;
        row[GHP_ROW_LABEL] = KERNEL(targeted)(target, classes, x, label);
        if (label < 0 || label >= classes) continue;
        row[GHP_ROW_CORRECT] = KERNEL(is_greatest)(classes, x, label) ? 1.0 : 0.0;
    }
}

static void KERNEL(part_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_range rows,
                                 double *sum)
{
    int64_t classes = classes_of(local, args);
    for (int64_t n = rows.first; n < rows.end; n++) {
        SCALAR *y = (SCALAR *)args->at.y + n * local->c;
        struct row row = row_of(local, args->at.stats, n);
        KERNEL(position_put)
        (classes, (const SCALAR *)args->at.x[0] + n * local->c, y, (float)row.greatest,
         (float)(1.0 / row.sum));
        memset(y + classes, 0, (size_t)(local->c - classes) * sizeof *y);
        if (n >= args->valid_samples * local->h || args->at.labels[n] < 0) continue;
        sum[GHP_METRIC_LOSS] +=
            (log(row.sum) - (row.label - row.greatest)) * weight_of(args, args->at.labels[n]);
        sum[GHP_METRIC_CORRECT] += row.correct ? 1.0 : 0.0;
        sum[GHP_METRIC_SAMPLES] += 1.0;
    }
}

static void KERNEL(softmax_forward)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h, 1);
    int64_t columns = local->c, classes = classes_of(local, args);
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
    struct target target = target_of(local, args);
    double *sum = ghp_cpu_kernel_part_metrics(args, part.index);
    for (int i = 0; i < GHP_METRIC_COUNT; i++)
        sum[i] = 0.0;
    if (local->parts > 0) {
        KERNEL(part_forward)(local, args, rows, sum);
        return;
    }
    for (int64_t row = rows.first; row < rows.end; row++) {
        int64_t of = ghp_cpu_loss_labels(local, row);
        int64_t label = row < args->valid_samples * local->h ? args->at.labels[of] : -1;
        const SCALAR *logits = x + row * columns;
        SCALAR *to = y + row * columns;
        double targeted = KERNEL(targeted)(target, classes, logits, label);
        const struct ghp_second_label *second = label >= 0 ? second_of(args, of) : NULL;
        if (second != NULL)
            targeted += target.label * second->weight *
                        ((double)GET(logits[second->label]) - (double)GET(logits[label]));
        double loss = local->h > 1 ? KERNEL(position_row)(classes, logits, to, targeted)
                                   : KERNEL(softmax_row)(classes, logits, to, targeted);
        memset(to + classes, 0, (size_t)(columns - classes) * sizeof *to);
        if (label < 0) continue;
        sum[GHP_METRIC_LOSS] +=
            loss * weight_of(args, (int32_t)label) * ghp_cpu_loss_weight(local, args, row);
        if (ghp_cpu_loss_output(local, row) != args->counted_output) continue;
        sum[GHP_METRIC_CORRECT] += KERNEL(is_greatest)(classes, logits, label) ? 1.0 : 0.0;
        sum[GHP_METRIC_SAMPLES] += 1.0;
    }
}

/* The label's own: y - 1, or, if y is rounded, minus the sum of the others, which keeps its digits. If classes are
 * divided it is what all parts say, which is not rounded, unless they say the smoothed target's. */
static float KERNEL(softmax_label)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, int64_t n,
                                   int64_t label)
{
    const SCALAR *y = (const SCALAR *)args->at.y + n * local->c;
    float others = 0;
    if (local->parts > 0 && local->loss.smoothing > 0) return GET(y[label]) - 1;
    if (local->parts > 0) {
        struct row row = row_of(local, args->at.stats, n);
        return (float)(exp(row.label - row.greatest) / row.sum - 1.0);
    }
    if (!ROUNDS) return GET(y[label]) - 1;
    if (local->h > 1)
        return (float)-(KERNEL(sum_of)(label, y) +
                        KERNEL(sum_of)(local->c - label - 1, y + label + 1));
    for (int64_t i = 0; i < local->c; i++)
        others += i == label ? 0 : GET(y[i]);
    return -others;
}

static void KERNEL(softmax_data)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h, 1);
    int64_t columns = local->c, classes = classes_of(local, args);
    struct target target = target_of(local, args);
    float every = (float)target.every;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *y = (const SCALAR *)args->at.y + row * columns;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * columns;
        int64_t of = ghp_cpu_loss_labels(local, row);
        int64_t label = args->at.labels[of] - args->first_channel;
        if (args->at.labels[of] < 0) {
            memset(dx, 0, (size_t)columns * sizeof *dx);
            continue;
        }
        bool has_label = label >= 0 && label < classes;
        double weight = ghp_cpu_loss_weight(local, args, row);
        if (args->class_weights != NULL) weight *= args->class_weights[args->at.labels[of]];
        float scale = (float)(args->loss_scale * weight);
        float own = has_label ? KERNEL(softmax_label)(local, args, row, label) : 0;
        own += (float)(1 - target.label - target.every);
        const struct ghp_second_label *second = second_of(args, of);
        float moved = second != NULL ? (float)(target.label * second->weight) : 0;
        float other = second != NULL ? GET(y[second->label]) - every - moved : 0; /* dx may be y */
#pragma omp simd
        for (int64_t i = 0; i < classes; i++)
            dx[i] = PUT((GET(y[i]) - every) * scale);
        memset(dx + classes, 0, (size_t)(columns - classes) * sizeof *dx);
        if (has_label) dx[label] = PUT((own + moved) * scale);
        if (second != NULL) dx[second->label] = PUT(other * scale);
    }
}

/* ---- softmax by itself ---- */

static void KERNEL(plain_forward)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h * local->w, 1);
    int64_t c = local->c;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * c;
        float greatest;
        double sum = KERNEL(position_sum)(c, x, &greatest);
        KERNEL(position_put)(c, x, (SCALAR *)args->at.y + row * c, greatest, (float)(1 / sum));
    }
}

/* dx = y (dy - sum of dy y) */
static void KERNEL(plain_data)(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h * local->w, 1);
    int64_t c = local->c;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *y = (const SCALAR *)args->at.y + row * c;
        const SCALAR *dy = (const SCALAR *)args->at.dy + row * c;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * c;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < c; i++)
            sum += (double)(GET(dy[i]) * GET(y[i]));
        float mean = (float)sum;
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            dx[i] = PUT(GET(y[i]) * (GET(dy[i]) - mean));
    }
}

#endif
