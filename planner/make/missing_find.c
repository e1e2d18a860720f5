/* planner/make/missing_find.c - see planner/make/missing_find.h. */
#include "planner/make/missing_find.h"

#include "planner/make/make.h"

#include <math.h>

static const double least_fraction = 0.01; /* of a step: what is wrong by less changes no choice */
static const double most_s = 4;            /* of a search: its user also waits for a plan */

/* Every entry that nobody measured takes less by its error. Returns how many there are. */
static int lower_laws(struct ghp_profile *profile)
{
    int n = 0;

    for (int i = 0; i < profile->n_ops; i++) {
        if (profile->ops[i].source == GHP_SOURCE_MEASURED) continue;
        ghp_op_entry_scale(&profile->ops[i], 1 - GHP_MISSING_LAW_ERROR);
        n++;
    }
    return n;
}

static enum ghp_status ask(const struct ghp_plan_request *asking, double *step_s)
{
    struct ghp_plan plan;

    GHP_TRY(ghp_plan_make_within(ghp_plan_make, asking, &plan));
    *step_s = plan.predicted.step_s;
    ghp_plan_release(&plan);
    return GHP_OK;
}

enum ghp_status ghp_missing_find(const struct ghp_plan_request *request,
                                 struct ghp_profile *profile, struct ghp_missing *missing)
{
    struct ghp_plan_request asking = *request;
    double step_s = 0, lowered_s;
    enum ghp_status status;

    *missing = (struct ghp_missing){0};
    asking.missing = missing;
    asking.decision_only = true;
    asking.break_even = false;
    asking.gap = fmax(asking.gap, least_fraction); /* nearer plans are rivals all the same */
    asking.time_limit_s = fmin(asking.time_limit_s, most_s);
    status = ask(&asking, &step_s);
    if (status == GHP_OK && lower_laws(profile) > 0) {
        asking.rivals_s = (1 - least_fraction) * step_s;
        status = ghp_profile_finalize(profile);
        if (status == GHP_OK) status = ask(&asking, &lowered_s);
    }
    if (status == GHP_OK)
        ghp_missing_trim(missing, least_fraction * step_s);
    else
        ghp_missing_release(missing);
    return status;
}
