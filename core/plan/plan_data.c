/* core/plan/plan_data.c - see plan.h: the data-parallel plan that a plan was compared with, out of the plan itself. */
#include "core/plan/plan.h"

#include "core/base/units.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ghp_plan_is_data(const struct ghp_plan *plan)
{
    const struct ghp_staging *s = &plan->staging;

    for (int i = 0; i < plan->model.n_layers; i++)
        if (plan->splits[i].kind != GHP_SPLIT_DATA) return false;
    return ghp_staging_stages(s) == 1 && ghp_staging_micro_batches(s) == 1 && plan->shares == NULL;
}

static const struct ghp_baseline *data_baseline(const struct ghp_plan *plan)
{
    for (int i = 0; i < plan->n_baselines; i++)
        if (plan->baselines[i].strategy == GHP_STRATEGY_DATA &&
            !plan->baselines[i].local_statistics)
            return &plan->baselines[i];
    return NULL;
}

/* How a layer's parameters are sharded. baseline NULL: by the plan itself */
static enum ghp_param_sharding sharding_at(const struct ghp_plan *plan,
                                           const struct ghp_baseline *baseline, int layer)
{
    if (baseline == NULL) return plan->splits[layer].sharding;
    return baseline->sharding != NULL ? baseline->sharding[layer] : GHP_SHARDING_NONE;
}

/* Bits of enum ghp_param_sharding: how the layers that can be are sharded. */
static unsigned shardings_of(const struct ghp_plan *plan, const struct ghp_baseline *baseline)
{
    struct ghp_split split = {.tp_size = 1, .sharding = GHP_SHARDING_PASS};
    unsigned found = 0;

    for (int v = 0; v < plan->model.n_layers; v++) {
        enum ghp_param_sharding sharding = sharding_at(plan, baseline, v);

        if (sharding != GHP_SHARDING_NONE ||
            ghp_sharding_check(&plan->model.layers[v], split, plan->problem) == GHP_OK)
            found |= 1u << sharding;
    }
    return found;
}

/* The same in the field's words, if all are sharded alike; empty: none is. Parameters that each of several groups of
 * workers has whole are hybrid sharded (HSDP). */
static const char *sharding_text(const struct ghp_plan *plan, const struct ghp_baseline *baseline)
{
    int within = plan->method.shard_within;
    bool hybrid = within > 0 && within < plan->problem.workers;

    switch (shardings_of(plan, baseline)) {
    case 0:
    case 1u << GHP_SHARDING_NONE: return "";
    case 1u << GHP_SHARDING_GRADIENTS: return ", gradients sharded (ZeRO-2)";
    case 1u << GHP_SHARDING_STEP:
    case 1u << GHP_SHARDING_MICRO_BATCH:
        return hybrid ? ", parameters sharded (HSDP)" : ", parameters sharded (ZeRO-3)";
    case 1u << GHP_SHARDING_PASS:
        return hybrid ? ", parameters sharded (HSDP)" : ", parameters sharded (FSDP)";
    default: return ", parameters sharded";
    }
}

/* The planner's own choice is of any shards; another strategy is called by what its layers have. */
static const char *own_row(const struct ghp_plan *plan, char text[GHP_BASELINE_TEXT_SIZE])
{
    snprintf(text, GHP_BASELINE_TEXT_SIZE, "%s%s", ghp_strategy_show(plan->strategy),
             plan->strategy == GHP_STRATEGY_AUTO ? "" : sharding_text(plan, NULL));
    return text;
}

const char *ghp_baseline_format(const struct ghp_plan *plan, const struct ghp_baseline *baseline,
                                char text[GHP_BASELINE_TEXT_SIZE])
{
    const struct ghp_sync_ops *own = ghp_sync_ops_of(plan->method.sync), *ops;
    int recomputed = 0, used;

    if (baseline == NULL) return own_row(plan, text);
    ops = baseline->sync.ops != NULL ? baseline->sync.ops : own;
    for (int v = 0; baseline->recompute != NULL && v < plan->model.n_layers; v++)
        recomputed += baseline->recompute[v];
    used = snprintf(text, GHP_BASELINE_TEXT_SIZE, "%s%s%s%s", ghp_strategy_show(baseline->strategy),
                    sharding_text(plan, baseline),
                    baseline->local_statistics ? ", local statistics" : "",
                    ops == &ghp_sync_sharded ? ", sharded update"
                    : ops != own             ? ", all-reduce"
                                             : "");
    if (recomputed > 0)
        snprintf(text + used, GHP_BASELINE_TEXT_SIZE - (size_t)used, ", %d layer%s recomputed",
                 recomputed, ghp_plural(recomputed));
    return text;
}

/* A copy of the layers that a baseline recomputes; NULL of none. */
static enum ghp_status copy_recompute(const struct ghp_plan *plan, const bool *from, bool **to)
{
    size_t layers = (size_t)plan->model.n_layers;

    *to = NULL;
    if (from == NULL) return GHP_OK;
    *to = ghp_alloc(layers, sizeof **to);
    if (*to == NULL) return GHP_NO_MEMORY();
    memcpy(*to, from, layers * sizeof **to);
    return GHP_OK;
}

enum ghp_status ghp_plan_make_data(struct ghp_plan *plan)
{
    const struct ghp_baseline *baseline = data_baseline(plan);
    bool *recompute;

    if (baseline == NULL || !baseline->feasible)
        return GHP_FAIL(GHP_ERR_INFEASIBLE, "no data-parallel plan can replace this plan: %s",
                        baseline == NULL || baseline->reason == NULL ? "none was tried"
                                                                     : baseline->reason);
    GHP_TRY(copy_recompute(plan, baseline->recompute, &recompute));
    for (int i = 0; i < plan->model.n_layers; i++)
        plan->splits[i] = (struct ghp_split){
            .kind = GHP_SPLIT_DATA,
            .tp_size = 1,
            .sharding = baseline->sharding != NULL ? baseline->sharding[i] : GHP_SHARDING_NONE};
    free(plan->shares);
    free(plan->recompute);
    plan->shares = NULL;
    plan->recompute = recompute;
    plan->staging = (struct ghp_staging){.recompute = recompute};
    plan->groups = plan->problem.workers;
    plan->group_size = 1;
    plan->strategy = GHP_STRATEGY_DATA;
    if (baseline->sync.ops != NULL) plan->method.sync = baseline->sync;
    if (baseline->bucket_bytes >= 0) plan->method.bucket_bytes = baseline->bucket_bytes;
    plan->predicted = baseline->predicted;
    return GHP_OK;
}
