/* profiler/worklist/samples.c - see worklist/samples.h. */
#include "profiler/worklist/samples.h"

#include "executor/compare/candidates.h"

#include <stdlib.h>
#include <string.h>

static const double fences = 1.5; /* times the distance of the quartiles: Tukey's */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A step adds operations up, and means are what adds; samples far beyond the quartiles were disturbed. */
static void sum_up(const double *ascending_values, int n, double fence_low, double fence_high,
                   struct ghp_timed *timed)
{
    double sum = 0, least = 0, most = 0;
    int inside = 0;

    for (int i = 0; i < n; i++) {
        double value = ascending_values[i];

        if (value < fence_low || value > fence_high) continue;
        if (inside++ == 0) least = value;
        most = value;
        sum += value;
    }
    timed->seconds = sum / inside;
    timed->drift = most > 0 ? (most - least) / (most + least) : 0;
}

struct ghp_timed ghp_samples_summary(const struct ghp_samples *samples)
{
    struct ghp_timed timed = {.samples = samples->n};
    double values[GHP_MAX_SAMPLES], low, high, fence;

    if (samples->n == 0) return timed;
    memcpy(values, samples->values, sizeof values);
    qsort(values, (size_t)samples->n, sizeof *values, ascending);
    low = ghp_candidates_quantile(values, samples->n, 0.25);
    high = ghp_candidates_quantile(values, samples->n, 0.75);
    fence = fences * (high - low);
    sum_up(values, samples->n, low - fence, high + fence, &timed);
    if (timed.seconds > 0) timed.spread = (high - low) / timed.seconds;
    return timed;
}
