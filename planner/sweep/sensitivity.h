/* planner/sweep/sensitivity.h - how far each quantity may move before another plan is better.
 *
 * The whole search is run again at other values (ghp_make_plan with the same wishes): a plan stays where the new search
 * finds none that is faster by more than the plan's certified gap, and where it still fits the memory.  Each side is
 * walked in factors of two up to GHP_QUANTITY_FACTOR, then halved until the last value at which the plan stays and the
 * first at which it does not differ by a thousandth (batches: or are neighbours); the ends are values that were planned
 * anew, so the last inside is proven as far as the search there is.  A plan that is worse only between two steps of
 * the walk is missed.
 *
 * Tested  tests/planner/alternatives/test_sensitivity.c */
#ifndef GHP_PLANNER_SWEEP_SENSITIVITY_H
#define GHP_PLANNER_SWEEP_SENSITIVITY_H

#include "planner/build/build.h"

/* Fills plan->sensitivity.
 *
 * wishes   that the plan was made by; all its sides together get as long as time_limit_s again, and a side that
 *          runs out says so
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; errors of planning other than that nothing fits */
enum ghp_status ghp_sensitivity_find(const struct ghp_wishes *wishes, struct ghp_plan *plan);

#endif
