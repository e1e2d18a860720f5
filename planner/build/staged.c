/* planner/build/staged.c - see build/staged.h. */
#include "planner/build/staged.h"

#include "core/plan/staging_text.h"

#include <stdlib.h>
#include <string.h>

const int64_t ghp_build_bucket_sizes[GHP_BUILD_BUCKET_SIZES] = {
    0,       1 << 18, 1 << 19, 1 << 20, 1 << 21,         1 << 22,
    1 << 23, 1 << 24, 1 << 25, 1 << 26, (int64_t)1 << 50};

enum ghp_status ghp_staged_given(const struct ghp_plan_request *request,
                                 const struct ghp_model *model, struct ghp_staging *staging)
{
    int workers = request->problem.workers, group;

    *staging = (struct ghp_staging){.micro_batches = request->micro_batches,
                                    .pipeline = request->pipeline};
    if (request->stages == NULL) return GHP_OK;
    GHP_TRY(ghp_staging_parse(request->stages, model, staging));
    group = ghp_staging_group(staging, workers);
    if (staging->n == 1 && staging->stage[0].workers != workers) group = staging->stage[0].workers;
    if (workers % group != 0 || (request->groups > 0 && request->groups * group != workers))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--stages '%s' has groups of %d workers, but there are %d workers%s; make "
                        "them fit",
                        request->stages, group, workers,
                        request->groups > 0 ? " and another number of --groups" : "");
    return GHP_OK;
}

/* The fastest bucket size: the search's, unless another one tried is faster and fits. */
static enum ghp_status tune(const struct ghp_plan_request *request, const struct ghp_lowering *how,
                            struct ghp_plan *plan)
{
    struct ghp_lowering trial = *how;
    struct ghp_prediction p;

    plan->bucket_bytes = how->bucket_bytes;
    GHP_TRY(ghp_plan_predict(how, plan->splits, request->profile, &plan->predicted));
    for (int s = 0; s < GHP_BUILD_BUCKET_SIZES && request->bucket_bytes == GHP_BUCKET_AUTO; ++s) {
        trial.bucket_bytes = ghp_build_bucket_sizes[s];
        GHP_TRY(ghp_plan_predict(&trial, plan->splits, request->profile, &p));
        if (request->memory_bytes > 0 && p.peak_bytes > request->memory_bytes) continue;
        if (p.step_s >= plan->predicted.step_s * (1 - GHP_BRANCH_SAME)) continue;
        plan->predicted = p;
        plan->bucket_bytes = trial.bucket_bytes;
    }
    return GHP_OK;
}

/* The plan's own copies of what its staging points to. */
static enum ghp_status copy_lists(const struct ghp_partition *a, struct ghp_plan *plan)
{
    size_t workers = (size_t)plan->problem.workers, layers = (size_t)plan->model.n_layers;

    if (a->staging.shares != NULL) {
        plan->shares = ghp_alloc(workers, sizeof *plan->shares);
        if (plan->shares == NULL) return GHP_NO_MEMORY();
        memcpy(plan->shares, a->staging.shares, workers * sizeof *plan->shares);
    }
    if (a->staging.recompute != NULL) {
        plan->recompute = ghp_alloc(layers, sizeof *plan->recompute);
        if (plan->recompute == NULL) return GHP_NO_MEMORY();
        memcpy(plan->recompute, a->staging.recompute, layers * sizeof *plan->recompute);
    }
    plan->staging.shares = plan->shares;
    plan->staging.recompute = plan->recompute;
    return GHP_OK;
}

enum ghp_status ghp_staged_adopt(const struct ghp_plan_request *request,
                                 const struct ghp_lowering *how, const struct ghp_partition *a,
                                 struct ghp_plan *plan)
{
    struct ghp_lowering staged = *how;

    plan->staging = a->staging;
    GHP_TRY(copy_lists(a, plan));
    memcpy(plan->splits, a->splits, (size_t)plan->model.n_layers * sizeof *plan->splits);
    plan->groups = a->staging.n > 1 ? plan->problem.workers /
                                          ghp_staging_group(&plan->staging, plan->problem.workers)
                   : request->groups > 0
                       ? request->groups
                       : ghp_plan_canonical_groups(&plan->model, plan->splits, plan->problem);
    plan->group_size = plan->problem.workers / plan->groups;
    if (plan->shares != NULL) /* groups of their own samples */
        plan->staging.speeds = ghp_speeds_of(&request->profile->speeds, plan->problem.workers);
    staged.staging = ghp_staging_trivial(&plan->staging) ? NULL : &plan->staging;
    return tune(request, &staged, plan);
}

/* Whether an earlier rank has the same shapes. */
static bool has_twin(const struct ghp_plan *plan, int rank)
{
    const struct ghp_staging *s = &plan->staging;
    int layers = plan->model.n_layers;
    struct ghp_placement own = ghp_placement_of(s, layers, plan->problem, rank);

    if (s->shares == NULL && s->n < 2) return rank > 0;
    for (int r = 0; r < rank; ++r) {
        struct ghp_placement other = ghp_placement_of(s, layers, plan->problem, r);

        if (other.stage == own.stage && other.problem.global_batch == own.problem.global_batch)
            return true;
    }
    return false;
}

enum ghp_status ghp_staged_subset(const struct ghp_profile *profile, struct ghp_plan *plan)
{
    struct ghp_lowering how = ghp_plan_lowering(plan, profile);
    struct ghp_program *programs = ghp_alloc((size_t)plan->problem.workers, sizeof *programs);
    enum ghp_status status = programs == NULL ? GHP_NO_MEMORY() : GHP_OK;
    int n = 0;

    for (int r = 0; r < plan->problem.workers && status == GHP_OK; ++r) {
        if (has_twin(plan, r)) continue;
        status = ghp_lower(&how, plan->splits, r, &programs[n]);
        n += status == GHP_OK;
    }
    if (status == GHP_OK) status = ghp_profile_subset_of(profile, programs, n, &plan->profile);
    for (int k = 0; k < n; ++k)
        ghp_program_release(&programs[k]);
    free(programs);
    if (status == GHP_OK && plan->shares != NULL)
        plan->staging.speeds = ghp_speeds_of(&plan->profile.speeds, plan->problem.workers);
    return status;
}
