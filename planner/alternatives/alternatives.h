/* planner/alternatives/alternatives.h - every other split of each conv2d and linear layer, and the best plan without
 * the chosen one.
 *
 * `choices`: each split that the layer can take, all other layers as planned; of networks so large that this would take
 * longer than the search, those that promise most by the constraints; where the strategy was asked for, of the layers
 * that promise most. The second best: with the layer's own split forbidden the others are searched again, for as long
 * as the time lasts; layers that are not reached keep all other splits, and the best single change is given. What
 * changes along is listed, and only where it makes the second best faster. Each number is a simulated step with the
 * plan's bucket size: a second best, not a proof.
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
    bool quick;        /* where not all splits are tried, no others are searched */
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
