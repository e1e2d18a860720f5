/* planner/alternatives/alternatives.h - every other split of each conv2d and linear layer, and the best plan without
 * the chosen one.
 *
 * `choices` has each split that the layer can take, with all other layers as planned. For networks so large that this
 * would take longer than the search, it has those that the constraints rank best. If the strategy was asked for, it
 * covers only the layers that promise most. To find the second best, the layer's own split is forbidden and the others
 * are searched again, until the time is over. For layers that are not reached, all other splits stay and the best
 * single change is given. Other layers' changes are listed only if they make the second best faster. Each number is a
 * simulated step with the plan's bucket size: a second best, not a proof.
 *
 * Tested  tests/planner/make/test_make.c, test_break_even.c */
#ifndef GHP_PLANNER_ALTERNATIVES_ALTERNATIVES_H
#define GHP_PLANNER_ALTERNATIVES_ALTERNATIVES_H

#include "core/plan/plan.h"
#include "planner/search/search.h"

struct ghp_alternatives_job {
    struct ghp_instance *instance;
    const struct ghp_split *splits; /* the plan's, one a layer */
    int64_t bucket_bytes, limit_bytes;
    double deadline_s; /* of the searches; ghp_now_s's clock */
    double end_s;      /* no further split is tried */
    bool quick;        /* if not all splits are tried, no others are searched */
};

struct ghp_alternatives {
    int n;
    struct ghp_alternative *of; /* one a layer at most; owned */
    int passed_over; /* layers that promise less than those tried, of a plan whose strategy was asked for */
    int left_out; /* layers that end_s came before: they have no alternative, or not all of their choices */
};

/* The alternatives to the plan, but for the break-even values.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; errors of lowering and costing */
enum ghp_status ghp_alternatives_compute(const struct ghp_alternatives_job *job,
                                         struct ghp_alternatives *alternatives);
void ghp_alternatives_release(struct ghp_alternatives *alternatives); /* accepts a zeroed one */

#endif
