/* planner/make/shard_groups.c - see make/shard_groups.h. */
#include "planner/make/shard_groups.h"

#include "core/base/clock.h"
#include "planner/make/certify.h"
#include "planner/make/make.h"
#include "planner/make/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node's workers, the least group. */
static int least_group(const struct ghp_plan_request *request)
{
    return ghp_machine_workers_per_node(&request->profile->machine, request->problem.workers);
}

bool ghp_shard_groups_open(const struct ghp_plan_request *request)
{
    int least = least_group(request);

    return request->shardings == (1u << GHP_SHARDING_COUNT) - 1 &&
           request->method.shard_within == 0 &&
           (request->strategy == GHP_STRATEGY_AUTO || request->strategy == GHP_STRATEGY_DATA) &&
           request->pipeline_mode == GHP_PIPELINE_MODE_OFF && request->stages == NULL &&
           !request->suggestion && least > 1 && least < request->problem.workers &&
           request->problem.workers % least == 0;
}

/* The least group of at least `group` workers in which the plan's own splits are faster by enough, and fit the memory
 * if all parameters are gathered for each pass; 0: none is.
 *
 * splits   of the plan; n_layers, scratch */
static enum ghp_status find_group(const struct ghp_plan_request *request,
                                  const struct ghp_plan *plan, struct ghp_split *splits, int *group)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, request->profile);
    struct ghp_prediction predicted;
    int64_t limit = request->memory_bytes > 0 ? request->memory_bytes : request->worker_bytes;
    int workers = request->problem.workers;

    memcpy(splits, plan->splits, (size_t)plan->model.n_layers * sizeof *splits);
    ghp_staging_shard(lowering.staging, &plan->model, plan->problem, GHP_SHARDING_PASS, splits);
    for (; *group < workers && workers % *group == 0; *group *= 2) {
        lowering.method.shard_within = *group;
        GHP_TRY(ghp_plan_predict(&lowering, plan->splits, request->profile, &predicted));
        if (!ghp_trust_sync_gains(request->profile, request->simplify, &plan->predicted,
                                  &predicted))
            continue;
        if (limit == 0 || predicted.peak_bytes <= limit) return GHP_OK;
        GHP_TRY(ghp_plan_predict(&lowering, splits, request->profile, &predicted));
        if (predicted.peak_bytes <= limit) return GHP_OK;
    }
    *group = 0;
    return GHP_OK;
}

/* What the groups gain, in the certificate.
 *
 * all_s   of the plan sharded over all workers */
static enum ghp_status note_gain(double all_s, struct ghp_plan *plan)
{
    char text[160];

    snprintf(text, sizeof text,
             "sharded within groups of %d workers: sharded over all %d, the fastest plan that was "
             "found takes %.3f ms",
             plan->method.shard_within, plan->problem.workers, 1e3 * all_s);
    return ghp_certify_text(&plan->certificate.sync, text);
}

static bool is_faster(const struct ghp_plan_request *request, const struct ghp_plan *plan,
                      const struct ghp_plan *other)
{
    return ghp_trust_sync_gains(request->profile, request->simplify, &plan->predicted,
                                &other->predicted);
}

/* A plan within groups of this size in place of the one that is there, if it is faster. */
static enum ghp_status try_group(const struct ghp_plan_request *request, int group,
                                 struct ghp_plan *plan, bool *taken)
{
    struct ghp_plan_request own = *request;
    double all_s = plan->predicted.step_s;

    own.method.shard_within = group;
    GHP_TRY(ghp_plan_replace(ghp_plan_make, is_faster, &own, plan, taken));
    return *taken ? note_gain(all_s, plan) : GHP_OK;
}

enum ghp_status ghp_shard_groups_try(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    double deadline_s = ghp_now_s() + request->time_limit_s;
    struct ghp_plan_request own = *request;
    struct ghp_split *splits = ghp_alloc((size_t)plan->model.n_layers, sizeof *splits);
    enum ghp_status status = splits != NULL ? GHP_OK : GHP_NO_MEMORY();
    bool taken = false;

    for (int group = least_group(request); status == GHP_OK && !taken; group *= 2) {
        own.time_limit_s = deadline_s - ghp_now_s();
        if (own.time_limit_s <= 0) break;
        status = find_group(request, plan, splits, &group);
        if (group == 0) break;
        if (status == GHP_OK) status = try_group(&own, group, plan, &taken);
    }
    free(splits);
    return status;
}
