/* planner/build/pipeline.c - the search over stages and micro-batches: those that were asked for, or all. */
#include "planner/build/build_private.h"

#include "planner/build/staged.h"

#include <math.h>

struct ghp_allocate_job ghp_making_job(const struct ghp_making *m, double share)
{
    return (struct ghp_allocate_job){.how = &m->how,
                                     .profile = m->wishes->profile,
                                     .space = m->wishes->space,
                                     .limit_bytes = m->wishes->memory_bytes,
                                     .deadline_s = ghp_making_deadline(m, share),
                                     .gap = m->wishes->gap,
                                     .solver = m->wishes->solver,
                                     .best_s = m->own.feasible ? m->own.kept[0].step_s : INFINITY};
}

enum ghp_status ghp_making_search_given(struct ghp_making *m)
{
    struct ghp_allocate_job job = ghp_making_job(m, 0.9);
    struct ghp_staging staging;

    GHP_TRY(ghp_staged_given(m->wishes, &m->plan->model, &staging));
    GHP_TRY(ghp_allocate_one(&job, &staging, m->wishes->force, &m->outer));
    m->own.bound_s = INFINITY;
    m->own.closed = m->searches_outer = m->staged = true;
    return m->outer.found ? GHP_OK : ghp_making_fail_staged(m);
}

enum ghp_status ghp_making_search_roles(struct ghp_making *m)
{
    struct ghp_allocate_job job = ghp_making_job(m, ghp_making_may_remake(m) ? 0.7 : 0.9);
    struct ghp_lowering how = m->how;
    struct ghp_prediction p = {0};
    double shared_s = m->own.feasible ? m->own.kept[0].step_s : INFINITY;

    m->searches_outer = true;
    GHP_TRY(ghp_allocate(&job, &m->outer));
    if (!m->outer.found) return GHP_OK;
    how.staging = &m->outer.staging;
    GHP_TRY(ghp_plan_predict(&how, m->outer.splits, m->wishes->profile, &p));
    m->staged = !m->wishes->simplify || shared_s - p.step_s > p.error_s;
    return GHP_OK;
}
