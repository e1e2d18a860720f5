/* core/plan/plan_data.c - see plan.h: the data-parallel plan that a plan was compared with, out of the plan itself. */
#include "core/plan/plan.h"

#include <stdlib.h>

bool ghp_plan_is_data(const struct ghp_plan *plan)
{
    for (int i = 0; i < plan->model.n_layers; ++i)
        if (plan->splits[i].kind != GHP_SPLIT_DATA) return false;
    return ghp_staging_trivial(ghp_staging_or_none(&plan->staging));
}

static const struct ghp_baseline *data_baseline(const struct ghp_plan *plan)
{
    for (int i = 0; i < plan->n_baselines; ++i)
        if (plan->baselines[i].strategy == GHP_STRATEGY_DATA) return &plan->baselines[i];
    return NULL;
}

enum ghp_status ghp_plan_make_data(struct ghp_plan *plan)
{
    const struct ghp_baseline *baseline = data_baseline(plan);

    if (baseline == NULL || !baseline->feasible)
        return GHP_FAIL(GHP_ERR_INFEASIBLE, "the plan has no data-parallel one beside it: %s",
                        baseline == NULL || baseline->reason == NULL ? "none was tried"
                                                                     : baseline->reason);
    for (int i = 0; i < plan->model.n_layers; ++i)
        plan->splits[i] = (struct ghp_split){GHP_SPLIT_DATA, 1};
    free(plan->shares);
    free(plan->recompute);
    plan->shares = NULL;
    plan->recompute = NULL;
    plan->staging = (struct ghp_staging){0};
    plan->groups = plan->problem.workers;
    plan->group_size = 1;
    plan->strategy = GHP_STRATEGY_DATA;
    if (baseline->bucket_bytes >= 0) plan->bucket_bytes = baseline->bucket_bytes;
    plan->predicted = baseline->predicted;
    return GHP_OK;
}
