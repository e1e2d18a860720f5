/* planner/terms.h - what each layer costs in a plan's program: its compute, exchanges, reductions, updates.
 *
 * Terms are priced alone, without waiting and slowdown, so they sum to the two streams' work, not to the step.  A
 * reduction of several layers together is shared out by their bytes; an exchange belongs to the layer that reads; the
 * metrics' reduction is the last layer's.
 *
 * Tested  tests/tools/test_inspect.sh, tests/planner/test_report.c */
#ifndef GHP_PLANNER_TERMS_H
#define GHP_PLANNER_TERMS_H

#include "core/plan.h"

struct ghp_terms { /* of one layer, one worker, one step */
    double forward_s, backward_s, exchange_s, reduce_s, update_s;
    double sent_bytes;
};

/* Adds up the program's prices by layer.
 *
 * timing   of this program, from ghp_simulate
 * terms    n_layers entries, zeroed by the caller */
void ghp_terms_add(const struct ghp_program *program, const struct ghp_timing *timing, int n_layers,
                   struct ghp_terms *terms);

/* Sum of the five terms [s]. */
double ghp_terms_sum(const struct ghp_terms *terms);

/* The best other split of a layer that the plan knows, or NULL. */
const struct ghp_alternative *ghp_terms_runner_up(const struct ghp_plan *plan, int layer);

#endif
