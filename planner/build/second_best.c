/* planner/build/second_best.c - each layer's second best, and the plan that one of them makes where it is faster
 * under buckets. */
#include "planner/build/build_private.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "planner/alternatives/alternatives.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* of the time limit, for the second-best choices of the plan and of each one that takes its place */
static const double first_share = 0.06, next_share = 0.03;

static void release_alternatives(struct ghp_plan *plan)
{
    for (int i = 0; i < plan->n_alternatives; ++i)
        ghp_alternative_release(&plan->alternatives[i]);
    free(plan->alternatives);
    plan->alternatives = NULL;
    plan->n_alternatives = 0;
}

/* share   of the time limit that the searches may take */
static enum ghp_status find_alternatives(struct ghp_build_context *m, double share, int *left_out)
{
    struct ghp_alternatives_job job = {
        .instance = &m->instance,
        .bucket_bytes = m->plan->bucket_bytes,
        .limit_bytes = m->request->memory_bytes,
        .deadline_s =
            fmin(ghp_build_deadline(m, 1), ghp_now_s() + share * m->request->time_limit_s),
        .end_s = ghp_build_deadline(m, 1)};

    release_alternatives(m->plan);
    return ghp_alternatives_compute(&job, m->plan, left_out);
}

/* The proof is about layers reduced alone; with buckets a second best may be faster than the plan.  Whether one was
 * taken in its place. */
static enum ghp_status take_second_best(struct ghp_build_context *m, bool *taken)
{
    struct ghp_plan *plan = m->plan;
    const struct ghp_alternative *best = NULL;
    struct ghp_lowering how = m->how;

    *taken = false;
    if (m->request->strategy != GHP_STRATEGY_AUTO || m->request->force != NULL ||
        plan->certificate.preferred != NULL)
        return GHP_OK;
    for (int i = 0; i < plan->n_alternatives; ++i)
        if (plan->alternatives[i].step_s < plan->predicted.step_s * (1 - GHP_BRANCH_SAME) &&
            (best == NULL || plan->alternatives[i].step_s < best->step_s))
            best = &plan->alternatives[i];
    if (best == NULL) return GHP_OK;
    ghp_alternative_splits(best, plan->splits, (size_t)plan->model.n_layers, plan->splits);
    how.bucket_bytes = plan->bucket_bytes;
    GHP_TRY(ghp_plan_predict(&how, plan->splits, m->request->profile, &plan->predicted));
    *taken = true;
    return ghp_build_certify(m);
}

static enum ghp_status note_unfinished(struct ghp_build_context *m, int left_out, bool taken)
{
    char text[128];

    if (taken) /* those found were the plan's that it has replaced */
        snprintf(text, sizeof text,
                 "the time limit came before the second best of the plan taken last");
    else
        snprintf(text, sizeof text, "the time limit came before the second best of %d layer%s",
                 left_out, left_out == 1 ? "" : "s");
    return ghp_build_set_text(&m->plan->certificate.unfinished, text);
}

/* Until no second best is faster than the plan, so that those listed in the end are the plan's own: each is a change
 * of the plan that it was found for. Every round makes the step shorter, so there is a last one. */
enum ghp_status ghp_build_second_best(struct ghp_build_context *m)
{
    double share = first_share;
    bool taken = true, late = false;
    int left_out = 0;

    while (taken && !late) {
        GHP_TRY(find_alternatives(m, share, &left_out));
        GHP_TRY(take_second_best(m, &taken));
        if (taken) m->fastest = m->plan->predicted;
        share = next_share;
        late = ghp_now_s() > ghp_build_deadline(m, 1);
    }
    if (taken) release_alternatives(m->plan);
    return taken || left_out > 0 ? note_unfinished(m, left_out, taken) : GHP_OK;
}
