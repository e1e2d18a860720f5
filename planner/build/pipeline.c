/* planner/build/pipeline.c - the search over stages and micro-batches: those that were asked for, or all. */
#include "planner/build/build_private.h"

#include "planner/build/staged.h"

#include <math.h>

struct ghp_partition_job ghp_build_job(const struct ghp_build_context *m, double share)
{
    return (struct ghp_partition_job){.how = &m->how,
                                      .profile = m->request->profile,
                                      .space = m->request->space,
                                      .limit_bytes = m->request->memory_bytes,
                                      .deadline_s = ghp_build_deadline(m, share),
                                      .gap = m->request->gap,
                                      .solver = m->request->solver,
                                      .best_s = m->own.feasible ? m->own.kept[0].step_s : INFINITY};
}

enum ghp_status ghp_build_search_given(struct ghp_build_context *m)
{
    struct ghp_partition_job job = ghp_build_job(m, 0.9);
    struct ghp_staging staging;

    GHP_TRY(ghp_staged_given(m->request, &m->plan->model, &staging));
    GHP_TRY(ghp_partition_one(&job, &staging, m->request->force, &m->outer));
    m->own.bound_s = INFINITY;
    m->own.proven = m->searches_outer = m->staged = true;
    return m->outer.found ? GHP_OK : ghp_build_fail_staged(m);
}

enum ghp_status ghp_build_search_stages(struct ghp_build_context *m)
{
    struct ghp_partition_job job = ghp_build_job(m, ghp_build_may_recompute(m) ? 0.7 : 0.9);
    struct ghp_lowering how = m->how;
    struct ghp_prediction p = {0};
    double shared_s = m->own.feasible ? m->own.kept[0].step_s : INFINITY;

    m->searches_outer = true;
    GHP_TRY(ghp_partition_compute(&job, &m->outer));
    if (!m->outer.found) return GHP_OK;
    how.staging = &m->outer.staging;
    GHP_TRY(ghp_plan_predict(&how, m->outer.splits, m->request->profile, &p));
    m->staged = !m->request->simplify || shared_s - p.step_s > p.error_s;
    return GHP_OK;
}
