/* planner/alternatives.h - the runner-up of each conv2d and linear layer: what another split would cost.
 *
 * With the layer's own split forbidden the others are searched again, for as long as the time lasts; layers that are
 * not reached keep all other splits, and the best single change is given.  Each number is a simulated step with the
 * plan's bucket size: a runner-up, not a proof.
 *
 * Tested  tests/planner/test_make.c */
#ifndef GHP_PLANNER_ALTERNATIVES_H
#define GHP_PLANNER_ALTERNATIVES_H

#include "core/plan.h"
#include "planner/search.h"

struct ghp_alternatives_job {
    struct ghp_instance *instance;
    int64_t bucket_bytes, limit_bytes;
    double deadline_s;
};

/* Fills plan->alternatives for plan->splits.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; errors of lowering and pricing */
enum ghp_status ghp_alternatives_find(const struct ghp_alternatives_job *job,
                                      struct ghp_plan *plan);

#endif
