/* planner/make/make.c - the order in which a plan is made; make/make.h has it. */
#include "planner/make/make.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "planner/make/failure.h"
#include "planner/make/formats.h"
#include "planner/make/missing.h"
#include "planner/make/write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Least fractions of the time limit for a plan that is made again: in other formats, and within the machine's
 * memory. */
static const double least_fraction = 0.05, again_fraction = 0.5;

/* One way through the steps. */
struct attempt {
    struct ghp_plan_request request; /* with what is left of the time */
    struct ghp_plan_context context;
    struct ghp_candidates candidates;
    struct ghp_choice choice;
};

/* ---- candidates ---- */

static enum ghp_status find_baselines(const struct ghp_plan_context *s, struct ghp_candidates *c)
{
    for (int b = 0; b < GHP_BASELINES && s->request->suggestion; b++) {
        c->baseline[b].reason = strdup("it was not looked for");
        if (c->baseline[b].reason == NULL) return GHP_NO_MEMORY();
    }
    for (int b = 0; b < GHP_BASELINES && !s->request->suggestion; b++) {
        struct ghp_baseline_found found = {0};
        enum ghp_status status = ghp_find_baseline(s, c, b, &found);

        c->baseline[b] = found;
        GHP_TRY(status);
        if (s->request->strategy == ghp_baseline_strategy(b) && found.reason != NULL &&
            !ghp_request_has_stages(s->request))
            return GHP_FAIL(GHP_ERR_INFEASIBLE, "%s", found.reason);
        if (s->request->strategy != ghp_baseline_strategy(b)) continue;
        c->trial[GHP_TRIAL_RECOMPUTE] = found.recomputed; /* the plan asked for */
        c->baseline[b].recomputed = (struct ghp_partition){0};
    }
    return GHP_OK;
}

/* Virtual stages, layers recomputed, then unequal shares. */
static enum ghp_status find_by_trial(const struct ghp_plan_context *s, struct ghp_candidates *c)
{
    struct ghp_partition *recomputed = &c->trial[GHP_TRIAL_RECOMPUTE];
    struct ghp_partition *balanced = &c->trial[GHP_TRIAL_LOAD_BALANCE];

    if (s->request->pipeline_mode == GHP_PIPELINE_MODE_AUTO)
        GHP_TRY(
            ghp_find_interleaved(s, ghp_lead_of(s, c).step_s, &c->trial[GHP_TRIAL_INTERLEAVED]));
    if (ghp_request_may_recompute(s->request))
        GHP_TRY(ghp_find_recomputed(s, ghp_lead_of(s, c).step_s, recomputed));
    GHP_TRY(ghp_better_data(s, recomputed, &c->baseline[0]));
    if (!isfinite(ghp_lead_of(s, c).step_s))
        return ghp_fail_all(s, &c->shared, &c->stages, recomputed);
    return ghp_request_may_try(s->request)
               ? ghp_find_load_balance(s, ghp_lead_of(s, c).step_s, balanced)
               : GHP_OK;
}

/* Plans of the stages and micro-batches given. */
static enum ghp_status find_given(const struct ghp_plan_context *s, struct ghp_candidates *c)
{
    struct ghp_partition *recomputed = &c->trial[GHP_TRIAL_RECOMPUTE];

    c->stages_searched = true;
    GHP_TRY(ghp_find_given_stages(s, &c->stages));
    if (ghp_request_may_recompute_given(s->request))
        GHP_TRY(ghp_find_given_recomputed(s, ghp_lead_of(s, c).step_s, recomputed));
    if (c->stages.found || recomputed->found) return GHP_OK;
    ghp_fail_take_recomputed(recomputed->least_bytes, &c->stages.least_bytes,
                             &c->stages.least_proven);
    return ghp_fail_given_stages(s, &c->stages);
}

static enum ghp_status find_rules(const struct ghp_plan_context *s, struct ghp_candidates *c)
{
    if (s->request->pipeline_mode != GHP_PIPELINE_MODE_AUTO &&
        s->request->solver != GHP_SOLVER_HEURISTIC)
        return GHP_OK;
    c->rules_tried = true;
    return ghp_find_rules(s, &c->rules, &c->rules_predicted);
}

static enum ghp_status find_candidates(const struct ghp_plan_context *s, struct ghp_candidates *c)
{
    GHP_TRY(find_baselines(s, c));
    GHP_TRY(ghp_find_local_data(s, &c->local_data));
    GHP_TRY(ghp_find_fsdp(s, c, &c->fsdp));
    if (ghp_request_has_stages(s->request)) {
        GHP_TRY(find_given(s, c));
        return find_rules(s, c);
    }
    if (s->request->strategy != GHP_STRATEGY_AUTO) return find_rules(s, c);
    GHP_TRY(ghp_find_shared(s, c, &c->shared));
    if (s->request->pipeline_mode == GHP_PIPELINE_MODE_AUTO) {
        c->stages_searched = true;
        GHP_TRY(ghp_find_stages(s, &c->shared, ghp_lead_of(s, c).step_s, &c->stages,
                                &c->stages_predicted));
    }
    GHP_TRY(find_by_trial(s, c));
    return find_rules(s, c);
}

/* ---- one way through the steps ---- */

static void attempt_release(struct attempt *a)
{
    ghp_choice_release(&a->choice);
    ghp_candidates_release(&a->candidates);
    ghp_plan_context_release(&a->context);
}

/* All steps but the last.
 *
 * nchw16c   which layers' outputs lie blocked; NULL: as is best for data parallelism */
static enum ghp_status attempt_run(struct attempt *a, const struct ghp_model *model,
                                   const bool *nchw16c)
{
    bool shows = ghp_progress_clock("searching", a->request.time_limit_s);
    enum ghp_status status = ghp_plan_context_init(&a->request, model, nchw16c, &a->context);

    GHP_ASSERT(status != GHP_OK || a->context.request == &a->request);
    if (status == GHP_OK) status = find_candidates(&a->context, &a->candidates);
    if (status == GHP_OK) status = ghp_choice_make(&a->context, &a->candidates, &a->choice);
    if (status == GHP_OK && !a->choice.staged && a->choice.plan.sync.ops == NULL &&
        !a->request.decision_only)
        status = ghp_choice_find_second_best(&a->context, &a->candidates, &a->choice);
    if (shows) ghp_progress_end();
    if (status != GHP_OK) attempt_release(a);
    return status;
}

/* ---- memory formats ---- */

/* Whether the plan chosen can keep to the formats that it was searched with. */
static bool formats_hold(const struct attempt *a)
{
    const struct ghp_staging *staging = &a->choice.plan.staging;
    struct ghp_lowering lowering = a->context.lowering;

    lowering.staging = ghp_staging_or_none(staging);
    return lowering.nchw16c == NULL || ghp_plan_formats_hold(&lowering, lowering.nchw16c);
}

/* Formats for the next attempt: the best for the plan chosen, after that none.
 *
 * nchw16c   one a layer, owned by the caller; replaced */
static enum ghp_status next_formats(const struct attempt *a, int attempt, bool **nchw16c)
{
    const struct ghp_candidate *plan = &a->choice.plan;
    struct ghp_lowering lowering = a->context.lowering;

    free(*nchw16c);
    *nchw16c = NULL;
    lowering.method.bucket_bytes = plan->bucket_bytes;
    lowering.staging = ghp_staging_or_none(&plan->staging);
    if (attempt == 0)
        GHP_TRY(ghp_formats_decide(&lowering, plan->splits, a->request.profile, nchw16c));
    if (*nchw16c == NULL)
        *nchw16c = ghp_alloc((size_t)lowering.model->n_layers, sizeof **nchw16c); /* zeroed */
    return *nchw16c == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* Seconds of data parallelism in a plan's own formats; INFINITY if it is not possible, or something else was asked
 * for. */
static double data_s(const struct attempt *a)
{
    bool whole = ghp_request_is_free(&a->request) && !ghp_request_is_given(&a->request);

    return whole && a->candidates.baseline[0].reason == NULL
               ? a->candidates.baseline[0].plan.predicted.step_s
               : INFINITY;
}

/* The part of the time limit that the next attempt may take: what is left, or half of it if a plan may be made again in
 * other formats. */
static double attempt_s(const struct ghp_plan_request *request, double began_s)
{
    double all = request->time_limit_s, left = all - (ghp_now_s() - began_s);

    return fmax(left * (ghp_profile_has_memory_formats(request->profile) ? 0.5 : 1),
                least_fraction * all);
}

/* Attempts until the plan chosen keeps to its formats; data parallelism in blocks, if that is faster than what other
 * stages gain. */
static enum ghp_status run_attempts(const struct ghp_plan_request *request,
                                    const struct ghp_model *model, struct attempt *a)
{
    bool *nchw16c = NULL, hold = false;
    double best_data_s = INFINITY, began_s = ghp_now_s();
    enum ghp_status status = GHP_OK;

    for (int attempt = 0; !hold && status == GHP_OK; attempt++) {
        *a = (struct attempt){.request = *request};
        a->request.time_limit_s = attempt_s(request, began_s);
        GHP_TRY_GOTO(status, attempt_run(a, model, nchw16c), done);
        if (attempt == 0) best_data_s = data_s(a);
        hold = formats_hold(a);
        if (!hold) status = next_formats(a, attempt, &nchw16c);
        if (!hold) attempt_release(a);
    }
    if (status != GHP_OK || a->choice.plan.predicted.step_s <= best_data_s * (1 + GHP_BRANCH_SAME))
        goto done;
    attempt_release(a);
    *a = (struct attempt){.request = *request};
    a->request.strategy = GHP_STRATEGY_DATA;
    a->request.time_limit_s = attempt_s(request, began_s);
    status = attempt_run(a, model, NULL);
done:
    free(nchw16c);
    return status;
}

enum ghp_status ghp_plan_make(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    struct ghp_model model = {0};
    struct attempt a;
    enum ghp_status status;

    *plan = (struct ghp_plan){0};
    GHP_TRY(ghp_request_open_model(request, &model));
    status = ghp_request_check(request);
    if (status == GHP_OK) status = ghp_profile_check_model(request->profile, &model);
    if (status == GHP_OK) status = run_attempts(request, &model, &a);
    if (status != GHP_OK) {
        ghp_model_release(&model);
        return status;
    }
    if (request->missing != NULL)
        status = ghp_missing_collect(&a.context, &a.candidates, &a.choice, request->missing);
    if (status == GHP_OK)
        status = ghp_write_plan(&a.context, &a.candidates, &a.choice, &model, plan);
    else
        ghp_model_release(&model);
    attempt_release(&a);
    return status;
}

/* Whether the plan, or the data parallelism that ghp-run may turn to, needs more. */
static bool needs_more(const struct ghp_plan *plan, int64_t bytes)
{
    const struct ghp_baseline *data = &plan->baselines[0];

    return plan->predicted.peak_bytes > bytes ||
           (data->feasible && data->predicted.peak_bytes > bytes);
}

static enum ghp_status make_again(ghp_plan_maker *make, const struct ghp_plan_request *request,
                                  double began_s, struct ghp_plan *plan)
{
    struct ghp_plan_request limited = *request;
    char has[32];

    ghp_plan_release(plan);
    ghp_note(
        "the machine has %s of memory for each worker, which is the limit; --memory SIZE gives "
        "another one",
        ghp_bytes_format((double)request->worker_bytes, has, sizeof has));
    limited.memory_bytes = request->worker_bytes;
    limited.time_limit_s = fmax(request->time_limit_s - (ghp_now_s() - began_s),
                                again_fraction * request->time_limit_s);
    return make(&limited, plan);
}

enum ghp_status ghp_plan_make_within(ghp_plan_maker *make, const struct ghp_plan_request *request,
                                     struct ghp_plan *plan)
{
    double began_s = ghp_now_s();

    GHP_TRY(make(request, plan));
    if (request->memory_bytes == 0 && request->worker_bytes > 0 &&
        needs_more(plan, request->worker_bytes))
        GHP_TRY(make_again(make, request, began_s, plan));
    plan->certificate.seconds = ghp_now_s() - began_s; /* of all attempts */
    return GHP_OK;
}

enum ghp_status ghp_plan_replace(ghp_plan_maker *make, ghp_plan_judge *is_better,
                                 const struct ghp_plan_request *request, struct ghp_plan *plan,
                                 bool *taken)
{
    struct ghp_plan other;
    enum ghp_status status = make(request, &other);

    *taken = false;
    if (status == GHP_ERR_INFEASIBLE) return GHP_OK;
    GHP_TRY(status);
    *taken = is_better(request, plan, &other);
    ghp_plan_release(*taken ? plan : &other);
    if (*taken) *plan = other;
    return GHP_OK;
}
