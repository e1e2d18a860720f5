/* executor/backend/cpu/softmax.c - the loss, softmax_cross_entropy.
 *
 * Of a sequence there are many rows, one a position, and often many classes: exponentials are then of floats and
 * without branches, so that loops become vectors, and their sum is in double. Of images there is one row a sample, and
 * exponentials are the C library's in double.
 *
 * ghp-options: -O3 -ffp-contract=fast */
#ifndef KERNEL
#include "core/model/precision.h"
#include "executor/backend/cpu/exponential.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

/* A part's metrics, in scratch. */
static double *part_metrics(const struct ghp_kernel_arguments *args, int part)
{
    char *base = args->at.scratch;
    return (double *)(void *)(base + part * ghp_align(GHP_METRIC_COUNT * (int64_t)sizeof(double)));
}

static int64_t metric_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)local;
    (void)element_bytes;
    return parts * ghp_align(GHP_METRIC_COUNT * (int64_t)sizeof(double));
}

/* Metrics of all parts, in part order; precision does not enter. */
static void softmax_after(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          struct ghp_share share)
{
    (void)local;
    for (int part = 0; part < share.parts; part++)
        for (int i = 0; i < GHP_METRIC_COUNT; i++)
            args->at.metrics[i] += part_metrics(args, part)[i];
}

#define BODY "executor/backend/cpu/softmax.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_softmax[] = {
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, "loop",
     GHP_CPU_KERNEL_EACH(softmax_forward, softmax_after), metric_sums},
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

/* Probabilities of one sample; returns -log p of the label. */
static double KERNEL(softmax_row)(int64_t classes, const SCALAR *x, SCALAR *y, int64_t label)
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
    double loss = log(sum) - ((double)GET(x[label]) - (double)greatest);
    for (int64_t i = 0; i < classes; i++) {
        float e = ROUNDS ? (float)exp((double)GET(x[i]) - (double)greatest) : GET(y[i]);
        y[i] = PUT(e * scale);
    }
    return loss;
}

/* The same of one position. */
static double KERNEL(position_row)(int64_t classes, const SCALAR *x, SCALAR *y, int64_t label)
{
    float greatest = GET(x[0]);
    double sum = 0.0;
#pragma omp simd reduction(max : greatest)
    for (int64_t i = 1; i < classes; i++)
        greatest = GET(x[i]) > greatest ? GET(x[i]) : greatest;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < classes; i++)
        sum += (double)ghp_exponential(GET(x[i]) - greatest);
    float scale = (float)(1.0 / sum);
    double loss = log(sum) - ((double)GET(x[label]) - (double)greatest);
#pragma omp simd
    for (int64_t i = 0; i < classes; i++)
        y[i] = PUT(ghp_exponential(GET(x[i]) - greatest) * scale);
    return loss;
}

static void KERNEL(softmax_forward)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->h, 1);
    int64_t classes = local->c;
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
    double *sum = part_metrics(args, share.part);
    for (int i = 0; i < GHP_METRIC_COUNT; i++)
        sum[i] = 0.0;
    for (int64_t row = rows.first; row < rows.end; row++) {
        int64_t label = row < args->valid_samples * local->h ? args->at.labels[row] : -1;
        const SCALAR *logits = x + row * classes;
        SCALAR *to = y + row * classes;
        int64_t at = label < 0 ? 0 : label;
        double loss = local->h > 1 ? KERNEL(position_row)(classes, logits, to, at)
                                   : KERNEL(softmax_row)(classes, logits, to, at);
        if (label < 0) continue;
        sum[GHP_METRIC_LOSS] += loss;
        sum[GHP_METRIC_CORRECT] += KERNEL(is_greatest)(classes, logits, label) ? 1.0 : 0.0;
        sum[GHP_METRIC_SAMPLES] += 1.0;
    }
}

/* The label's own: y - 1, or where y is rounded minus the sum of the others, which keeps its digits. */
static float KERNEL(softmax_label)(const struct ghp_local *local, const SCALAR *y, int64_t label)
{
    float others = 0;
    double sum = 0.0;
    if (!ROUNDS) return GET(y[label]) - 1;
    if (local->h > 1) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < local->c; i++)
            sum += (double)(i == label ? 0 : GET(y[i]));
        return (float)-sum;
    }
    for (int64_t i = 0; i < local->c; i++)
        others += i == label ? 0 : GET(y[i]);
    return -others;
}

static void KERNEL(softmax_data)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->h, 1);
    int64_t classes = local->c;
    float scale = (float)args->loss_scale;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *y = (const SCALAR *)args->at.y + row * classes;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * classes;
        int64_t label = args->at.labels[row];
        if (label < 0) {
            memset(dx, 0, (size_t)classes * sizeof *dx);
            continue;
        }
        float own = KERNEL(softmax_label)(local, y, label);
#pragma omp simd
        for (int64_t i = 0; i < classes; i++)
            dx[i] = PUT(GET(y[i]) * scale);
        dx[label] = PUT(own * scale);
    }
}

#endif
