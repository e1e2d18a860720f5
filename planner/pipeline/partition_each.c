/* planner/pipeline/partition_each.c - the space of partitions, one after the other; what a visitor prunes is left
 * out. */
#include "planner/pipeline/partition.h"

struct walk {
    const struct ghp_model *model;
    struct ghp_problem problem;
    const struct ghp_partition_space *space;
    bool whole_norms;   /* a batch norm over the global batch: no micro-batches */
    bool ghost_batches; /* one over ghost batches: equal shares */
    int groups, unit;   /* worker counts are multiples of `unit` */
    int64_t samples;    /* of a group's micro-batch */
    struct ghp_staging staging;
    const struct ghp_partition_visitor *visitor;
};

/* The least divisor of a group that leaves at most GHP_PARTITION_UNITS units. */
static int unit_of(int group)
{
    int unit = 1;

    while (group % unit != 0 || group / unit > GHP_PARTITION_UNITS)
        unit++;
    return unit;
}

/* With one micro-batch there is nothing to drain. */
static enum ghp_status visit_pipelines(struct walk *w)
{
    int n = w->staging.n > 1 ? GHP_PIPELINE_INTERLEAVED : 1;

    for (int p = 0; p < n; p++) {
        if (p == GHP_PIPELINE_FILL_DRAIN && w->staging.micro_batches == 1) continue;
        w->staging.pipeline = (enum ghp_pipeline)p;
        GHP_TRY(w->visitor->visit(w->visitor->context, &w->staging));
    }
    return GHP_OK;
}

static enum ghp_status visit_stages(struct walk *w, int stage, int left);

/* Deals the stage's samples: evenly, else in the largest blocks that come out. Smaller ones give nobody less and take
 * fewer TP sizes. */
static enum ghp_status visit_block_size(struct walk *w, int stage, int left)
{
    struct ghp_stage *s = &w->staging.stage[stage];
    int block_size = (int)ghp_gcd(s->workers, w->samples);

    if (w->samples < s->workers || (block_size < s->workers && w->ghost_batches)) return GHP_OK;
    s->block_size = block_size < s->workers ? block_size : 0;
    return visit_stages(w, stage + 1, left - s->workers);
}

/* Whether the stage, once it ends before layer `end`, leaves nothing to look at. */
static enum ghp_status is_pruned(const struct walk *w, int stage, int end, bool *pruned)
{
    const struct ghp_stage *s = &w->staging.stage[stage];
    struct ghp_partition_prefix part = {.stage = stage,
                                        .first = s->first_layer,
                                        .end = end,
                                        .workers = s->workers,
                                        .block_size = ghp_stage_block_size(s),
                                        .groups = w->groups,
                                        .micro_batches = w->staging.micro_batches,
                                        .samples = w->samples};

    *pruned = false;
    if (w->visitor->prune == NULL) return GHP_OK;
    return w->visitor->prune(w->visitor->context, &part, pruned);
}

/* Visits stage `stage` and those after it, with `left` workers of the group left. */
static enum ghp_status visit_stages(struct walk *w, int stage, int left)
{
    struct ghp_stage *s = &w->staging.stage[stage];
    int n = w->staging.n, after = n - 1 - stage, first;
    bool pruned;

    if (stage == n) {
        GHP_TRY(is_pruned(w, n - 1, w->model->n_layers, &pruned));
        return pruned ? GHP_OK : visit_pipelines(w);
    }
    first = stage == 0 ? 0 : w->staging.stage[stage - 1].first_layer + 1;
    for (int layer = first; layer < w->model->n_layers; layer++) {
        if (stage == 0 ? layer > 0 : !ghp_stage_may_start(w->model, layer)) continue;
        if (stage > 0) {
            GHP_TRY(is_pruned(w, stage - 1, layer, &pruned));
            if (pruned) break;
        }
        for (int k = w->unit; k + after * w->unit <= left; k += w->unit) {
            if (after == 0) k = left; /* the last stage takes all */
            *s = (struct ghp_stage){.first_layer = layer, .workers = k};
            GHP_TRY(visit_block_size(w, stage, left));
        }
    }
    return GHP_OK;
}

static void note_norms(struct walk *w)
{
    for (int v = 0; v < w->model->n_layers; v++) {
        const struct ghp_layer *l = &w->model->layers[v];

        if (!ghp_op_of(l->op)->has_batch_statistics || l->norm.local_stats) continue;
        *(l->norm.ghost_batch > 0 ? &w->ghost_batches : &w->whole_norms) = true;
    }
}

/* All stagings of one group count and one number of micro-batches. */
static enum ghp_status visit_groups(struct walk *w, int groups, int u)
{
    int group = w->problem.workers / groups;

    w->groups = groups;
    w->unit = unit_of(group);
    if (w->problem.global_batch % ((int64_t)u * groups) != 0) return GHP_OK;
    w->samples = w->problem.global_batch / u / groups;
    for (int n = 2; n <= w->space->max_stages && n * w->unit <= group; n++) {
        w->staging = (struct ghp_staging){.n = n, .micro_batches = u};
        GHP_TRY(visit_stages(w, 0, group));
    }
    return GHP_OK;
}

/* Whether the workers of one stage hold whole samples of a micro-batch each, or share them evenly. */
static bool samples_fit(struct ghp_problem whole, int micro_batches)
{
    int64_t samples = whole.global_batch / micro_batches;

    return whole.global_batch % micro_batches == 0 &&
           (samples % whole.workers == 0 || whole.workers % samples == 0);
}

enum ghp_status ghp_partition_each(const struct ghp_model *model, struct ghp_problem problem,
                                   const struct ghp_partition_space *space,
                                   const struct ghp_partition_visitor *visitor)
{
    struct walk w = {.model = model, .problem = problem, .space = space, .visitor = visitor};
    int workers = problem.workers;

    note_norms(&w);
    for (int u = 1; u <= space->max_micro_batches && (u == 1 || !w.whole_norms); u *= 2) {
        if (u > 1 && samples_fit(problem, u)) {
            w.staging = (struct ghp_staging){.micro_batches = u};
            GHP_TRY(visitor->visit(visitor->context, &w.staging));
        }
        for (int g = 1; g <= workers; g++)
            if (workers % g == 0 && (space->groups == 0 || space->groups == g))
                GHP_TRY(visit_groups(&w, g, u));
    }
    return GHP_OK;
}
