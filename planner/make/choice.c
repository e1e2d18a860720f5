/* planner/make/choice.c - the rules by which a plan is picked; see make/choice.h. */
#include "planner/make/choice.h"

#include "planner/make/trust.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the lead ---- */

/* Whether a gain is larger than the error of the predictions. If simpler plans are not preferred, any gain counts. */
static bool is_sure(const struct ghp_plan_context *s, double gain_s,
                    const struct ghp_prediction *off)
{
    const struct ghp_profile *profile = s->request->profile;

    if (!s->request->simplify || isinf(gain_s)) return gain_s > 0;
    return gain_s > ghp_trust_own_error_s(profile, off) + ghp_trust_doubtful_s(profile, gain_s);
}

/* Whether stages are in the lead: given, or surely faster than the best plan without. */
static bool stages_lead(const struct ghp_plan_context *s, const struct ghp_candidates *c,
                        double shared_s)
{
    if (!c->stages.found) return false;
    return ghp_request_has_stages(s->request) || !s->request->simplify ||
           is_sure(s, shared_s - c->stages_predicted.step_s, &c->stages_predicted);
}

/* What is proven of plans without trials, the lead being among them. */
static struct ghp_proven proven_of(const struct ghp_plan_context *s, const struct ghp_candidates *c,
                                   const struct ghp_lead *lead)
{
    const struct ghp_search_result *shared = ghp_candidates_shared(s, c);
    struct ghp_proven p = {
        .step_s = lead->step_s, .bound_s = shared->bound_s, .proven = shared->proven};

    ghp_candidates_count(s, c, &p.plans, &p.nodes);
    if (!c->stages_searched) return p;
    if (!shared->feasible) p.bound_s = INFINITY;
    p.bound_s = fmin(p.bound_s, c->stages.bound_s);
    p.proven = c->stages.proven && (shared->proven || ghp_request_has_stages(s->request));
    if (lead->staged != NULL && p.proven && !(s->request->gap > 0)) p.bound_s = p.step_s;
    return p;
}

struct ghp_lead ghp_lead_of(const struct ghp_plan_context *context,
                            const struct ghp_candidates *candidates)
{
    const struct ghp_search_result *shared = ghp_candidates_shared(context, candidates);
    const struct ghp_prediction *data = &candidates->baseline[0].plan.predicted;
    struct ghp_lead lead = {.step_s = shared->feasible ? shared->kept[0].step_s : INFINITY};

    if (stages_lead(context, candidates, lead.step_s)) {
        lead.staged = &candidates->stages;
        lead.step_s = candidates->stages.step_s;
    }
    lead.proven = proven_of(context, candidates, &lead);
    for (int t = 0; t < GHP_TRIAL_COUNT; t++) {
        const struct ghp_partition *trial = &candidates->trial[t];

        if (!trial->found || !is_sure(context, lead.step_s - trial->step_s, data)) continue;
        lead.staged = trial;
        lead.trial = (enum ghp_trial)t;
        lead.step_s = trial->step_s;
    }
    return lead;
}

/* ---- the plan ---- */

/* The plan by rules, as asked, and how far it is from the best. */
static enum ghp_status choose_rules(const struct ghp_plan_context *s,
                                    const struct ghp_candidates *c, const struct ghp_lead *lead,
                                    struct ghp_choice *choice)
{
    char text[160];

    if (!c->rules.found)
        return GHP_FAIL(GHP_ERR_INFEASIBLE,
                        "none of the rules' plans can be; leave --solver heuristic out");
    GHP_TRY(ghp_candidate_of_partition(s, &c->rules, &choice->plan));
    choice->certificate = ghp_certify(s, &lead->proven, lead->trial, &choice->plan);
    snprintf(text, sizeof text, "by rules, as asked: the best found takes %.6g ms, %.2f %% less",
             1e3 * lead->step_s, 100 * (1 - lead->step_s / choice->plan.predicted.step_s));
    return ghp_certify_text(&choice->certificate.preferred, text);
}

/* What the fastest plan's margin over data parallelism may be off by. */
static double margin_error_s(const struct ghp_plan_context *s, const struct ghp_candidates *c,
                             const struct ghp_prediction *fastest)
{
    return ghp_trust_margin_error_s(s->request->profile, fastest, &c->baseline[0].plan.predicted);
}

static bool has_data(const struct ghp_candidates *c)
{
    return c->baseline[0].reason == NULL;
}

/* The fastest of the search's plan and, if nothing was asked for, the baselines: with each layer reduced alone none
 * of them is faster, but buckets help one plan more than another. */
static enum ghp_status choose_fastest(const struct ghp_plan_context *s,
                                      const struct ghp_candidates *c, struct ghp_candidate *plan)
{
    const struct ghp_candidate *fastest = NULL;
    struct ghp_candidate found = {0};
    enum ghp_status status = GHP_OK;

    for (int b = 0; b < GHP_BASELINES; b++)
        if (s->request->strategy == ghp_baseline_strategy(b))
            return ghp_candidate_copy(s, &c->baseline[b].plan, plan);
    GHP_TRY(ghp_candidate_of_search(s, &c->shared, &found));
    fastest = &found;
    for (int b = 0; b < GHP_BASELINES && ghp_request_is_free(s->request); b++) {
        const struct ghp_candidate *baseline = &c->baseline[b].plan;

        if (c->baseline[b].reason == NULL &&
            baseline->predicted.step_s < fastest->predicted.step_s * (1 - GHP_BRANCH_SAME))
            fastest = baseline;
    }
    if (fastest == &found) {
        *plan = found;
        return GHP_OK;
    }
    status = ghp_candidate_copy(s, fastest, plan);
    ghp_candidate_release(&found);
    return status;
}

/* Data parallelism if the plan is not surely faster. */
static enum ghp_status simplify(const struct ghp_plan_context *s, const struct ghp_candidates *c,
                                struct ghp_choice *choice)
{
    double error_s = margin_error_s(s, c, &choice->fastest), margin_s;
    struct ghp_candidate data;
    char text[256];

    if (!s->request->simplify || !ghp_request_is_free(s->request) || !has_data(c)) return GHP_OK;
    margin_s = c->baseline[0].plan.predicted.step_s - choice->fastest.step_s;
    if (ghp_candidate_split_layers(s, &choice->plan) == 0 || margin_s > error_s) return GHP_OK;
    snprintf(text, sizeof text,
             "data parallelism: simpler, and the fastest plan's margin of %.3g ms is within the "
             "prediction's error of %.3g ms",
             1e3 * margin_s, 1e3 * error_s);
    GHP_TRY(ghp_candidate_copy(s, &c->baseline[0].plan, &data));
    ghp_candidate_release(&choice->plan);
    choice->plan = data;
    return ghp_certify_text(&choice->certificate.preferred, text);
}

/* Says that one stage was kept though stages are faster, by no more than the prediction's error. */
static enum ghp_status note_stages(const struct ghp_candidates *c, struct ghp_choice *choice)
{
    double faster_s = choice->plan.predicted.step_s - c->stages.step_s;
    char text[256];

    if (!c->stages.found || faster_s <= 0) return GHP_OK;
    choice->certificate = ghp_certify_other(choice->certificate, c->stages.step_s);
    if (choice->certificate.preferred != NULL) return GHP_OK;
    snprintf(text, sizeof text,
             "one stage: simpler, and the margin of %.3g ms by stages or micro-batches is "
             "within the prediction's error",
             1e3 * faster_s);
    return ghp_certify_text(&choice->certificate.preferred, text);
}

static enum ghp_status choose_shared(const struct ghp_plan_context *s,
                                     const struct ghp_candidates *c, const struct ghp_lead *lead,
                                     struct ghp_choice *choice)
{
    GHP_TRY(choose_fastest(s, c, &choice->plan));
    choice->certificate = ghp_certify(s, &lead->proven, lead->trial, &choice->plan);
    choice->fastest = choice->plan.predicted;
    GHP_TRY(simplify(s, c, choice));
    return note_stages(c, choice);
}

static enum ghp_status choose(const struct ghp_plan_context *s, const struct ghp_candidates *c,
                              struct ghp_choice *choice)
{
    const struct ghp_lead lead = ghp_lead_of(s, c);
    bool rules = s->request->solver == GHP_SOLVER_HEURISTIC;

    choice->staged = rules || lead.staged != NULL;
    if (!choice->staged) return choose_shared(s, c, &lead, choice);
    if (rules) {
        GHP_TRY(choose_rules(s, c, &lead, choice));
    } else {
        GHP_TRY(ghp_candidate_of_partition(s, lead.staged, &choice->plan));
        choice->certificate = ghp_certify(s, &lead.proven, lead.trial, &choice->plan);
    }
    choice->fastest = choice->plan.predicted;
    return GHP_OK;
}

enum ghp_status ghp_choice_make(const struct ghp_plan_context *context,
                                const struct ghp_candidates *candidates, struct ghp_choice *choice)
{
    enum ghp_status status;

    *choice = (struct ghp_choice){0};
    status = choose(context, candidates, choice);
    if (status != GHP_OK) ghp_choice_release(choice);
    return status;
}

void ghp_choice_release(struct ghp_choice *choice)
{
    ghp_candidate_release(&choice->plan);
    ghp_alternatives_release(&choice->alternatives);
    free(choice->certificate.preferred);
    free(choice->certificate.unfinished);
    free(choice->certificate.margin);
    *choice = (struct ghp_choice){0};
}

/* ---- the margin ---- */

static bool error_is_known(const struct ghp_candidates *c, const struct ghp_choice *choice)
{
    return choice->fastest.error_s > 0 || c->baseline[0].plan.predicted.error_s > 0;
}

/* Which of the two was taken, and why. */
static const char *margin_verdict(const struct ghp_plan_context *s, const struct ghp_candidates *c,
                                  const struct ghp_choice *choice)
{
    bool within = c->baseline[0].plan.predicted.step_s - choice->fastest.step_s <=
                  margin_error_s(s, c, &choice->fastest);

    if (s->request->strategy != GHP_STRATEGY_AUTO || ghp_request_is_given(s->request))
        return "this plan was asked for";
    if (choice->certificate.preferred != NULL)
        return "within the error, so the simpler plan was taken: data parallelism";
    if (ghp_candidate_split_layers(s, &choice->plan) == 0 && !choice->staged)
        return "the fastest plan is data parallelism";
    if (!error_is_known(c, choice))
        return "the error is not known, so the plan that is faster by the profile was taken";
    return !within ? "beyond the error, so the faster plan was taken"
                   : "within the error, but the faster plan was asked for";
}

static bool shards_parameters(const struct ghp_plan_context *s, const struct ghp_candidate *c)
{
    for (int v = 0; c->splits != NULL && v < s->model->n_layers; v++)
        if (c->splits[v].sharding != GHP_SHARDING_NONE) return true;
    return false;
}

const char *ghp_choice_margin(const struct ghp_plan_context *context,
                              const struct ghp_candidates *candidates,
                              const struct ghp_choice *choice, char *text)
{
    const struct ghp_prediction *data = &candidates->baseline[0].plan.predicted;
    double margin_s = data->step_s - choice->fastest.step_s;
    bool sharded = candidates->baseline[0].plan.sync.ops == &ghp_sync_sharded;
    bool shards = shards_parameters(context, &candidates->baseline[0].plan);
    char error[32] = "not known";

    if (error_is_known(candidates, choice))
        snprintf(error, sizeof error, "%.3g ms",
                 1e3 * margin_error_s(context, candidates, &choice->fastest));
    if (has_data(candidates))
        snprintf(
            text, GHP_MARGIN_SIZE,
            "%.6g ms a step against %.6g ms by data parallelism%s: %.4g ms (%.2f %%) %s; error "
            "of a prediction %s, with %.0f %% of the time measured: %s",
            1e3 * choice->fastest.step_s, 1e3 * data->step_s,
            shards    ? ", parameters sharded"
            : sharded ? " with a sharded update"
                      : "",
            1e3 * fabs(margin_s), 100 * fabs(margin_s) / data->step_s,
            margin_s < 0 ? "more" : "less", error, 100 * choice->fastest.measured_share,
            margin_verdict(context, candidates, choice));
    else
        snprintf(text, GHP_MARGIN_SIZE, "%.6g ms a step; data parallelism is not possible: %.300s",
                 1e3 * choice->fastest.step_s, candidates->baseline[0].reason);
    return text;
}
