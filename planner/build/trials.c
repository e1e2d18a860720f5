/* planner/build/trials.c - what is looked for by trial, and no proof is about: layers recomputed, unequal shares. */
#include "planner/build/build_private.h"

#include "planner/build/recompute.h"
#include "planner/pipeline/load_balance.h"

#include <math.h>
#include <string.h>

static double best_so_far(const struct ghp_build_context *m)
{
    if (m->staged) return m->outer.step_s;
    return m->own.feasible ? m->own.kept[0].step_s : INFINITY;
}

/* Takes what was found by trial in the place of the best so far, where it is surely faster. */
static void take_trial(struct ghp_build_context *m, struct ghp_partition *found,
                       enum ghp_trial trial)
{
    double before_s = best_so_far(m);
    double margin_s = m->request->simplify ? m->plan->baselines[0].predicted.error_s : 0;

    m->own.plans += found->plans;
    m->own.nodes += found->nodes;
    found->plans = found->nodes = 0;
    if (!found->found || before_s - found->step_s <= margin_s) {
        ghp_partition_release(found);
        return;
    }
    if (m->trial == GHP_TRIAL_NONE) m->before_trial = ghp_build_proof(m);
    m->own.plans += m->outer.plans;
    m->own.nodes += m->outer.nodes;
    ghp_partition_release(&m->outer);
    m->outer = *found;
    m->searches_outer = m->staged = true;
    m->trial = trial;
}

enum ghp_status ghp_build_search_recompute(struct ghp_build_context *m)
{
    struct ghp_partition_job job = ghp_build_job(m, 0.95);
    const struct ghp_recompute_job recomputed = {.partition = &job,
                                                 .instance = &m->instance,
                                                 .domain = &m->domain,
                                                 .search_stages = m->request->pipeline_mode ==
                                                                  GHP_PIPELINE_MODE_AUTO};
    struct ghp_partition found = {0};

    if (!ghp_build_may_recompute(m)) return GHP_OK;
    job.best_s = best_so_far(m);
    m->kept_fits = isfinite(job.best_s);
    GHP_TRY(ghp_recompute_plan_compute(&recomputed, &found));
    m->recompute_bytes = found.least_bytes;
    take_trial(m, &found, GHP_TRIAL_RECOMPUTE);
    return GHP_OK;
}

enum ghp_status ghp_build_search_load_balance(struct ghp_build_context *m)
{
    const struct ghp_plan_request *w = m->request;
    const double *speed = ghp_speeds_of(&w->profile->speeds, w->problem.workers);
    struct ghp_partition_job job = ghp_build_job(m, 0.95);
    struct ghp_partition found = {0};

    if (speed == NULL || w->load_balance == GHP_LOAD_BALANCE_MODE_EQUAL || !ghp_build_may_try(w))
        return GHP_OK;
    job.best_s = best_so_far(m);
    GHP_TRY(ghp_load_balance_compute(&job, speed, &found));
    take_trial(m, &found, GHP_TRIAL_LOAD_BALANCE);
    return GHP_OK;
}
