/* planner/calibration/correction.c - see correction.h. */
#include "planner/calibration/correction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double expected = 0.3, least_spread = 0.1, between_runs = 0.05; /* correction.h */
static const double alone = 0.2, beside = 0.5; /* shares up to and from which it is one or other */
static const double wide = 4;                  /* largest by smallest price that shows a line */
static const double simpler = 0.9; /* a line must leave less than this of one factor's error */
static const double most_slowdown = 10;
static const double most_queued =
    5; /* slowdown of exchanges that tell of the queue: correction.h */

enum { MOST_PAIRS = 1 << 16 }; /* of which a slope is the median */

struct sample {
    double value, weight;
};

struct point { /* an observation as a line sees it */
    const struct ghp_observation *o;
    double price_s, own_s;
};

struct sample_list {
    const struct ghp_observations *all;
    const bool *counts;
    struct sample *items, *deviations; /* room for all pairs */
    int n;
    bool *seen;           /* [n_runs] whose samples are in the list */
    struct point *points; /* room for each observation */
    double *log_alone;    /* [observation that is a part's first]: see fill_alone */
};

static int by_value(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    return (x->value > y->value) - (x->value < y->value);
}

/* Sorts; 0 where there is nothing. */
static double weighted_median(struct sample *items, int n)
{
    double sum = 0, below = 0;

    qsort(items, (size_t)n, sizeof *items, by_value);
    for (int i = 0; i < n; ++i)
        sum += items[i].weight;
    for (int i = 0; i < n; ++i) {
        below += items[i].weight;
        if (2 * below > sum) return items[i].value;
        if (2 * below == sum) return (items[i].value + items[i + 1 < n ? i + 1 : i].value) / 2;
    }
    return 0;
}

static double kish(const struct sample *items, int n)
{
    double sum = 0, squares = 0;

    for (int i = 0; i < n; ++i) {
        sum += items[i].weight;
        squares += items[i].weight * items[i].weight;
    }
    return squares > 0 ? sum * sum / squares : 1;
}

static int runs_seen(const struct sample_list *list)
{
    int n = 0;

    for (int i = 0; i < list->all->n_runs; ++i)
        n += list->seen[i];
    return n > 0 ? n : 1;
}

/* How much of a logarithm to keep: the list's values are logarithms of ratios around `middle`. */
static double kept_part(const struct sample_list *list, double middle)
{
    double spread;

    for (int i = 0; i < list->n; ++i)
        list->deviations[i] =
            (struct sample){fabs(list->items[i].value - middle), list->items[i].weight};
    spread = fmax(least_spread, 1.4826 * weighted_median(list->deviations, list->n));
    return expected * expected /
           (expected * expected + spread * spread / kish(list->items, list->n) +
            between_runs * between_runs / runs_seen(list));
}

static void begin(struct sample_list *list)
{
    list->n = 0;
    memset(list->seen, 0, (size_t)list->all->n_runs * sizeof *list->seen);
}

static void add(struct sample_list *list, const struct ghp_observation *o, double value,
                double weight)
{
    list->items[list->n++] = (struct sample){value, weight};
    list->seen[o->run] = true;
}

/* ---- slowdowns beside the other stream ---- */

static double share_sum(const struct ghp_observation *o)
{
    return o->shares[0] + o->shares[1] + o->shares[2];
}

/* Whether an observation counts and is of the part whose first observation is `first`. */
static bool is_of(const struct sample_list *list, const struct ghp_observation *o, int first)
{
    return list->counts[o->run] && o->first == first;
}

/* log(measured / predicted) of each part where it ran alone; NAN where it never did. */
static void fill_alone(struct sample_list *list)
{
    const struct ghp_observation *items = list->all->items;

    for (int first = 0; first < list->all->n; ++first) {
        if (items[first].first != first) continue;
        begin(list);
        for (int i = first; i < list->all->n; ++i)
            if (is_of(list, &items[i], first) && share_sum(&items[i]) <= alone)
                add(list, &items[i], log(items[i].own_s / (items[i].price_s + items[i].copy_s)),
                    items[i].price_s);
        list->log_alone[first] = list->n > 0 ? weighted_median(list->items, list->n) : NAN;
    }
}

/* Seconds lost while beside the other stream give the slowdown s: q = 1 / (1 - share (1 - 1/s)). */
static double slowdown_of(double q, double share)
{
    double rest = 1 - (1 - 1 / q) / share;

    return rest < 1 / most_slowdown ? most_slowdown : fmax(1, 1 / rest);
}

/* Estimates slowdown `kind` (0 .. 2) against the profile's. */
static struct ghp_correction slowdown(struct sample_list *list, int kind,
                                      const struct ghp_overlap *overlap)
{
    struct ghp_correction c = {.part = {(enum ghp_part_kind)(GHP_PART_BESIDE_COMPUTE + kind), 0, 0},
                               .factor = 1};
    double middle, most = 1;

    begin(list);
    for (int i = 0; i < list->all->n; ++i) {
        const struct ghp_observation *o = &list->all->items[i];
        double before = ghp_observation_slowed(o, overlap, kind);
        double base = list->log_alone[o->first];

        if (!list->counts[o->run] || o->shares[kind] < beside || isnan(base)) continue;
        if (kind == 2 && overlap->queue_s > 0 && (o->beside || before > most_queued)) continue;
        add(list, o,
            log(slowdown_of(o->own_s / ((o->price_s + o->copy_s) * exp(base)), o->shares[kind]) /
                before),
            o->price_s);
        most = fmax(most, before);
        c.weight_s += o->price_s;
    }
    c.n = list->n;
    if (list->n == 0) return c;
    middle = weighted_median(list->items, list->n);
    c.factor = fmax(1 / most, exp(middle * kept_part(list, middle)));
    return c;
}

void ghp_correction_slow(const struct ghp_correction *c, struct ghp_overlap *overlap)
{
    if (c->part.kind == GHP_PART_BESIDE_COMPUTE)
        overlap->compute = fmax(1, overlap->compute * c->factor);
    if (c->part.kind == GHP_PART_BESIDE_COMM) {
        overlap->comm = fmax(1, overlap->comm * c->factor);
        if (overlap->comm_long > 0) overlap->comm_long = fmax(1, overlap->comm_long * c->factor);
    }
    if (c->part.kind == GHP_PART_BESIDE_LINK) {
        overlap->link = fmax(1, overlap->link * c->factor);
        overlap->queue_s *= c->factor;
    }
}

/* ---- one part ---- */

struct line {
    double factor, extra_s;
};

/* Measured seconds of the part alone: slowdown and copying taken out. */
static double part_s(const struct ghp_observation *o, const struct ghp_overlap *overlap,
                     double copy_factor)
{
    double own_s = o->own_s / ghp_observation_slowdown(o, overlap) - copy_factor * o->copy_s;

    return fmax(own_s, 1e-3 * o->own_s); /* copying slower than the whole: nearly nothing left */
}

static struct line one_factor(struct sample_list *list, const struct point *points, int n)
{
    double middle;

    begin(list);
    for (int i = 0; i < n; ++i)
        add(list, points[i].o, log(points[i].own_s / points[i].price_s), points[i].price_s);
    middle = weighted_median(list->items, list->n);
    return (struct line){exp(middle * kept_part(list, middle)), 0};
}

static double misfit(const struct point *points, int n, struct line line)
{
    double sum = 0;

    for (int i = 0; i < n; ++i)
        sum += fabs(
            log(points[i].own_s / fmax(line.factor * points[i].price_s + line.extra_s, 1e-12)));
    return sum;
}

/* Slope: the median of those of all pairs of prices at least a factor 2 apart, weighted by the difference (after Theil
 * and Sen); seconds a call: the median of what then is left, small messages counting most. */
static struct line two_parts(struct sample_list *list, const struct point *points, int n)
{
    int step = (int)((int64_t)n * n / MOST_PAIRS) + 1; /* of many pairs every so manieth */
    double slope, kept, least_s = INFINITY;
    struct line line;

    begin(list);
    for (int i = 0; i < n; ++i)
        for (int j = i % step; j < n; j += step) {
            double apart_s = points[j].price_s - points[i].price_s;

            if (points[j].price_s < 2 * points[i].price_s) continue;
            add(list, points[j].o, (points[j].own_s - points[i].own_s) / apart_s, apart_s);
        }
    slope = fmax(0.1, weighted_median(list->items, list->n));
    begin(list);
    for (int i = 0; i < n; ++i) {
        add(list, points[i].o, points[i].own_s - slope * points[i].price_s, 1 / points[i].price_s);
        least_s = fmin(least_s, points[i].price_s);
    }
    line.extra_s = weighted_median(list->items, list->n);
    begin(list);
    for (int i = 0; i < n; ++i)
        add(list, points[i].o,
            log(points[i].own_s /
                fmax(slope * points[i].price_s + line.extra_s, 0.1 * slope * points[i].price_s)),
            points[i].price_s);
    kept = kept_part(list, 0);
    line.factor = exp(kept * log(slope));
    line.extra_s = fmax(kept * line.extra_s, -line.factor * least_s / 2);
    return line;
}

/* Whether the prices are far enough apart, at several sizes, to tell seconds a call from a factor. */
static bool shows_line(const struct point *points, int n)
{
    double least = INFINITY, most = 0, middle = 0;

    for (int i = 0; i < n; ++i) {
        least = fmin(least, points[i].price_s);
        most = fmax(most, points[i].price_s);
    }
    for (int i = 0; i < n; ++i)
        if (points[i].price_s > 1.2 * least && points[i].price_s < most / 1.2)
            middle = points[i].price_s;
    return most >= wide * least && middle > 0;
}

/* The correction of the part whose first observation is `first`; n 0 where nothing that counts is of it. */
static struct ghp_correction correct(struct sample_list *list, int first,
                                     const struct ghp_overlap *overlap, double copy_factor)
{
    struct ghp_correction c = {.part = list->all->items[first].part, .factor = 1};
    struct line line, other;
    int n = 0;

    for (int i = first; i < list->all->n; ++i) {
        const struct ghp_observation *o = &list->all->items[i];

        if (!is_of(list, o, first)) continue;
        list->points[n++] = (struct point){o, o->price_s, part_s(o, overlap, copy_factor)};
        c.weight_s += o->price_s;
    }
    c.n = n;
    if (n == 0) return c;
    line = one_factor(list, list->points, n);
    if (c.part.kind == GHP_PART_COMM && shows_line(list->points, n)) {
        other = two_parts(list, list->points, n);
        if (misfit(list->points, n, other) < simpler * misfit(list->points, n, line)) line = other;
    }
    c.factor = line.factor;
    c.extra_s = line.extra_s;
    return c;
}

/* ---- seconds beside the instructions ---- */

static struct ghp_correction constant(enum ghp_part_kind kind, struct sample_list *list, int64_t n)
{
    struct ghp_correction c = {.part = {kind, 0, 0}, .factor = 1, .n = n};

    if (list->n > 0) c.extra_s = fmax(0, weighted_median(list->items, list->n));
    return c;
}

/* Waiting for partners: each run's mean, the median of the runs. */
static struct ghp_correction waiting(struct sample_list *list, bool in_reductions)
{
    int64_t all = 0;

    begin(list);
    for (int r = 0; r < list->all->n_runs; ++r) {
        double sum = 0;
        int n = 0;

        for (int i = 0; list->counts[r] && i < list->all->n; ++i) {
            const struct ghp_observation *o = &list->all->items[i];

            if (o->run != r || !o->sends || o->beside != in_reductions) continue;
            sum += o->partners_s;
            ++n;
        }
        if (n > 0) list->items[list->n++] = (struct sample){sum / n, 1};
        all += n;
    }
    return constant(in_reductions ? GHP_PART_REDUCTION : GHP_PART_EXCHANGE, list, all);
}

static struct ghp_correction between(struct sample_list *list)
{
    int64_t all = 0;

    begin(list);
    for (int r = 0; r < list->all->n_runs; ++r) {
        const struct ghp_run_case *run = &list->all->runs[r];

        if (!list->counts[r]) continue;
        list->items[list->n++] = (struct sample){run->between_s, 1};
        all += run->program.n_instrs;
    }
    return constant(GHP_PART_BETWEEN, list, all);
}

/* ---- all of them ---- */

static void put(struct ghp_correction *corrections, int *n, struct ghp_correction c)
{
    if (c.n > 0) corrections[(*n)++] = c;
}

/* Copying first: what is measured with an exchange has to be taken out of it. */
static void estimate(struct sample_list *list, const struct ghp_overlap *overlap,
                     struct ghp_correction *out, int *n)
{
    const struct ghp_observation *items = list->all->items;
    struct ghp_overlap slower = *overlap;
    double copy_factor = 1;

    fill_alone(list);
    for (int k = 0; k < 3; ++k) {
        struct ghp_correction c = slowdown(list, k, overlap);

        ghp_correction_slow(&c, &slower);
        put(out, n, c);
    }
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < list->all->n; ++i) {
            bool copies = items[i].part.kind == GHP_PART_COPY;
            struct ghp_correction c;

            if (items[i].first != i || copies != (pass == 0)) continue;
            c = correct(list, i, &slower, copy_factor);
            if (copies) copy_factor = c.factor;
            put(out, n, c);
        }
    put(out, n, between(list));
    put(out, n, waiting(list, false));
    put(out, n, waiting(list, true));
}

enum ghp_status ghp_corrections_estimate(const struct ghp_observations *observations,
                                         const bool *counts, const struct ghp_overlap *overlap,
                                         struct ghp_correction *corrections, int *n)
{
    struct sample_list list = {.all = observations, .counts = counts};
    size_t n_items = (size_t)observations->n, n_runs = (size_t)observations->n_runs;
    size_t room = 2 * n_items + n_runs + MOST_PAIRS; /* a row of pairs is rounded up */
    enum ghp_status status = GHP_OK;

    list.items = ghp_alloc(room, sizeof *list.items);
    list.deviations = ghp_alloc(room, sizeof *list.deviations);
    list.seen = ghp_alloc(n_runs, sizeof *list.seen);
    list.points = ghp_alloc(n_items, sizeof *list.points);
    list.log_alone = ghp_alloc(n_items, sizeof *list.log_alone);
    *n = 0;
    if (list.items == NULL || list.deviations == NULL || list.seen == NULL || list.points == NULL ||
        list.log_alone == NULL)
        status = GHP_NO_MEMORY();
    else
        estimate(&list, overlap, corrections, n);
    free(list.log_alone);
    free(list.points);
    free(list.seen);
    free(list.deviations);
    free(list.items);
    return status;
}
