/* planner/pipeline/interleave.c - see interleave.h. */
#include "planner/pipeline/interleave.h"

#include "core/base/clock.h"
#include "planner/pipeline/lower_bound.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_CHUNKS = 4, KEPT = 4 };
/* of the time, for simulations; the rest searches splits */
static const double simulated_fraction = 0.5;

struct interleave {
    const struct ghp_partition_job *job;
    struct ghp_partition *found;
    struct ghp_lower_bounds lower_bounds;
    double *crossing; /* by count_crossing */
    double until_s;   /* for simulations, on ghp_now_s's clock */
    int n_kept;
    struct {
        double step_s; /* by data */
        struct ghp_staging staging;
    } kept[KEPT]; /* fastest first */
};

struct cut {
    double work, slack; /* seconds before it, and by how many it may differ */
};

/* Elements of a sample that are made before each layer and read by it or later ones. */
static void count_crossing(const struct ghp_model *model, double *crossing)
{
    for (int w = 0; w < model->n_layers; w++) {
        const struct ghp_layer *l = &model->layers[w];
        int last = w;

        for (int k = 0; k < l->n_consumers; k++)
            if (model->edges[l->out_edges[k]].to > last) last = model->edges[l->out_edges[k]].to;
        for (int v = w + 1; v <= last; v++)
            crossing[v] += (double)ghp_shape_elements(l->out);
    }
}

/* The layer after `last` to cut before: of those with about the wanted work before them that where least crosses, else
 * the nearest. n_layers: there is none. */
static int find_cut(const struct interleave *a, const double *work, struct cut wanted, int last)
{
    const struct ghp_model *model = a->job->lowering->model;
    int best = model->n_layers;

    for (int v = last + 1; v < model->n_layers; v++) {
        double off = fabs(work[v] - wanted.work), least = fabs(work[best] - wanted.work);

        if (!ghp_stage_may_start(model, v)) continue;
        if (best == model->n_layers)
            best = v;
        else if (off > wanted.slack || least > wanted.slack)
            best = off < least ? v : best;
        else if (a->crossing[v] < a->crossing[best])
            best = v;
    }
    return best;
}

/* Cuts the network into n x chunks parts of about the same computation. Returns whether there are enough places to
 * cut. */
static bool cut(const struct interleave *a, const double *work, struct ghp_staging *s)
{
    int parts = s->n * s->chunks, n_layers = a->job->lowering->model->n_layers, last = 0;
    double part = work[n_layers] / parts;

    for (int c = 1; c < parts; c++) {
        last = find_cut(a, work, (struct cut){c * part, 0.1 * part}, last);
        if (last == n_layers) return false;
        if (c < s->n)
            s->stage[c].first_layer = last;
        else
            s->later_chunk[c - s->n] = last;
    }
    return true;
}

/* What the busiest stage at least computes. */
static double busiest_s(const struct ghp_staging *s, const double *work, int n_layers)
{
    double all[GHP_MAX_STAGES] = {0}, most = 0;

    for (int c = 0; c < ghp_staging_chunks(s); c++) {
        struct ghp_layer_range range = ghp_chunk_range(s, c, n_layers);

        all[c % s->n] += s->micro_batches * (work[range.end] - work[range.first]);
    }
    for (int i = 0; i < s->n; i++)
        most = fmax(most, all[i]);
    return most;
}

/* Keeps it if it is among the fastest. */
static void keep(struct interleave *a, const struct ghp_staging *s, double step_s)
{
    int at = a->n_kept;

    while (at > 0 && a->kept[at - 1].step_s > step_s)
        --at;
    if (at == KEPT) return;
    if (a->n_kept < KEPT) a->n_kept++;
    for (int k = a->n_kept - 1; k > at; --k)
        a->kept[k] = a->kept[k - 1];
    a->kept[at].step_s = step_s;
    a->kept[at].staging = *s;
}

/* Cuts and simulates a staging whose workers, chunks and micro-batches are set. */
static enum ghp_status try_staging(struct interleave *a, struct ghp_staging *s, int64_t share)
{
    const struct ghp_problem problem = a->job->lowering->problem;
    const struct ghp_model *model = a->job->lowering->model;
    int stage_workers = s->stage[0].workers * (problem.workers / ghp_staging_group(s, 0));
    const struct ghp_lower_bound *least;
    double step_s;
    enum ghp_status status;

    if (ghp_now_s() > a->until_s) return GHP_OK;
    status = ghp_lower_bound_compute(&a->lower_bounds, share, s->stage[0].workers, stage_workers,
                                     &least);
    if (status == GHP_ERR_MISSING) return GHP_OK;
    GHP_TRY(status);
    if (!cut(a, least->work, s)) return GHP_OK;
    if (busiest_s(s, least->work, model->n_layers) >= a->job->best_s) return GHP_OK;
    if (ghp_staging_check(s, model, problem) != GHP_OK) return GHP_OK;
    status = ghp_partition_by_data(a->job, s, &step_s);
    if (status == GHP_ERR_MISSING) return GHP_OK;
    GHP_TRY(status);
    a->found->plans++;
    keep(a, s, step_s);
    return GHP_OK;
}

/* Tries all numbers of chunks and micro-batches with these groups and stages. */
static enum ghp_status try_stages(struct interleave *a, int groups, int stages)
{
    const struct ghp_problem problem = a->job->lowering->problem;
    int workers = problem.workers / groups / stages;

    for (int u = 2; u <= a->job->space.max_micro_batches; u *= 2) {
        int64_t samples = problem.global_batch / u / groups;

        if (u % stages != 0 || problem.global_batch % ((int64_t)u * groups) != 0 ||
            samples % workers != 0)
            continue;
        for (int chunks = 2; chunks <= MOST_CHUNKS; chunks++) {
            struct ghp_staging s = {.n = stages,
                                    .chunks = chunks,
                                    .micro_batches = u,
                                    .pipeline = GHP_PIPELINE_INTERLEAVED};

            for (int i = 0; i < stages; i++)
                s.stage[i].workers = workers;
            GHP_TRY(try_staging(a, &s, samples / workers));
        }
    }
    return GHP_OK;
}

/* The splits of those kept; the fastest plan becomes the result. */
static enum ghp_status search_kept(struct interleave *a)
{
    for (int k = 0; k < a->n_kept; k++) {
        struct ghp_partition_job job = *a->job;
        struct ghp_partition one;
        double now_s = ghp_now_s();
        enum ghp_status status;

        job.deadline_s = now_s + fmax(0, job.deadline_s - now_s) / (a->n_kept - k);
        status = ghp_partition_one(&job, &a->kept[k].staging, NULL, &one);
        if (status == GHP_ERR_MISSING) continue;
        GHP_TRY(status);
        one.plans += a->found->plans;
        one.nodes += a->found->nodes;
        if (one.found && one.step_s < (a->found->found ? a->found->step_s : a->job->best_s)) {
            ghp_partition_release(a->found);
            *a->found = one;
            continue;
        }
        a->found->plans = one.plans;
        a->found->nodes = one.nodes;
        ghp_partition_release(&one);
    }
    return GHP_OK;
}

static enum ghp_status run(struct interleave *a)
{
    const struct ghp_partition_space *space = &a->job->space;
    int workers = a->job->lowering->problem.workers;

    for (int groups = 1; groups <= workers; groups++) {
        if (workers % groups != 0 || (space->groups > 0 && space->groups != groups)) continue;
        for (int stages = 2; stages <= space->max_stages && stages <= workers / groups; stages++)
            if (workers / groups % stages == 0) GHP_TRY(try_stages(a, groups, stages));
    }
    return search_kept(a);
}

enum ghp_status ghp_interleave_compute(const struct ghp_partition_job *job,
                                       struct ghp_partition *found)
{
    int layers = job->lowering->model->n_layers;
    double now_s = ghp_now_s();
    struct interleave a = {
        .job = job,
        .found = found,
        .lower_bounds = {.lowering = job->lowering, .profile = job->profile, .ghost_batches = true},
        .crossing = ghp_alloc((size_t)layers, sizeof *a.crossing),
        .until_s = now_s + simulated_fraction * (job->deadline_s - now_s)};
    enum ghp_status status;

    *found = (struct ghp_partition){.bound_s = INFINITY};
    if (a.crossing == NULL) return GHP_NO_MEMORY();
    count_crossing(job->lowering->model, a.crossing);
    status = run(&a);
    ghp_lower_bounds_release(&a.lower_bounds);
    free(a.crossing);
    if (status != GHP_OK) ghp_partition_release(found);
    return status;
}
