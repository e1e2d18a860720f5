/* planner/make/trust.c - see make/trust.h. */
#include "planner/make/trust.h"

#include "core/plan/space.h"

#include <math.h>

enum ghp_status ghp_trust_precision(struct ghp_profile *profile, const char *path,
                                    struct ghp_precision wanted)
{
    struct ghp_precision has = ghp_profile_precision(profile);

    if (ghp_precision_same(has, wanted)) return GHP_OK;
    if (profile->n_ops > 0 || profile->n_comms > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "profile '%s' was measured in %s; measure one with "
                        "ghp-profile --precision %s",
                        path, ghp_precision_name(has), ghp_precision_name(wanted));
    profile->element_bytes = wanted.element_bytes;
    profile->tf32 = wanted.tf32;
    return ghp_profile_finalize(profile);
}

struct search {
    const struct ghp_profile *profile;
    bool known;
};

static enum ghp_status look_up(void *context, const struct ghp_space_local *item)
{
    struct search *search = context;

    if (!search->known)
        search->known = ghp_profile_nearest(search->profile, &item->local, item->pass) != NULL;
    return GHP_OK;
}

enum ghp_status ghp_trust_profile(const struct ghp_profile *profile, const char *path,
                                  const struct ghp_model *model, struct ghp_problem problem)
{
    struct search search = {.profile = profile};

    if (profile->n_ops == 0) return GHP_OK;
    GHP_TRY(ghp_space_locals(model, problem, look_up, &search));
    if (search.known) return GHP_OK;
    return GHP_FAIL(GHP_ERR_MISSING,
                    "profile '%s' knows no operation of '%s': it was measured for other networks; "
                    "measure one with ghp-profile --model, or plan by the rates that others reach "
                    "with ghp-plan --analytic",
                    path, model->name);
}

enum ghp_status ghp_trust_plan(const struct ghp_plan *plan, double fraction)
{
    if (plan->predicted.measured_share >= fraction) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INFEASIBLE,
                    "%.3g %% of the predicted seconds were measured, less than --strict %g; "
                    "measure longer with ghp-profile --budget, or for these workers and this batch",
                    100 * plan->predicted.measured_share, fraction);
}

double ghp_trust_own_error_s(const struct ghp_profile *profile,
                             const struct ghp_prediction *predicted)
{
    return fmax(0, predicted->error_s - profile->disturbed * predicted->step_s);
}

double ghp_trust_doubtful_s(const struct ghp_profile *profile, double gain_s)
{
    return profile->disturbed / (1 + profile->disturbed) * fabs(gain_s);
}

double ghp_trust_margin_error_s(const struct ghp_profile *profile, const struct ghp_prediction *a,
                                const struct ghp_prediction *b)
{
    return fmax(ghp_trust_own_error_s(profile, a), ghp_trust_own_error_s(profile, b)) +
           ghp_trust_doubtful_s(profile, a->step_s - b->step_s);
}

bool ghp_trust_sync_gains(const struct ghp_profile *profile, bool simplify,
                          const struct ghp_prediction *plan, const struct ghp_prediction *other)
{
    static const double least_gain = 0.01;
    double error_s = simplify ? ghp_trust_margin_error_s(profile, plan, other) : 0;

    return plan->step_s - other->step_s > fmax(error_s, least_gain * plan->step_s);
}
