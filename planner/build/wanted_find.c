/* planner/build/wanted_find.c - see planner/build/wanted_find.h. */
#include "planner/build/wanted_find.h"

#include "planner/build/build.h"

#include <math.h>

static const double least_share = 0.01; /* of a step: what is wrong by less changes no choice */

/* Every entry that nobody measured takes less by its error. */
static enum ghp_status lower_laws(struct ghp_profile *profile)
{
    for (int i = 0; i < profile->n_ops; ++i)
        if (profile->ops[i].source != GHP_SOURCE_MEASURED)
            ghp_op_entry_scale(&profile->ops[i], 1 - GHP_WANTED_LAW_ERROR);
    return ghp_profile_finalize(profile);
}

enum ghp_status ghp_wanted_find(const struct ghp_plan_request *request, struct ghp_profile *profile,
                                struct ghp_wanted *wanted)
{
    struct ghp_plan_request asking = *request;
    struct ghp_plan plan;
    enum ghp_status status = GHP_OK;
    double step_s = 0;

    *wanted = (struct ghp_wanted){0};
    asking.wanted = wanted;
    asking.decision_only = true;
    asking.break_even = false;
    asking.gap = fmax(asking.gap, least_share); /* nearer plans are rivals all the same */
    for (int turn = 0; turn < 2 && status == GHP_OK; ++turn) {
        if (turn == 1) status = lower_laws(profile);
        if (status == GHP_OK) status = ghp_plan_make(&asking, &plan);
        if (status != GHP_OK) break;
        step_s = plan.predicted.step_s;
        ghp_plan_release(&plan);
    }
    if (status == GHP_OK)
        ghp_wanted_trim(wanted, least_share * step_s);
    else
        ghp_wanted_release(wanted);
    return status;
}
