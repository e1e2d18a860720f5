/* planner/make/certify.c - see make/certify.h. */
#include "planner/make/certify.h"

#include "core/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One step, one bound, one gap, of one and the same search. */
static void set_numbers(struct ghp_certificate *c, double step_s, double bound_s)
{
    c->step_s = step_s;
    c->bound_s = fmin(bound_s, step_s);
    c->gap = (c->step_s - c->bound_s) / c->step_s;
    if (c->gap > 2 * GHP_BRANCH_SAME) return;
    c->bound_s = c->step_s;
    c->gap = 0;
}

/* How far the search got, by the gap that is left. */
static enum ghp_proof proof_of(const struct ghp_plan_context *s, const struct ghp_proven *p,
                               double gap)
{
    static const double rounding = 1e-12;

    if (!isfinite(p->step_s)) return GHP_PROOF_NOTHING_FITS;
    if (gap > s->request->gap + rounding) return GHP_PROOF_TIME_LIMIT;
    return s->request->gap > 0 ? GHP_PROOF_WITHIN_GAP : GHP_PROOF_OPTIMAL;
}

struct ghp_certificate ghp_certify(const struct ghp_plan_context *context,
                                   const struct ghp_proven *proven, enum ghp_trial trial,
                                   const struct ghp_candidate *plan)
{
    bool tuned = ghp_candidate_is_tuned(context, plan);
    bool searched =
        !tuned && plan->shares == NULL && plan->recompute == NULL && trial != GHP_TRIAL_INTERLEAVED;
    struct ghp_certificate c = {.plans = proven->plans, .nodes = proven->nodes};
    double step_s = proven->step_s;

    if (!isfinite(step_s)) { /* found by trial alone: no bound is known */
        set_numbers(&c, plan->predicted.step_s, 0);
    } else { /* a plan of the search's own kind may be faster than those it met, before the time limit came */
        if (searched) step_s = fmin(step_s, plan->predicted.step_s);
        set_numbers(&c, step_s, proven->bound_s);
    }
    c.proof = proof_of(context, proven, c.gap);
    c.trial = trial == GHP_TRIAL_NONE && tuned ? GHP_TRIAL_BUCKETS : trial;
    c.seconds = ghp_now_s() - context->began_s;
    return c;
}

struct ghp_certificate ghp_certify_other(struct ghp_certificate certificate, double step_s)
{
    set_numbers(&certificate, fmin(certificate.step_s, step_s), certificate.bound_s);
    return certificate;
}

enum ghp_status ghp_certify_text(char **text, const char *value)
{
    free(*text);
    *text = value != NULL ? strdup(value) : NULL;
    return value != NULL && *text == NULL ? GHP_NO_MEMORY() : GHP_OK;
}
