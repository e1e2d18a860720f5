/* planner/build/trials.c - what is looked for by trial, and no proof is about: layers made again, unequal shares. */
#include "planner/build/build_private.h"

#include "planner/build/recompute.h"
#include "planner/pipeline/load_balance.h"

#include <math.h>
#include <string.h>

static double best_so_far(const struct ghp_making *m)
{
    if (m->staged) return m->outer.step_s;
    return m->own.feasible ? m->own.kept[0].step_s : INFINITY;
}

/* Takes what was found by trial in the place of the best so far, where it is surely faster. */
static void take_trial(struct ghp_making *m, struct ghp_allocation *found, enum ghp_trial trial)
{
    double before_s = best_so_far(m);
    double margin_s = m->wishes->simplify ? m->plan->baselines[0].predicted.error_s : 0;

    m->own.plans += found->plans;
    m->own.nodes += found->nodes;
    found->plans = found->nodes = 0;
    if (!found->found || before_s - found->step_s <= margin_s) {
        ghp_allocation_release(found);
        return;
    }
    if (m->trial == GHP_TRIAL_NONE) m->before_trial = ghp_making_proof(m);
    m->own.plans += m->outer.plans;
    m->own.nodes += m->outer.nodes;
    ghp_allocation_release(&m->outer);
    m->outer = *found;
    m->searches_outer = m->staged = true;
    m->trial = trial;
}

enum ghp_status ghp_making_search_remade(struct ghp_making *m)
{
    struct ghp_allocate_job job = ghp_making_job(m, 0.95);
    const struct ghp_remade_job remade = {.allocate = &job,
                                          .instance = &m->instance,
                                          .domain = &m->domain,
                                          .all_roles = m->wishes->all_roles};
    struct ghp_allocation found = {0};

    if (!ghp_making_may_remake(m)) return GHP_OK;
    job.best_s = best_so_far(m);
    m->kept_fits = isfinite(job.best_s);
    GHP_TRY(ghp_remade_find(&remade, &found));
    m->remade_bytes = found.least_bytes;
    take_trial(m, &found, GHP_TRIAL_REMADE);
    return GHP_OK;
}

enum ghp_status ghp_making_search_uneven(struct ghp_making *m)
{
    const struct ghp_wishes *w = m->wishes;
    const double *speed = ghp_speeds_of(&w->profile->speeds, w->extent.workers);
    struct ghp_allocate_job job = ghp_making_job(m, 0.95);
    struct ghp_allocation found = {0};

    if (speed == NULL || w->even_shares || !ghp_making_may_try(w)) return GHP_OK;
    job.best_s = best_so_far(m);
    GHP_TRY(ghp_uneven_find(&job, speed, &found));
    take_trial(m, &found, GHP_TRIAL_UNEVEN);
    return GHP_OK;
}
