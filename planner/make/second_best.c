/* planner/make/second_best.c - each layer's second best, and the plan that one of them makes if it is faster
 * under buckets. */
#include "planner/make/choice.h"

#include "core/base/clock.h"
#include "core/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* of the time limit, for the second-best choices of the plan and of each one that takes its place */
static const double first_fraction = 0.06, next_fraction = 0.03;

/* fraction   of the time limit that the searches may take */
static enum ghp_status find(const struct ghp_plan_context *s, const struct ghp_candidate *plan,
                            double fraction, struct ghp_alternatives *found)
{
    const double end_s = ghp_plan_context_deadline(s, 1);
    const struct ghp_alternatives_job job = {
        .instance = s->instance,
        .splits = plan->splits,
        .bucket_bytes = plan->bucket_bytes,
        .limit_bytes = s->request->memory_bytes,
        .deadline_s = fmin(end_s, ghp_now_s() + fraction * s->request->time_limit_s),
        .end_s = end_s,
        .quick = s->request->strategy != GHP_STRATEGY_AUTO};

    return ghp_alternatives_compute(&job, found);
}

/* The fastest that is faster than the plan; NULL: there is none, or the plan was asked for. The proof is about layers
 * reduced alone; with buckets a second best may be faster than the plan. */
static const struct ghp_alternative *faster(const struct ghp_plan_context *s,
                                            const struct ghp_choice *choice)
{
    const struct ghp_alternative *best = NULL;

    if (!ghp_request_is_free(s->request) || choice->certificate.preferred != NULL) return NULL;
    for (int i = 0; i < choice->alternatives.n; i++) {
        const struct ghp_alternative *a = &choice->alternatives.of[i];

        if (a->step_s < choice->plan.predicted.step_s * (1 - GHP_BRANCH_SAME) &&
            (best == NULL || a->step_s < best->step_s))
            best = a;
    }
    return best;
}

/* The choice of an alternative in the plan's place. */
static enum ghp_status choose(const struct ghp_plan_context *s, const struct ghp_candidates *c,
                              const struct ghp_candidate *plan, const struct ghp_alternative *best,
                              struct ghp_choice *next)
{
    const struct ghp_lead lead = ghp_lead_of(s, c);
    size_t layers = (size_t)s->model->n_layers;
    struct ghp_split *splits = ghp_alloc(layers, sizeof *splits);
    enum ghp_status status;

    *next = (struct ghp_choice){0};
    if (splits == NULL) return GHP_NO_MEMORY();
    ghp_alternative_splits(best, plan->splits, layers, splits);
    status = ghp_candidate_of_splits(s, splits, plan->bucket_bytes, &next->plan);
    free(splits);
    GHP_TRY(status);
    next->fastest = next->plan.predicted;
    next->certificate = ghp_certify(s, &lead.proven, lead.trial, &next->plan);
    return GHP_OK;
}

static enum ghp_status note_unfinished(bool taken, struct ghp_choice *choice)
{
    char text[128];

    if (!taken && choice->alternatives.left_out == 0 && choice->alternatives.passed_over == 0)
        return GHP_OK;
    if (taken) /* those found were the plan's that it has replaced */
        snprintf(text, sizeof text,
                 "the time limit came before the second best of the plan taken last");
    else if (choice->alternatives.left_out == 0)
        snprintf(text, sizeof text,
                 "second best of %d layer%s left out, which promise less: the strategy was given",
                 choice->alternatives.passed_over, ghp_plural(choice->alternatives.passed_over));
    else
        snprintf(text, sizeof text, "the time limit came before the second best of %d layer%s",
                 choice->alternatives.left_out, ghp_plural(choice->alternatives.left_out));
    return ghp_certify_text(&choice->certificate.unfinished, text);
}

enum ghp_status ghp_choice_find_second_best(const struct ghp_plan_context *context,
                                            const struct ghp_candidates *candidates,
                                            struct ghp_choice *choice)
{
    double fraction = first_fraction;
    bool taken = true;

    for (bool late = false; taken && !late; late = ghp_plan_context_is_late(context)) {
        const struct ghp_alternative *best;
        struct ghp_choice next;

        GHP_TRY(find(context, &choice->plan, fraction, &choice->alternatives));
        best = faster(context, choice);
        taken = best != NULL;
        fraction = next_fraction;
        if (!taken) continue;
        GHP_TRY(choose(context, candidates, &choice->plan, best, &next));
        ghp_choice_release(choice);
        *choice = next;
    }
    return note_unfinished(taken, choice);
}
