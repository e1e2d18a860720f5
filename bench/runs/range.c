/* bench/runs/range.c - see range.h. */
#include "bench/runs/range.h"

#include <stdbool.h>
#include <stdlib.h>

static const double tail = 0.05, rounding = 1e-9;

static int by_ratio(const void *a, const void *b)
{
    const struct ghp_run_ratio *x = a, *y = b;

    return (x->of > y->of) - (x->of < y->of);
}

/* The ratio's weight: one for each family together. */
static double weight_of(const struct ghp_run_ratio *ratios, int n, int i, int without)
{
    int rows = 0;

    for (int j = 0; j < n; j++)
        rows += ratios[j].family == ratios[i].family;
    return ratios[i].family == without ? 0 : 1.0 / rows;
}

void ghp_run_range(struct ghp_run_ratio *ratios, int n, int without, double range[2])
{
    double all = 0, so_far = 0;
    int low = 0;

    qsort(ratios, (size_t)n, sizeof *ratios, by_ratio);
    for (int i = 0; i < n; i++)
        all += weight_of(ratios, n, i, without);
    range[0] = ratios[0].of;
    range[1] = ratios[n - 1].of;
    for (int i = 0; i < n; i++) {
        so_far += weight_of(ratios, n, i, without);
        if (low == 0 && so_far >= tail * all - rounding) {
            range[0] = ratios[i].of;
            low = 1;
        }
        if (so_far >= (1 - tail) * all - rounding) {
            range[1] = ratios[i].of;
            return;
        }
    }
}

int ghp_run_range_holds(struct ghp_run_ratio *ratios, int n, int families)
{
    int held = 0;
    bool several = false;

    for (int i = 1; i < n; i++)
        several |= ratios[i].family != ratios[0].family;
    if (!several) return -1;
    for (int f = 0; f < families; f++) {
        double range[2];

        ghp_run_range(ratios, n, f, range);
        for (int i = 0; i < n; i++)
            held += ratios[i].family == f && ratios[i].of >= range[0] && ratios[i].of <= range[1];
    }
    return held;
}
