/* planner/make/sync_choice.c - see make/sync_choice.h. */
#include "planner/make/sync_choice.h"

#include "core/base/clock.h"
#include "planner/make/candidate.h"
#include "planner/make/certify.h"
#include "planner/make/shard_groups.h"
#include "planner/make/trust.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* of the time, for plans with all-reduce if both are searched */
static const double first_fraction = 0.7;
/* The same if parameters may be sharded: gradients sharded save what a sharded update does, and more. */
static const double sharding_fraction = 0.9;
/* the same if the sharded update is likely to replace it */
static const double likely_fraction = 0.3;
static const double groups_fraction = 0.6;         /* before shards within groups are tried */
static const double least_fraction = 0.1;          /* for each later search */
static const int64_t usual_bucket_bytes = 1 << 24; /* tried first */
static const double guess_fraction = 0.05;         /* for the best buckets of data parallelism */

static const struct ghp_sync allreduce = {.ops = &ghp_sync_allreduce},
                             sharded_update = {.ops = &ghp_sync_sharded};

/* The plan's splits by another synchroniser. */
static enum ghp_status predict_by(const struct ghp_plan_request *request,
                                  const struct ghp_plan *plan, struct ghp_sync sync,
                                  struct ghp_prediction *predicted)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, request->profile);

    lowering.method.sync = sync;
    return ghp_plan_predict(&lowering, plan->splits, request->profile, predicted);
}

/* Gives a lowering of these splits the fastest bucket size: its own, or one of those tried till then. */
static enum ghp_status find_bucket(struct ghp_lowering *lowering, const struct ghp_split *splits,
                                   const struct ghp_profile *profile, double deadline_s)
{
    int64_t best_bytes = lowering->method.bucket_bytes;
    double best_s = INFINITY, step_s;

    for (int b = -1; b < GHP_CANDIDATE_BUCKET_SIZES; b++) {
        if (b >= 0 && ghp_now_s() > deadline_s) break;
        if (b >= 0) lowering->method.bucket_bytes = ghp_candidate_bucket_sizes[b];
        GHP_TRY(ghp_plan_predict_step(lowering, splits, profile, &step_s, NULL));
        if (step_s >= best_s) continue;
        best_s = step_s;
        best_bytes = lowering->method.bucket_bytes;
    }
    lowering->method.bucket_bytes = best_bytes;
    return GHP_OK;
}

/* The plan's splits with all-reduces, in buckets as large as the plan's, or of the best size if the request leaves it
 * open. */
static enum ghp_status predict_allreduce(const struct ghp_plan_request *request,
                                         const struct ghp_plan *plan, double deadline_s,
                                         struct ghp_prediction *predicted)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, request->profile);

    lowering.method.sync = allreduce;
    if (request->method.bucket_bytes == GHP_BUCKET_AUTO)
        GHP_TRY(find_bucket(&lowering, plan->splits, request->profile, deadline_s));
    return ghp_plan_predict(&lowering, plan->splits, request->profile, predicted);
}

/* Notes what the sharded update saves and costs compared with an all-reduce of the same splits. `why` is appended, and
 * may be empty. */
static enum ghp_status note_gain(const struct ghp_plan_request *request, double deadline_s,
                                 const char *why, struct ghp_plan *plan)
{
    struct ghp_prediction all;
    double cost_s, saved;
    char text[512];

    GHP_TRY(predict_allreduce(request, plan, deadline_s, &all));
    cost_s = plan->predicted.step_s - all.step_s;
    saved = (double)(all.peak_bytes - plan->predicted.peak_bytes) / (1 << 20);
    snprintf(
        text, sizeof text,
        "sharded update: compared with an all-reduce of the same splits it saves %.2f MiB a worker "
        "%s %.3f ms a step%s",
        saved, cost_s < 0 ? "and" : "but costs", 1e3 * fabs(cost_s), why);
    return ghp_certify_text(&plan->certificate.sync, text);
}

static enum ghp_status search_sharded(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    struct ghp_plan_request own = *request;

    own.method.sync = sharded_update;
    if (request->method.sync.ops == NULL) own.data_sync = allreduce;
    return ghp_plan_make(&own, plan);
}

static enum ghp_status make_sharded(const struct ghp_plan_request *request, const char *why,
                                    struct ghp_plan *plan)
{
    double deadline_s = ghp_now_s() + request->time_limit_s;
    enum ghp_status status;

    GHP_TRY(search_sharded(request, plan));
    status = note_gain(request, deadline_s, why, plan);
    if (status != GHP_OK) ghp_plan_release(plan);
    return status;
}

static bool is_faster(const struct ghp_plan_request *request, const struct ghp_prediction *plan,
                      const struct ghp_prediction *other)
{
    return ghp_trust_sync_gains(request->profile, request->simplify, plan, other);
}

/* Whether data parallelism is better with the sharded update, and a plan with all-reduce that was not compared with it
 * is not surely faster. */
static bool data_is_better(const struct ghp_plan_request *request, const struct ghp_plan *plan,
                           const struct ghp_plan *sharded)
{
    const struct ghp_baseline *all = &plan->baselines[0], *data = &sharded->baselines[0];
    double error_s = 0;

    if (!ghp_request_is_free(request) || !data->feasible || data->sync.ops != NULL ||
        all->sync.ops != NULL ||
        (all->feasible && !is_faster(request, &all->predicted, &data->predicted)))
        return false;
    if (request->simplify)
        error_s = ghp_trust_margin_error_s(request->profile, &plan->predicted, &data->predicted);
    return data->predicted.step_s - plan->predicted.step_s <= error_s;
}

/* Whether plans with a sharded update are worth a search: its decision alone, if the memory may bind. */
static enum ghp_status try_sharded(const struct ghp_plan_request *request,
                                   const struct ghp_plan *plan, bool *worth)
{
    struct ghp_plan_request own = *request;
    struct ghp_prediction sharded;
    struct ghp_plan trial;
    enum ghp_status status;

    GHP_TRY(predict_by(request, plan, sharded_update, &sharded));
    *worth = is_faster(request, &plan->predicted, &sharded);
    if (*worth || request->memory_bytes == 0 || request->shardings != 0) return GHP_OK;
    own.method.sync = sharded_update;
    own.decision_only = true;
    own.time_limit_s = least_fraction * request->time_limit_s;
    status = ghp_plan_make(&own, &trial);
    if (status == GHP_ERR_INFEASIBLE) return GHP_OK;
    GHP_TRY(status);
    *worth = is_faster(request, &plan->predicted, &trial.predicted);
    ghp_plan_release(&trial);
    return GHP_OK;
}

/* A later search's part of the time. */
static double left_s(const struct ghp_plan_request *request, double began_s)
{
    return fmax(request->time_limit_s - (ghp_now_s() - began_s),
                least_fraction * request->time_limit_s);
}

static bool is_better(const struct ghp_plan_request *request, const struct ghp_plan *plan,
                      const struct ghp_plan *sharded)
{
    return is_faster(request, &plan->predicted, &sharded->predicted) ||
           plan->method.sync.ops != NULL || data_is_better(request, plan, sharded);
}

/* In place of a plan with all-reduce if it is surely faster, or data parallelism is better with it. */
static enum ghp_status replace(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    double deadline_s = ghp_now_s() + request->time_limit_s;
    char why[160];
    bool taken;

    snprintf(why, sizeof why, "; the fastest plan with all-reduce%s takes %.3f ms",
             request->memory_bytes > 0 ? " that fits the memory" : "",
             1e3 * plan->predicted.step_s);
    GHP_TRY(ghp_plan_replace(search_sharded, is_better, request, plan, &taken));
    return taken ? note_gain(request, deadline_s, why, plan) : GHP_OK;
}

/* All layers by data. */
static enum ghp_status predict_data(const struct ghp_plan_request *request,
                                    const struct ghp_model *model, struct ghp_sync sync,
                                    double deadline_s, struct ghp_prediction *predicted)
{
    struct ghp_lowering lowering = ghp_lowering_of(model, request->problem, request->profile);
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);
    enum ghp_status status = GHP_OK;

    if (splits == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < model->n_layers; v++)
        splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    lowering.method = request->method;
    lowering.method.sync = sync;
    if (request->method.bucket_bytes == GHP_BUCKET_AUTO)
        lowering.method.bucket_bytes = usual_bucket_bytes;
    if (request->method.bucket_bytes == GHP_BUCKET_AUTO)
        status = find_bucket(&lowering, splits, request->profile, deadline_s);
    if (status == GHP_OK) status = ghp_plan_predict(&lowering, splits, request->profile, predicted);
    free(splits);
    return status;
}

/* Whether data parallelism is faster with the sharded update: then so is the best plan, most often. */
static enum ghp_status guess_sharded(const struct ghp_plan_request *request, bool *likely)
{
    double deadline_s = ghp_now_s() + guess_fraction * request->time_limit_s;
    struct ghp_model model;
    struct ghp_prediction all, sharded;
    enum ghp_status status;

    *likely = false;
    GHP_TRY(ghp_request_open_model(request, &model));
    status = ghp_request_check(request);
    if (status == GHP_OK) status = ghp_profile_check_model(request->profile, &model);
    if (status == GHP_OK) status = predict_data(request, &model, allreduce, deadline_s, &all);
    if (status == GHP_OK)
        status = predict_data(request, &model, sharded_update, deadline_s, &sharded);
    if (status == GHP_OK) *likely = is_faster(request, &all, &sharded);
    ghp_model_release(&model);
    return GHP_OK; /* what is wrong with the request the search itself will say */
}

/* The plan with all-reduce, its decision alone if the sharded update is likely to replace it. */
static enum ghp_status make_allreduce(const struct ghp_plan_request *request, bool likely,
                                      struct ghp_plan *plan)
{
    struct ghp_plan_request own = *request;

    if (!likely && request->strategy == GHP_STRATEGY_AUTO) own.data_sync = sharded_update;
    own.decision_only = own.decision_only || likely;
    if (likely)
        own.time_limit_s *= likely_fraction;
    else if (request->memory_bytes > 0)
        own.time_limit_s *= request->shardings != 0 ? sharding_fraction : first_fraction;
    return ghp_plan_make(&own, plan);
}

static enum ghp_status choose(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    struct ghp_plan_request own = *request;
    double began_s = ghp_now_s();
    bool worth = false, likely = false;
    enum ghp_status status;

    if (request->strategy == GHP_STRATEGY_AUTO && request->shardings == 0)
        GHP_TRY(guess_sharded(request, &likely));
    status = make_allreduce(request, likely, plan);
    own.time_limit_s = left_s(request, began_s);
    if (status == GHP_ERR_INFEASIBLE && request->memory_bytes > 0)
        return make_sharded(&own, "; no plan with all-reduce fits the memory", plan);
    if (status != GHP_OK || request->strategy != GHP_STRATEGY_AUTO) return status;
    if (likely || plan->method.sync.ops != NULL)
        worth = true;
    else
        status = try_sharded(&own, plan, &worth);
    own.time_limit_s = left_s(request, began_s);
    if (status == GHP_OK && worth) status = replace(&own, plan);
    if (status != GHP_OK) ghp_plan_release(plan);
    if (status != GHP_OK || !likely || plan->method.sync.ops == &ghp_sync_sharded) return status;
    ghp_plan_release(plan); /* the guess was wrong */
    own.data_sync = sharded_update;
    own.time_limit_s = left_s(request, began_s);
    return ghp_plan_make(&own, plan);
}

/* Every layer by data on every worker, with as many samples as the others. */
static enum ghp_status make_by_data(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    struct ghp_plan_request own = *request;
    char text[GHP_SYNC_TEXT_BYTES];

    ghp_sync_format(request->method.sync, text);
    if (request->pipeline_mode != GHP_PIPELINE_MODE_OFF || request->stages != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--sync %s wants every layer on each worker; leave --stages and --pipeline "
                        "out, or use --sync allreduce",
                        text);
    if (request->strategy != GHP_STRATEGY_AUTO && request->strategy != GHP_STRATEGY_DATA)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--sync %s wants every layer by data; use --strategy data, or --sync "
                        "allreduce",
                        text);
    if (request->problem.workers < ghp_sync_ops_of(request->method.sync)->least_workers)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--sync %s wants at least %d workers, who meet each other, and there is "
                        "%d; give --workers %d or more, or use --sync allreduce",
                        text, ghp_sync_ops_of(request->method.sync)->least_workers,
                        request->problem.workers,
                        ghp_sync_ops_of(request->method.sync)->least_workers);
    if (request->force == NULL) own.strategy = GHP_STRATEGY_DATA;
    own.load_balance = GHP_LOAD_BALANCE_MODE_EQUAL;
    return ghp_plan_make(&own, plan);
}

static enum ghp_status make_synced(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    if (request->method.sync.ops == &ghp_sync_sharded) return make_sharded(request, "", plan);
    if (ghp_sync_wants_data(request->method.sync)) return make_by_data(request, plan);
    if (request->method.sync.ops != NULL || request->problem.workers == 1)
        return ghp_plan_make(request, plan);
    return choose(request, plan);
}

static enum ghp_status make_grouped(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    struct ghp_plan_request own = *request;
    double began_s = ghp_now_s();
    enum ghp_status status;

    if (!ghp_shard_groups_open(request)) return make_synced(request, plan);
    own.time_limit_s *= groups_fraction;
    GHP_TRY(make_synced(&own, plan));
    if (plan->method.sync.ops == &ghp_sync_sharded) return GHP_OK;
    own.time_limit_s = left_s(request, began_s);
    status = ghp_shard_groups_try(&own, plan);
    if (status != GHP_OK) ghp_plan_release(plan);
    return status;
}

enum ghp_status ghp_plan_make_synced(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    return ghp_plan_make_within(make_grouped, request, plan);
}
