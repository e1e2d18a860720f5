/* planner/pipeline/partition.c - the first bounds of partitions, and the order of their searches. */
#include "planner/pipeline/partition.h"

#include "core/base/array.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/plan/plan.h"
#include "core/program/lower/flow.h"
#include "planner/pipeline/lower_bound.h"
#include "planner/search/baselines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- first bounds ---- */

static const double list_fraction = 0.5; /* of the time, for listing partitions */
/* of what is left, for simulating some of them by data */
static const double likely_fraction = 0.1;
enum {
    MOST_CANDIDATES = 1 << 18, /* more are never searched; the less promising half goes */
    MICRO_BATCH_CLASSES = 11,
    SIMULATED_EACH = 4, /* of each number of stages and micro-batches and each schedule */
    LIKELY = 6          /* of these, whose splits are searched first */
};

struct candidate { /* a partition that its first bound does not rule out */
    double bound_s;
    bool done;
    int micro_batches;
    unsigned char n, pipeline;
    int first_layer[GHP_PARTITION_STAGES], workers[GHP_PARTITION_STAGES],
        block_size[GHP_PARTITION_STAGES];
};

struct partition_search {
    const struct ghp_partition_job *job;
    struct ghp_partition *result;
    struct ghp_lower_bounds lower_bounds;
    int *first_reader; /* of a layer, where gradients come back from it; -1 */
    struct first_bound {
        /* once through the stages before one and back; NAN: no way leads on */
        double way_s[GHP_PARTITION_STAGES + 1];
        double bound_s[GHP_PARTITION_STAGES + 1]; /* of the stages before one */
    } whole,
        deferred; /* by schedules that keep weight gradients in the backward pass, and that do not */
    int n, max;
    struct candidate *candidates;
    double list_until_s; /* on ghp_now_s's clock */
    int64_t looked;      /* stages bounded so far */
    bool timed_out;      /* the time came before all were listed */
    double dropped_s;    /* the least bound of candidates that went; INFINITY: none has */
};

static double between(const double *prefix, int first, int end)
{
    return first < end ? prefix[end] - prefix[first] : 0;
}

/* Adds a stage to the bound of those before it, the longest of: each one's own computation; and once through the first
 * stages and back, with all micro-batches in the one where the way turns. `turns`: of these, those whose weight
 * gradients stand before its last backward step, which the way back waits for; the others' may come after.
 *
 * entry   the first layer of the stage that the way comes to
 * f       work: what the way through the stage has, of one micro-batch */
static void extend(struct first_bound *bound, const struct ghp_partition_prefix *part, int entry,
                   const struct ghp_lower_bound *f, bool deferred)
{
    int i = part->stage, u = part->micro_batches, turns = u;
    double before_s = i > 0 ? bound->way_s[i] : 0, bound_s = i > 0 ? bound->bound_s[i] : 0;
    const double *way = deferred ? f->data : f->work;

    if (deferred) turns = u - 1 - i > 0 ? u - 1 - i : 0;
    bound_s = fmax(bound_s, u * between(f->work, part->first, part->end) +
                                between(f->update, part->first, part->end));
    bound->way_s[i + 1] = NAN;
    if (entry >= part->first && entry < part->end && !isnan(before_s)) {
        double update_s = between(f->update, entry, part->end),
               way_s = between(way, entry, part->end);

        bound_s = fmax(bound_s, before_s + turns * between(f->work, entry, part->end) +
                                    (u - turns) * way_s + update_s);
        bound->way_s[i + 1] = before_s + way_s + update_s;
    }
    bound->bound_s[i + 1] = bound_s;
}

static enum ghp_status prune(void *context, const struct ghp_partition_prefix *part, bool *pruned)
{
    struct partition_search *a = context;
    int64_t units = part->samples / part->block_size, blocks = part->workers / part->block_size;
    int64_t share = units / blocks + (units % blocks > 0);
    int i = part->stage, entry = i > 0 ? a->first_reader[part->first - 1] : 0;
    const struct ghp_lower_bound *f;

    if ((++a->looked & 4095) == 0 && ghp_now_s() > a->list_until_s) a->timed_out = true;
    *pruned = true;
    if (a->timed_out) return GHP_OK;
    GHP_TRY(ghp_lower_bound_compute(&a->lower_bounds, share, part->block_size,
                                    part->groups * part->workers, &f));
    extend(&a->whole, part, entry, f, false);
    extend(&a->deferred, part, entry, f, true);
    *pruned = fmin(a->whole.bound_s[i + 1], a->deferred.bound_s[i + 1]) >=
              a->job->best_s * (1 - GHP_BRANCH_SAME);
    return GHP_OK;
}

/* The same of one stage. */
static enum ghp_status lone_bound(struct partition_search *a, const struct ghp_staging *s,
                                  double *bound_s)
{
    struct ghp_problem whole = a->job->lowering->problem;
    struct ghp_partition_prefix part = {.end = a->job->lowering->model->n_layers,
                                        .workers = whole.workers,
                                        .block_size = whole.workers,
                                        .groups = 1,
                                        .micro_batches = s->micro_batches,
                                        .samples = whole.global_batch / s->micro_batches};
    bool pruned;

    GHP_TRY(prune(a, &part, &pruned));
    *bound_s = a->whole.bound_s[1];
    return GHP_OK;
}

/* Least bound first; of equals fewer stages, then fewer micro-batches. */
static int by_bound(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;

    if (a->bound_s < b->bound_s || a->bound_s > b->bound_s) return a->bound_s < b->bound_s ? -1 : 1;
    if (a->n != b->n) return a->n - b->n;
    if (a->micro_batches != b->micro_batches) return a->micro_batches - b->micro_batches;
    return memcmp(a->first_layer, b->first_layer,
                  sizeof *a - (size_t)((const char *)a->first_layer - (const char *)a));
}

/* Keeps the half with the least bounds. */
static void drop_half(struct partition_search *a)
{
    qsort(a->candidates, (size_t)a->n, sizeof *a->candidates, by_bound);
    a->n /= 2;
    a->dropped_s = a->candidates[a->n].bound_s;
}

static enum ghp_status note(void *context, const struct ghp_staging *s)
{
    struct partition_search *a = context;
    struct candidate *c;
    double bound_s = (ghp_staging_defers_weights(s) ? a->deferred.bound_s : a->whole.bound_s)[s->n];

    if (a->timed_out) return GHP_OK;
    a->result->partitions++;
    if (s->n < 2) GHP_TRY(lone_bound(a, s, &bound_s));
    if (bound_s >= a->job->best_s * (1 - GHP_BRANCH_SAME)) return GHP_OK;
    if (bound_s >= a->dropped_s) return GHP_OK;
    if (a->n == MOST_CANDIDATES) drop_half(a);
    GHP_TRY_ROOM(a->candidates, a->n, a->max);
    c = &a->candidates[a->n++];
    *c = (struct candidate){.bound_s = bound_s,
                            .micro_batches = s->micro_batches,
                            .n = (unsigned char)s->n,
                            .pipeline = (unsigned char)s->pipeline};
    for (int i = 0; i < s->n; i++) {
        c->first_layer[i] = s->stage[i].first_layer;
        c->workers[i] = s->stage[i].workers;
        c->block_size[i] = s->stage[i].block_size;
    }
    ghp_progress_tick("%" PRId64 " allocations", a->result->partitions);
    return GHP_OK;
}

static struct ghp_staging staging_of(const struct candidate *c)
{
    struct ghp_staging s = {
        .n = c->n, .micro_batches = c->micro_batches, .pipeline = (enum ghp_pipeline)c->pipeline};

    for (int i = 0; i < c->n; i++)
        s.stage[i] = (struct ghp_stage){.first_layer = c->first_layer[i],
                                        .workers = c->workers[i],
                                        .block_size = c->block_size[i]};
    return s;
}

/* ---- one partition ---- */

static bool has_choices(const struct ghp_instance *in)
{
    for (int v = 0; v < in->n_layers; v++)
        if (in->n_choices[v] == 0) return false;
    return true;
}

struct trial {
    const struct ghp_partition_job *job;
    struct ghp_staging staging;
    struct ghp_lowering lowering; /* with it */
    struct ghp_instance instance;
    struct ghp_domain domain;
    struct ghp_search_result result;
};

static void trial_close(struct trial *t)
{
    ghp_search_release(&t->result);
    ghp_domain_release(&t->domain);
    ghp_instance_release(&t->instance);
}

/* The splits of another plan, if the trial's layers can take them, else by data. Returns whether that is a plan. */
static bool start_from(const struct trial *t, const struct ghp_split *splits, int *choice)
{
    for (int v = 0; v < t->instance.n_layers; v++)
        choice[v] = 0;
    for (int v = 0; v < t->instance.n_layers && splits != NULL; v++) {
        int i = ghp_instance_find(&t->instance, v, splits[v]);

        if (i >= 0) choice[v] = i;
    }
    return splits != NULL && ghp_domain_has(&t->domain, choice);
}

/* Searches the splits of the trial's staging.
 *
 * start   splits of a plan to begin with; NULL: there is none */
static enum ghp_status trial_run(struct trial *t, const char *force, const struct ghp_split *start,
                                 double cutoff_s, double deadline_s)
{
    int *choice;
    enum ghp_status status;
    struct ghp_search_job job = {.instance = &t->instance,
                                 .domain = &t->domain,
                                 .limit_bytes = t->job->limit_bytes,
                                 .deadline_s = deadline_s,
                                 .gap = t->job->gap,
                                 .cutoff_s = cutoff_s,
                                 .solver = t->job->solver};

    t->lowering = *t->job->lowering;
    t->lowering.staging = &t->staging;
    GHP_TRY(ghp_instance_init(&t->lowering, t->job->profile, t->lowering.problem.workers,
                              &t->instance));
    GHP_TRY(ghp_domain_init(&t->instance, &t->domain));
    if (force != NULL) GHP_TRY(ghp_force_restrict(force, &t->domain));
    if (!has_choices(&t->instance)) {
        t->result = (struct ghp_search_result){.proven = true, .bound_s = INFINITY};
        return GHP_OK;
    }
    choice = ghp_alloc((size_t)t->instance.n_layers, sizeof *choice);
    if (choice == NULL) return GHP_NO_MEMORY();
    job.start = choice;
    job.n_start = start_from(t, start, choice);
    status = ghp_search_run(&job, &t->result);
    free(choice);
    return status;
}

/* Keeps the trial's plan as the best. */
static enum ghp_status keep(struct trial *t, struct ghp_partition *best)
{
    const struct ghp_search_plan *plan = &t->result.kept[0];

    if (best->splits == NULL)
        best->splits = ghp_alloc((size_t)t->instance.n_layers, sizeof *best->splits);
    if (best->splits == NULL) return GHP_NO_MEMORY();
    ghp_instance_splits(&t->instance, plan->choice, best->splits);
    best->staging = t->staging;
    best->found = true;
    best->step_s = plan->step_s;
    best->peak_bytes = plan->peak_bytes;
    return GHP_OK;
}

/* What would do if the trial's plans do not fit. */
static void note_least(const struct trial *t, struct ghp_partition *a)
{
    int64_t least = t->result.least_bytes;

    if (t->result.feasible || least == 0) return;
    a->least_proven = t->result.least_proven && (a->least_bytes == 0 || a->least_proven);
    if (a->least_bytes == 0 || least < a->least_bytes) a->least_bytes = least;
}

static enum ghp_status try_candidate(struct partition_search *a, const struct candidate *c,
                                     double best_s, double deadline_s)
{
    struct ghp_partition *r = a->result;
    struct trial t = {.job = a->job, .staging = staging_of(c)};
    enum ghp_status status =
        trial_run(&t, NULL, r->found ? r->splits : a->job->start, best_s, deadline_s);

    if (status == GHP_OK) {
        r->searched++;
        r->plans += t.result.plans;
        r->nodes += t.result.nodes;
        if (!t.result.proven) {
            r->proven = false;
            r->bound_s = fmin(r->bound_s, fmax(c->bound_s, t.result.bound_s));
        }
        note_least(&t, r);
        if (t.result.feasible && t.result.kept[0].step_s < best_s) status = keep(&t, r);
    }
    trial_close(&t);
    return status;
}

/* When the search of one candidate ends, by its part of the time left. */
static double slice_end_s(const struct partition_search *a)
{
    double now_s = ghp_now_s(), left_s = a->job->deadline_s - now_s;

    return fmin(a->job->deadline_s, now_s + fmax(0.5, 0.2 * left_s));
}

static double best_of(const struct partition_search *a)
{
    return a->result->found ? a->result->step_s : a->job->best_s;
}

/* Micro-batches alone first: they are few, next to the plan without, and need the least memory. Each is done then. */
static enum ghp_status try_lone(struct partition_search *a)
{
    for (int64_t k = 0; k < a->n; k++) {
        struct candidate *c = &a->candidates[k];

        if (c->n >= 2 || c->bound_s >= best_of(a) || ghp_now_s() > a->job->deadline_s) continue;
        GHP_TRY(try_candidate(a, c, best_of(a), slice_end_s(a)));
        c->done = true;
    }
    return GHP_OK;
}

/* The number of micro-batches as a class: its logarithm, rounded down. */
static int class_of(int micro_batches)
{
    int class = 0;

    while (micro_batches > 1 && class < MICRO_BATCH_CLASSES - 1) {
        micro_batches /= 2;
        class ++;
    }
    return class;
}

/* The places of the fastest by data, simulated till then: of each number of stages and micro-batches and each schedule
 * those with the least bounds. */
static enum ghp_status find_likely(struct partition_search *a, double until_s, int64_t *likely,
                                   int *n_likely)
{
    int seen[GHP_PARTITION_STAGES + 1][MICRO_BATCH_CLASSES][GHP_PIPELINE_COUNT] = {0};
    double likely_s[LIKELY], step_s;
    int n = 0, at;

    for (int64_t k = 0; k < a->n && ghp_now_s() < until_s; k++) {
        const struct candidate *c = &a->candidates[k];
        struct ghp_staging staging = staging_of(c);

        if (c->done || c->n < 2 || c->bound_s >= best_of(a)) continue;
        if (++seen[c->n][class_of(c->micro_batches)][c->pipeline] > SIMULATED_EACH) continue;
        GHP_TRY(ghp_partition_by_data(a->job, &staging, &step_s));
        a->result->plans++;
        for (at = n < LIKELY ? n : LIKELY; at > 0 && likely_s[at - 1] > step_s; --at)
            if (at < LIKELY) {
                likely_s[at] = likely_s[at - 1];
                likely[at] = likely[at - 1];
            }
        if (at == LIKELY || isinf(step_s)) continue;
        likely_s[at] = step_s;
        likely[at] = k;
        n = n < LIKELY ? n + 1 : LIKELY;
    }
    *n_likely = n;
    return GHP_OK;
}

/* What is fast by data is searched first: with a good plan there, the bounds of most others rule them out. */
static enum ghp_status try_likely(struct partition_search *a)
{
    double now_s = ghp_now_s();
    int64_t likely[LIKELY];
    int n;

    GHP_TRY(find_likely(a, now_s + likely_fraction * (a->job->deadline_s - now_s), likely, &n));
    for (int i = 0; i < n; i++) {
        struct candidate *c = &a->candidates[likely[i]];

        if (c->bound_s >= best_of(a) || ghp_now_s() > a->job->deadline_s) continue;
        GHP_TRY(try_candidate(a, c, best_of(a), slice_end_s(a)));
        c->done = true;
    }
    return GHP_OK;
}

static enum ghp_status try_all(struct partition_search *a)
{
    struct ghp_partition *r = a->result;
    double same = fmax(GHP_BRANCH_SAME, a->job->gap);

    if (a->n > 0) qsort(a->candidates, (size_t)a->n, sizeof *a->candidates, by_bound);
    GHP_TRY(try_lone(a));
    GHP_TRY(try_likely(a));
    for (int k = 0; k < a->n; k++) {
        const struct candidate *c = &a->candidates[k];
        double best_s = best_of(a);

        if (c->bound_s >= best_s * (1 - same)) {
            if (a->job->gap > 0) r->bound_s = fmin(r->bound_s, c->bound_s);
            break;
        }
        if (c->done) continue;
        if (ghp_now_s() > a->job->deadline_s) {
            r->proven = false;
            r->bound_s = fmin(r->bound_s, c->bound_s);
            break;
        }
        GHP_TRY(try_candidate(a, c, best_s, slice_end_s(a)));
        ghp_progress_tick("%d of %d allocations", k + 1, a->n);
    }
    if (a->dropped_s < best_of(a) * (1 - same)) {
        r->proven = false;
        r->bound_s = fmin(r->bound_s, a->dropped_s);
    }
    return GHP_OK;
}

static enum ghp_status find_readers(struct partition_search *a)
{
    const struct ghp_model *model = a->job->lowering->model;

    a->first_reader = ghp_alloc((size_t)model->n_layers, sizeof *a->first_reader);
    if (a->first_reader == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *l = &model->layers[v];

        a->first_reader[v] =
            l->learns && l->n_consumers > 0 ? model->edges[l->out_edges[0]].to : -1;
        a->lower_bounds.ghost_batches =
            a->lower_bounds.ghost_batches || (ghp_layer_has_stats_delta(l) && !l->norm.local_stats);
    }
    return GHP_OK;
}

enum ghp_status ghp_partition_compute(const struct ghp_partition_job *job,
                                      struct ghp_partition *result)
{
    struct partition_search *a = ghp_alloc(1, sizeof *a);
    enum ghp_status status;

    *result = (struct ghp_partition){.bound_s = INFINITY, .proven = true};
    if (a == NULL) return GHP_NO_MEMORY();
    a->job = job;
    a->result = result;
    a->dropped_s = INFINITY;
    a->lower_bounds.lowering = job->lowering;
    a->lower_bounds.profile = job->profile;
    a->list_until_s = ghp_now_s() + list_fraction * fmax(0, job->deadline_s - ghp_now_s());
    status = find_readers(a);
    if (status == GHP_OK)
        status = ghp_partition_each(
            job->lowering->model, job->lowering->problem, &job->space,
            &(struct ghp_partition_visitor){.visit = note, .prune = prune, .context = a});
    if (a->timed_out) { /* nothing is known of those that were not listed */
        result->proven = false;
        result->bound_s = 0;
    }
    if (status == GHP_OK) status = try_all(a);
    ghp_lower_bounds_release(&a->lower_bounds);
    free(a->first_reader);
    free(a->candidates);
    free(a);
    if (status != GHP_OK) ghp_partition_release(result);
    return status;
}

enum ghp_status ghp_partition_by_data(const struct ghp_partition_job *job,
                                      const struct ghp_staging *staging, double *step_s)
{
    const struct ghp_model *model = job->lowering->model;
    struct ghp_lowering lowering = *job->lowering;
    struct ghp_split *data = ghp_alloc((size_t)model->n_layers, sizeof *data);
    struct ghp_prediction p;
    enum ghp_status status = GHP_OK;

    *step_s = INFINITY;
    if (data == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < model->n_layers; v++)
        data[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    lowering.staging = staging;
    if (ghp_staging_check_tied(staging, model, data) == GHP_OK) {
        status = ghp_plan_predict(&lowering, data, job->profile, &p);
        if (status == GHP_OK && (job->limit_bytes == 0 || p.peak_bytes <= job->limit_bytes))
            *step_s = p.step_s;
    }
    free(data);
    return status;
}

enum ghp_status ghp_partition_one(const struct ghp_partition_job *job,
                                  const struct ghp_staging *staging, const char *force,
                                  struct ghp_partition *result)
{
    struct trial t = {.job = job, .staging = *staging};
    enum ghp_status status;

    *result = (struct ghp_partition){.partitions = 1, .searched = 1};
    GHP_TRY(ghp_staging_check(staging, job->lowering->model, job->lowering->problem));
    status = trial_run(&t, force, NULL, 0, job->deadline_s);
    if (status == GHP_OK) {
        result->plans = t.result.plans;
        result->nodes = t.result.nodes;
        result->proven = t.result.proven;
        result->bound_s = t.result.bound_s;
        note_least(&t, result);
        if (t.result.feasible) status = keep(&t, result);
    }
    trial_close(&t);
    if (status != GHP_OK) ghp_partition_release(result);
    return status;
}

void ghp_partition_release(struct ghp_partition *partition)
{
    if (partition == NULL) return;
    free(partition->splits);
    free(partition->shares);
    free(partition->recompute);
    *partition = (struct ghp_partition){0};
}
