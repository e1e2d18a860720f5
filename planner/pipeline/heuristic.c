/* planner/pipeline/heuristic.c - the three rules of heuristic.h, one after the other. */
#include "planner/pipeline/heuristic.h"

#include "core/plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ruling {
    const struct ghp_partition_job *job;
    const struct ghp_model *model;
    int cut; /* the rear's first layer; n_layers: there is no rear */
    struct ghp_split *splits;
    struct ghp_partition *best;
};

/* ---- 1. where the front ends ---- */

/* Whether a layer moves fewer bytes by data: its weights around all workers, against its activations around a group,
 * there and back. */
static bool prefers_data(const struct ruling *r, const struct ghp_layer *l)
{
    double n = r->job->lowering->problem.workers,
           batch = (double)r->job->lowering->problem.global_batch;
    double weights = 2 * (n - 1) / n * (double)ghp_layer_weights(l);
    double activations = 2 * (n - 1) / n * batch * (double)ghp_shape_elements(l->out);

    return weights <= activations;
}

/* The first layer from which on every weighted layer prefers model parallelism, moved on to where a stage may start. */
static int find_cut(const struct ruling *r)
{
    int cut = r->model->n_layers;

    for (int v = r->model->n_layers - 1; v > 0; --v) {
        const struct ghp_layer *l = &r->model->layers[v];

        if (!ghp_op_is_weighted(l->op)) continue;
        if (prefers_data(r, l)) break;
        cut = v;
    }
    return cut;
}

/* ---- judging ---- */

/* `out` as far as it divides in the rear, whatever keeps channels apart by channel, else whole; data in the front. */
static void split_rear(const struct ruling *r, const struct ghp_staging *s, int tp_size)
{
    const struct ghp_lowering *lowering = r->job->lowering;

    for (int v = 0; v < r->model->n_layers; v++) {
        int stage = ghp_stage_of(s, v),
            rank = ghp_stage_representative(s, stage, lowering->problem);
        struct ghp_placement placement =
            ghp_placement_of(s, r->model->n_layers, lowering->problem, rank);
        struct ghp_split choices[GHP_MAX_CHOICES];
        int n =
            ghp_split_choices(&r->model->layers[v], placement.problem, choices, GHP_MAX_CHOICES);

        r->splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        for (int i = 0; i < n && v >= r->cut; i++) {
            bool better = choices[i].tp_size > r->splits[v].tp_size ||
                          (choices[i].tp_size == r->splits[v].tp_size &&
                           choices[i].kind == GHP_SPLIT_CHANNEL);

            if (tp_size % choices[i].tp_size == 0 && choices[i].kind != GHP_SPLIT_IN && better &&
                ghp_stage_takes_tp_size(s, stage, lowering->problem, choices[i].tp_size))
                r->splits[v] = choices[i];
        }
    }
}

/* Layers that share parameters and would not hold the same parts of them are not split. */
static void couple(const struct ruling *r, const struct ghp_staging *s)
{
    for (int v = 0; v < r->model->n_layers; v++) {
        int owner = ghp_model_owner(r->model, v);

        if (owner == v) continue;
        if (!ghp_split_same(ghp_split_of_tied(r->splits[owner]), r->splits[v]) ||
            !ghp_stage_partner_takes(r->model, s, v, r->splits[v].tp_size))
            r->splits[owner] = r->splits[v] =
                (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    }
}

/* The step of the staging with the rear split over `tp_size`; INFINITY if it cannot be. */
static enum ghp_status evaluate(struct ruling *r, const struct ghp_staging *s, int tp_size,
                                double *step_s)
{
    struct ghp_lowering lowering = *r->job->lowering;
    struct ghp_prediction p;

    *step_s = INFINITY;
    if (ghp_staging_check(s, r->model, lowering.problem) != GHP_OK) return GHP_OK;
    lowering.staging = ghp_staging_or_none(s);
    split_rear(r, s, tp_size);
    couple(r, s);
    if (lowering.staging == NULL && (ghp_problem_check(lowering.problem) != GHP_OK ||
                                     ghp_problem_sharers(lowering.problem) > 1))
        return GHP_OK; /* the front is by data */
    GHP_TRY(ghp_plan_predict(&lowering, r->splits, r->job->profile, &p));
    r->best->plans++;
    if (r->job->limit_bytes > 0 && p.peak_bytes > r->job->limit_bytes) return GHP_OK;
    *step_s = p.step_s;
    if (r->best->found && p.step_s >= r->best->step_s) return GHP_OK;
    r->best->found = true;
    r->best->staging = *s;
    r->best->step_s = p.step_s;
    r->best->peak_bytes = p.peak_bytes;
    memcpy(r->best->splits, r->splits, (size_t)r->model->n_layers * sizeof *r->splits);
    return GHP_OK;
}

/* ---- 2. groups ---- */

/* The number of groups that balances the rear's reductions against its activations, not rounded; 0: there is no rear.
 *
 *     G* = sqrt(N B A / W_r),  A = what crosses the cut + the rear's outputs without the last + half the last */
static double balanced_groups(const struct ruling *r)
{
    const struct ghp_problem *problem = &r->job->lowering->problem;
    double weights = 0, outputs = 0, last = 0, crosses;

    for (int v = r->cut; v < r->model->n_layers; v++) {
        const struct ghp_layer *l = &r->model->layers[v];

        if (!ghp_op_is_weighted(l->op)) continue;
        last = (double)ghp_shape_elements(l->out);
        outputs += last;
        weights += (double)ghp_layer_weights(l);
    }
    if (last == 0) return 0;
    crosses = (double)ghp_shape_elements(r->model->layers[r->cut - 1].out);
    return sqrt(problem->workers * (double)problem->global_batch * (crosses + outputs - last / 2) /
                weights);
}

static int round_groups(const struct ruling *r)
{
    const struct ghp_problem *problem = &r->job->lowering->problem;
    double wanted = balanced_groups(r), least = INFINITY;
    int best = problem->workers;

    for (int g = 1; g <= problem->workers && wanted > 0; g++) {
        double distance = fabs(log(g / wanted));

        if (problem->workers % g != 0 || distance >= least) continue;
        least = distance;
        best = g;
    }
    return best;
}

/* ---- 3. stages ---- */

static struct ghp_staging separated(const struct ruling *r, int group, int rear)
{
    struct ghp_staging s = {.n = 2};

    s.stage[0].workers = group - rear;
    s.stage[1] = (struct ghp_stage){.first_layer = r->cut, .workers = rear};
    return s;
}

/* Deals unequally if equal shares do not come out. */
static void fit_block_sizes(const struct ruling *r, struct ghp_staging *s)
{
    int64_t samples = r->job->lowering->problem.global_batch /
                      (r->job->lowering->problem.workers / ghp_staging_group(s, 0));

    for (int i = 0; i < s->n; i++)
        s->stage[i].block_size = samples % s->stage[i].workers == 0 ? 0 : 1;
}

static enum ghp_status grow_rear(struct ruling *r, int group)
{
    double last_s = INFINITY, step_s;

    for (int rear = 1; rear < group; rear++) {
        struct ghp_staging s = separated(r, group, rear);

        fit_block_sizes(r, &s);
        GHP_TRY(evaluate(r, &s, rear, &step_s));
        if (step_s >= last_s && last_s < INFINITY) break;
        last_s = step_s;
    }
    return GHP_OK;
}

static enum ghp_status rule(struct ruling *r)
{
    const struct ghp_staging shared = {0};
    int workers = r->job->lowering->problem.workers, group;
    double step_s;

    r->cut = find_cut(r);
    if (r->cut == r->model->n_layers) return evaluate(r, &shared, 1, &step_s);
    group = workers / round_groups(r);
    GHP_TRY(grow_rear(r, group));
    return evaluate(r, &shared, group, &step_s);
}

enum ghp_status ghp_heuristic(const struct ghp_partition_job *job, struct ghp_partition *partition)
{
    struct ruling r = {.job = job, .model = job->lowering->model, .best = partition};
    size_t layers = (size_t)r.model->n_layers;
    enum ghp_status status;

    *partition = (struct ghp_partition){.splits = ghp_alloc(layers, sizeof *r.splits)};
    r.splits = ghp_alloc(layers, sizeof *r.splits);
    status = r.splits == NULL || partition->splits == NULL ? GHP_NO_MEMORY() : rule(&r);
    free(r.splits);
    if (status != GHP_OK) ghp_partition_release(partition);
    return status;
}
