/* planner/build/rules.c - the plan by rules (planner/pipeline/heuristic.h), beside the baselines or as the plan. */
#include "planner/build/build_private.h"

#include "planner/pipeline/heuristic.h"
#include "planner/build/staged.h"

#include <math.h>
#include <stdio.h>

enum ghp_status ghp_build_rules(struct ghp_build_context *m, struct ghp_partition *rules)
{
    struct ghp_partition_job job = ghp_build_job(m, 0.97); /* the rest is for telling */
    struct ghp_baseline *b = &m->plan->baselines[m->plan->n_baselines];
    struct ghp_lowering how = m->how;

    GHP_TRY(ghp_heuristic(&job, rules));
    b->strategy = GHP_STRATEGY_HEURISTIC;
    ++m->plan->n_baselines;
    b->feasible = rules->found;
    how.staging = ghp_staging_trivial(&rules->staging) ? NULL : &rules->staging;
    if (b->feasible)
        return ghp_plan_predict(&how, rules->splits, m->request->profile, &b->predicted);
    return ghp_build_set_text(&b->reason, "none of its plans fits the memory");
}

enum ghp_status ghp_build_adopt_rules(struct ghp_build_context *m,
                                      const struct ghp_partition *rules)
{
    struct ghp_plan *plan = m->plan;
    double best_s = m->staged ? m->outer.step_s : m->own.kept[0].step_s;
    char text[160];

    if (!rules->found) return GHP_FAIL(GHP_ERR_INFEASIBLE, "none of the rules' plans can be");
    GHP_TRY(ghp_staged_adopt(m->request, &m->how, rules, plan));
    GHP_TRY(ghp_build_certify(m));
    snprintf(text, sizeof text, "by rules, as asked: the best found takes %.6g ms, %.2f %% less",
             1e3 * best_s, 100 * (1 - best_s / plan->predicted.step_s));
    return ghp_build_set_text(&plan->certificate.preferred, text);
}
