/* executor/compare/candidates.c - see compare/candidates.h. */
#include "executor/compare/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double wanted_coverage = 0.95;

void ghp_candidates_order(int round, int n, int *order)
{
    for (int i = 0; i < n; i++) {
        int place = round % 2 == 0 ? i : n - 1 - i;

        order[place] = (i + round / 2) % n;
    }
}

double ghp_candidates_quantile(const double *ascending, int n, double q)
{
    double at = q * (n - 1);
    int below = (int)at;

    if (below + 1 >= n) return ascending[n - 1];
    return ascending[below] + (at - below) * (ascending[below + 1] - ascending[below]);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The greatest k whose interval covers enough, 0 for none. */
static int rank_of_interval(int n, double *coverage)
{
    double term = ldexp(1, -n), below = 0; /* P(X = k), P(X < k) */
    int k = 0;

    *coverage = 0;
    for (int i = 0; 2 * i < n; i++) {
        below += term;
        if (1 - 2 * below < wanted_coverage) break;
        k = i + 1;
        *coverage = 1 - 2 * below;
        term *= (double)(n - i) / (double)(i + 1);
    }
    return k;
}

struct ghp_interval ghp_candidates_interval(const double *values, int n)
{
    double sorted[GHP_CANDIDATES_ROUNDS];
    struct ghp_interval interval = {.low = NAN, .high = NAN};
    int k = rank_of_interval(n, &interval.coverage);

    GHP_ASSERT(n >= 1 && n <= GHP_CANDIDATES_ROUNDS);
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    interval.median = ghp_candidates_quantile(sorted, n, 0.5);
    if (k == 0) return interval;
    interval.low = sorted[k - 1];
    interval.high = sorted[n - k];
    return interval;
}

/* One contestant's seconds by another's, round by round. */
static struct ghp_interval ratio_of(const struct ghp_contest *c, int one, int other)
{
    double ratios[GHP_CANDIDATES_ROUNDS];

    for (int r = 0; r < c->rounds; r++)
        ratios[r] = c->seconds[r * c->n + one] / c->seconds[r * c->n + other];
    return ghp_candidates_interval(ratios, c->rounds);
}

static void stand(const struct ghp_contest *c, int i)
{
    struct ghp_standing *s = &c->standings[i];
    double seconds[GHP_CANDIDATES_ROUNDS];
    double range;

    for (int r = 0; r < c->rounds; r++)
        seconds[r] = c->seconds[r * c->n + i];
    qsort(seconds, (size_t)c->rounds, sizeof *seconds, by_value);
    s->measured_s = ghp_candidates_quantile(seconds, c->rounds, 0.5);
    range = ghp_candidates_quantile(seconds, c->rounds, 0.75) -
            ghp_candidates_quantile(seconds, c->rounds, 0.25);
    s->spread = s->measured_s > 0 ? range / s->measured_s : 0;
    s->ratio = ratio_of(c, i, 0);
}

void ghp_candidates_evaluate(struct ghp_contest *c)
{
    GHP_ASSERT(c->n >= 1 && c->rounds >= 1 && c->rounds <= GHP_CANDIDATES_ROUNDS);
    c->winner = 0;
    for (int i = 0; i < c->n; i++) {
        stand(c, i);
        if (c->standings[i].measured_s < c->standings[c->winner].measured_s) c->winner = i;
    }
    c->certain = true;
    for (int i = 0; i < c->n; i++)
        if (i != c->winner && !(ratio_of(c, i, c->winner).low > 1)) c->certain = false;
}
