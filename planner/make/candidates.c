/* planner/make/candidates.c - one function for each way to find plans; see make/candidates.h. */
#include "planner/make/candidates.h"

#include "core/base/clock.h"
#include "core/model/statistics.h"
#include "core/plan/staging_text.h"
#include "planner/make/failure.h"
#include "planner/make/recompute.h"
#include "planner/make/trust.h"
#include "planner/pipeline/heuristic.h"
#include "planner/pipeline/interleave.h"
#include "planner/pipeline/load_balance.h"
#include "planner/recompute/recompute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum ghp_strategy ghp_baseline_strategy(int baseline)
{
    static const enum ghp_strategy strategies[GHP_BASELINES] = {
        GHP_STRATEGY_DATA, GHP_STRATEGY_MODEL, GHP_STRATEGY_OWT};

    return strategies[baseline];
}

const struct ghp_search_result *ghp_candidates_shared(const struct ghp_plan_context *context,
                                                      const struct ghp_candidates *candidates)
{
    if (!ghp_request_has_stages(context->request))
        for (int b = 0; b < GHP_BASELINES; b++)
            if (ghp_baseline_strategy(b) == context->request->strategy)
                return &candidates->baseline[b].search;
    return &candidates->shared;
}

void ghp_candidates_count(const struct ghp_plan_context *context,
                          const struct ghp_candidates *candidates, int64_t *plans, int64_t *nodes)
{
    const struct ghp_search_result *shared = ghp_candidates_shared(context, candidates);

    *plans = shared->plans + candidates->stages.plans;
    *nodes = shared->nodes + candidates->stages.nodes;
    for (int t = 0; t < GHP_TRIAL_COUNT; t++) {
        *plans += candidates->trial[t].plans;
        *nodes += candidates->trial[t].nodes;
    }
}

void ghp_candidates_release(struct ghp_candidates *candidates)
{
    for (int b = 0; b < GHP_BASELINES; b++) {
        ghp_search_release(&candidates->baseline[b].search);
        ghp_partition_release(&candidates->baseline[b].recomputed);
        ghp_candidate_release(&candidates->baseline[b].plan);
        free(candidates->baseline[b].reason);
    }
    ghp_candidate_release(&candidates->local_data);
    ghp_candidate_release(&candidates->fsdp);
    ghp_search_release(&candidates->shared);
    ghp_partition_release(&candidates->stages);
    for (int t = 0; t < GHP_TRIAL_COUNT; t++)
        ghp_partition_release(&candidates->trial[t]);
    ghp_partition_release(&candidates->rules);
    *candidates = (struct ghp_candidates){0};
}

/* ---- without stages ---- */

/* Searches a domain, from the baselines that there are, till then. */
static enum ghp_status search(const struct ghp_plan_context *s, const struct ghp_candidates *before,
                              const struct ghp_domain *domain, double deadline_s,
                              struct ghp_search_result *result)
{
    size_t layers = (size_t)s->model->n_layers;
    int *start = ghp_alloc(GHP_BASELINES * layers, sizeof *start), n = 0;
    struct ghp_search_job job = {.instance = s->instance,
                                 .domain = domain,
                                 .limit_bytes = s->request->memory_bytes,
                                 .deadline_s = deadline_s,
                                 .gap = s->request->gap,
                                 .start = start,
                                 .solver = s->request->solver,
                                 .canonical = !s->request->suggestion};
    enum ghp_status status;

    if (start == NULL) return GHP_NO_MEMORY();
    for (int b = 0; b < GHP_BASELINES; b++)
        if (before->baseline[b].search.feasible)
            memcpy(start + (size_t)n++ * layers, before->baseline[b].search.kept[0].choice,
                   layers * sizeof *start);
    job.n_start = n;
    status = ghp_search_run(&job, result);
    free(start);
    return status;
}

/* Notes why a baseline is not there; other failures pass. */
static enum ghp_status note_reason(struct ghp_baseline_found *found, enum ghp_status status)
{
    if (status != GHP_ERR_INFEASIBLE) return status;
    found->reason = strdup(ghp_status_message());
    return found->reason == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* Fractions of the time limit for a baseline that a plan is only compared with: for its search, and for what to
 * recompute. */
static const double compared_fraction = 0.01, recomputed_fraction = 0.05;

/* When the search for a baseline ends. One that a plan is only compared with needs no proof, and its best plan is found
 * at once: with 9 s instead of 0.3 s, 34 networks and worker counts had the same, one 7 % slower ones. */
static double baseline_deadline_s(const struct ghp_plan_context *context, int baseline)
{
    double last_s = ghp_plan_context_deadline(context, 0.1 * (baseline + 1));

    return ghp_baseline_strategy(baseline) == context->request->strategy
               ? last_s
               : fmin(last_s, ghp_now_s() + compared_fraction * context->request->time_limit_s);
}

/* The fastest plan of a domain with layers recomputed.
 *
 * fraction   of the time limit, at whose end the search ends */
static enum ghp_status find_recomputed(const struct ghp_plan_context *s,
                                       const struct ghp_domain *domain, double fraction,
                                       double best_s, bool search_stages,
                                       struct ghp_partition *found)
{
    const struct ghp_partition_job job = ghp_plan_context_partition_job(s, fraction, best_s);
    const struct ghp_recompute_job recomputed = {.partition = &job,
                                                 .instance = s->instance,
                                                 .domain = domain,
                                                 .search_stages = search_stages};

    return ghp_recompute_plan_compute(&recomputed, found);
}

/* Why a layer has no split in the domain, if a batch of fewer samples than workers rules out data. */
static enum ghp_status check_domain(const struct ghp_plan_context *s,
                                    const struct ghp_domain *domain)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1};

    for (int v = 0; v < s->model->n_layers && ghp_problem_sharers(s->lowering.problem) > 1; v++)
        if (ghp_domain_count(domain, v) == 0 &&
            ghp_split_check(&s->model->layers[v], data, s->lowering.problem) != GHP_OK)
            return GHP_FAIL(GHP_ERR_INFEASIBLE, "%s", ghp_status_message());
    return GHP_OK;
}

/* The best plan of a baseline's domain that fits, with layers recomputed if none does without. */
static enum ghp_status find_within(const struct ghp_plan_context *s,
                                   const struct ghp_candidates *before,
                                   const struct ghp_domain *domain, int baseline,
                                   struct ghp_baseline_found *found)
{
    bool asked = ghp_baseline_strategy(baseline) == s->request->strategy;
    double now = (ghp_now_s() - s->began_s) / s->request->time_limit_s;
    double fraction = asked ? 0.9 : now + recomputed_fraction;
    struct ghp_search_result all;

    GHP_TRY(check_domain(s, domain));
    GHP_TRY(search(s, before, domain, baseline_deadline_s(s, baseline), &found->search));
    if (found->search.feasible) return ghp_candidate_of_search(s, &found->search, &found->plan);
    if (ghp_request_may_recompute(s->request))
        GHP_TRY(find_recomputed(s, domain, fraction, INFINITY, false, &found->recomputed));
    if (found->recomputed.found)
        return ghp_candidate_of_partition(s, &found->recomputed, &found->plan);
    all = found->search;
    ghp_fail_take_recomputed(found->recomputed.least_bytes, &all.least_bytes, &all.least_proven);
    return ghp_fail_memory(s, &all);
}

static bool takes_data(const struct ghp_plan_context *s)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1};

    for (int v = 0; v < s->model->n_layers; v++)
        if (ghp_instance_find(s->instance, v, data) < 0) return false;
    return true;
}

/* Data parallelism of a network by a synchroniser. */
static enum ghp_status find_data(const struct ghp_plan_context *s, const struct ghp_model *model,
                                 struct ghp_sync sync, struct ghp_candidate *found)
{
    struct ghp_plan_context own = *s;
    struct ghp_partition data = {.splits =
                                     ghp_alloc((size_t)s->model->n_layers, sizeof *data.splits)};
    enum ghp_status status;

    if (data.splits == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < s->model->n_layers; v++)
        data.splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    own.lowering.model = model;
    own.lowering.method.sync = sync;
    status = ghp_candidate_of_partition(&own, &data, found);
    found->sync = sync;
    free(data.splits);
    return status;
}

/* The better of data parallelism as found and by the request's other synchroniser. */
static enum ghp_status take_better_data(const struct ghp_plan_context *s,
                                        struct ghp_baseline_found *found)
{
    const struct ghp_plan_request *w = s->request;
    struct ghp_candidate other;

    if (w->data_sync.ops == NULL || !takes_data(s)) return GHP_OK;
    GHP_TRY(find_data(s, s->model, w->data_sync, &other));
    if (!ghp_candidate_fits(s, other.predicted.peak_bytes) ||
        (found->reason == NULL &&
         !ghp_trust_sync_gains(w->profile, w->simplify, &found->plan.predicted,
                               &other.predicted))) {
        ghp_candidate_release(&other);
        return GHP_OK;
    }
    ghp_candidate_release(&found->plan);
    found->plan = other;
    free(found->reason);
    found->reason = NULL;
    return GHP_OK;
}

enum ghp_status ghp_find_baseline(const struct ghp_plan_context *context,
                                  const struct ghp_candidates *before, int baseline,
                                  struct ghp_baseline_found *found)
{
    struct ghp_domain domain = {0};
    enum ghp_status status;

    GHP_TRY(ghp_domain_init(context->instance, &domain));
    status = ghp_strategy_restrict(ghp_baseline_strategy(baseline), &domain);
    if (status == GHP_OK) status = find_within(context, before, &domain, baseline, found);
    ghp_domain_release(&domain);
    if (status != GHP_OK) GHP_TRY(note_reason(found, status));
    return ghp_baseline_strategy(baseline) == GHP_STRATEGY_DATA ? take_better_data(context, found)
                                                                : GHP_OK;
}

/* The better of two, which is the first one afterwards. The other is zeroed. */
static void keep_better(const struct ghp_plan_context *s, struct ghp_candidate *first,
                        struct ghp_candidate *second)
{
    const struct ghp_plan_request *w = s->request;
    struct ghp_candidate given = *first;

    if (ghp_candidate_fits(s, second->predicted.peak_bytes) &&
        (!ghp_candidate_fits(s, given.predicted.peak_bytes) ||
         ghp_trust_sync_gains(w->profile, w->simplify, &given.predicted, &second->predicted))) {
        *first = *second;
        *second = given;
    }
    ghp_candidate_release(second);
}

/* Finds the best plan by data of the network with local statistics. */
static enum ghp_status find_local(const struct ghp_plan_context *s, const struct ghp_model *local,
                                  struct ghp_candidate *found)
{
    struct ghp_sync other = s->request->data_sync;
    struct ghp_candidate second;

    GHP_TRY(find_data(s, local, s->request->method.sync, found));
    if (other.ops != NULL) {
        GHP_TRY(find_data(s, local, other, &second));
        keep_better(s, found, &second);
    }
    if (!ghp_candidate_fits(s, found->predicted.peak_bytes)) ghp_candidate_release(found);
    return GHP_OK;
}

enum ghp_status ghp_find_local_data(const struct ghp_plan_context *context,
                                    struct ghp_candidate *found)
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(context->request->method.sync);
    struct ghp_model local;
    enum ghp_status status;

    *found = (struct ghp_candidate){0};
    if (context->request->decision_only || context->request->problem.workers == 1 ||
        (ops != &ghp_sync_allreduce && ops != &ghp_sync_sharded) || !takes_data(context) ||
        !ghp_model_has_global_statistics(context->model))
        return GHP_OK;
    GHP_TRY(ghp_model_parse(context->model->text, context->model->name, &local));
    status = ghp_model_set_statistics(&local, "local");
    if (status == GHP_OK) status = find_local(context, &local, found);
    ghp_model_release(&local);
    return status;
}

static bool same_splits(const struct ghp_plan_context *s, const struct ghp_candidate *found,
                        const struct ghp_split *splits)
{
    for (int v = 0; v < s->model->n_layers; v++)
        if (found->splits == NULL || !ghp_split_same(found->splits[v], splits[v])) return false;
    return true;
}

enum ghp_status ghp_find_fsdp(const struct ghp_plan_context *context,
                              const struct ghp_candidates *before, struct ghp_candidate *found)
{
    const struct ghp_plan_request *w = context->request;
    struct ghp_partition data = {0};
    enum ghp_status status = GHP_OK;

    *found = (struct ghp_candidate){0};
    if (w->decision_only || w->problem.workers == 1 || w->shardings >> 1 == 0 ||
        ghp_request_has_stages(w) || !takes_data(context))
        return GHP_OK;
    data.splits = ghp_alloc((size_t)context->model->n_layers, sizeof *data.splits);
    if (data.splits == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < context->model->n_layers; v++)
        data.splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    ghp_staging_shard(NULL, context->model, w->problem, GHP_SHARDING_PASS, data.splits);
    if (!same_splits(context, &before->baseline[0].plan, data.splits))
        status = ghp_candidate_of_partition(context, &data, found);
    free(data.splits);
    if (status == GHP_OK && found->splits != NULL &&
        !ghp_candidate_fits(context, found->predicted.peak_bytes))
        ghp_candidate_release(found);
    return status;
}

enum ghp_status ghp_find_shared(const struct ghp_plan_context *context,
                                const struct ghp_candidates *before,
                                struct ghp_search_result *found)
{
    double fraction = context->request->pipeline_mode == GHP_PIPELINE_MODE_AUTO ? 0.4
                      : ghp_request_may_recompute(context->request)             ? 0.6
                                                                                : 0.8;

    return search(context, before, &context->domain, ghp_plan_context_deadline(context, fraction),
                  found);
}

/* ---- stages ---- */

/* The staging that the request gives; n and micro_batches 0: none. */
static enum ghp_status read_staging(const struct ghp_plan_request *request,
                                    const struct ghp_model *model, struct ghp_staging *staging)
{
    int workers = request->problem.workers, group;

    *staging = (struct ghp_staging){.micro_batches = request->micro_batches,
                                    .pipeline = request->pipeline};
    if (request->stages == NULL) return GHP_OK;
    GHP_TRY(ghp_staging_parse(request->stages, model, staging));
    group = ghp_staging_group(staging, workers);
    if (workers % group != 0 || (request->groups > 0 && request->groups * group != workers))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--stages '%s' has groups of %d workers, but there are %d workers%s; make "
                        "them fit",
                        request->stages, group, workers,
                        request->groups > 0 ? " and another number of --groups" : "");
    return GHP_OK;
}

enum ghp_status ghp_find_given_stages(const struct ghp_plan_context *context,
                                      struct ghp_partition *found)
{
    double fraction = ghp_request_may_recompute_given(context->request) ? 0.4 : 0.9;
    struct ghp_partition_job job = ghp_plan_context_partition_job(context, fraction, INFINITY);
    struct ghp_staging staging;

    GHP_TRY(read_staging(context->request, context->model, &staging));
    return ghp_partition_one(&job, &staging, context->request->force, found);
}

/* A plan with the layers to recompute in it, both handed over. */
static void take_recomputed(struct ghp_partition *plan, struct ghp_recompute *recomputed,
                            struct ghp_partition *found)
{
    *found = *plan;
    *plan = (struct ghp_partition){0};
    found->recompute = recomputed->recompute;
    recomputed->recompute = NULL;
    found->staging.recompute = found->recompute;
    found->step_s = recomputed->step_s;
    found->peak_bytes = recomputed->peak_bytes;
}

enum ghp_status ghp_find_given_recomputed(const struct ghp_plan_context *context, double best_s,
                                          struct ghp_partition *found)
{
    struct ghp_partition_job job = ghp_plan_context_partition_job(context, 0.6, best_s);
    struct ghp_recompute recomputed = {0};
    struct ghp_partition plan;
    struct ghp_staging staging;
    enum ghp_status status;

    *found = (struct ghp_partition){.bound_s = INFINITY};
    GHP_TRY(read_staging(context->request, context->model, &staging));
    job.limit_bytes = 0;
    GHP_TRY(ghp_partition_one(&job, &staging, context->request->force, &plan));
    if (!plan.found || plan.step_s >= best_s) {
        ghp_partition_release(&plan);
        return GHP_OK;
    }
    job = ghp_plan_context_partition_job(context, 0.9, best_s);
    status =
        ghp_recompute_compute(&job, &plan.staging, plan.splits, GHP_RECOMPUTE_ALL, &recomputed);
    if (status == GHP_OK && recomputed.found) take_recomputed(&plan, &recomputed, found);
    found->plans += recomputed.plans;
    found->least_bytes = recomputed.least_bytes;
    ghp_recompute_release(&recomputed);
    ghp_partition_release(&plan);
    return status;
}

static enum ghp_status predict(const struct ghp_plan_context *s, const struct ghp_partition *found,
                               struct ghp_prediction *predicted)
{
    struct ghp_lowering lowering = s->lowering;

    if (!found->found) return GHP_OK;
    lowering.staging = ghp_staging_or_none(&found->staging);
    return ghp_plan_predict(&lowering, found->splits, s->request->profile, predicted);
}

enum ghp_status ghp_find_stages(const struct ghp_plan_context *context,
                                const struct ghp_search_result *shared, double best_s,
                                struct ghp_partition *found, struct ghp_prediction *predicted)
{
    double fraction = ghp_request_may_recompute(context->request) ? 0.7 : 0.9;
    struct ghp_partition_job job = ghp_plan_context_partition_job(context, fraction, best_s);
    struct ghp_split *start = ghp_alloc((size_t)context->model->n_layers, sizeof *start);
    enum ghp_status status;

    if (start == NULL) return GHP_NO_MEMORY();
    if (shared->n_kept > 0) {
        ghp_instance_splits(context->instance, shared->kept[0].choice, start);
        job.start = start;
    }
    status = ghp_partition_compute(&job, found);
    free(start);
    return status == GHP_OK ? predict(context, found, predicted) : status;
}

/* ---- by trial, and by rules ---- */

enum ghp_status ghp_find_interleaved(const struct ghp_plan_context *context, double best_s,
                                     struct ghp_partition *found)
{
    double fraction = ghp_request_may_recompute(context->request) ? 0.75 : 0.93;
    const struct ghp_partition_job job = ghp_plan_context_partition_job(context, fraction, best_s);

    return ghp_interleave_compute(&job, found);
}

enum ghp_status ghp_find_recomputed(const struct ghp_plan_context *context, double best_s,
                                    struct ghp_partition *found)
{
    return find_recomputed(context, &context->domain, 0.95, best_s,
                           context->request->pipeline_mode == GHP_PIPELINE_MODE_AUTO, found);
}

enum ghp_status ghp_better_data(const struct ghp_plan_context *context,
                                const struct ghp_partition *recomputed,
                                struct ghp_baseline_found *data)
{
    const struct ghp_staging *staging = &recomputed->staging;
    struct ghp_candidate candidate;

    if (!recomputed->found || ghp_staging_stages(staging) > 1 ||
        ghp_staging_micro_batches(staging) > 1 ||
        (data->reason == NULL && data->plan.predicted.step_s <= recomputed->step_s))
        return GHP_OK;
    for (int v = 0; v < context->model->n_layers; v++)
        if (recomputed->splits[v].kind != GHP_SPLIT_DATA) return GHP_OK;
    GHP_TRY(ghp_candidate_of_partition(context, recomputed, &candidate));
    ghp_candidate_release(&data->plan);
    data->plan = candidate;
    free(data->reason);
    data->reason = NULL;
    return GHP_OK;
}

enum ghp_status ghp_find_load_balance(const struct ghp_plan_context *context, double best_s,
                                      struct ghp_partition *found)
{
    const struct ghp_plan_request *w = context->request;
    const double *speed = ghp_speeds_of(&w->profile->speeds, w->problem.workers);
    const struct ghp_partition_job job = ghp_plan_context_partition_job(context, 0.95, best_s);

    if (speed == NULL || w->load_balance == GHP_LOAD_BALANCE_MODE_EQUAL ||
        ghp_problem_sharers(w->problem) > 1)
        return GHP_OK;
    return ghp_load_balance_compute(&job, speed, found);
}

enum ghp_status ghp_find_rules(const struct ghp_plan_context *context, struct ghp_partition *found,
                               struct ghp_prediction *predicted)
{
    /* the rest of the time is for telling */
    const struct ghp_partition_job job = ghp_plan_context_partition_job(context, 0.97, INFINITY);

    GHP_TRY(ghp_heuristic(&job, found));
    return predict(context, found, predicted);
}
