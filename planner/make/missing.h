/* planner/make/missing.h - which measurements a choice still hangs on: those that the plan, data parallelism or their
 * rivals are costed by and nobody made.
 *
 * ghp-plan asks twice. With seconds by laws as they are: about the plan chosen and data parallelism. Then with all of
 * them less by their error (planner/make/missing_find.h): about the baselines and the fastest plans of the search that
 * take less then than the plan chosen does. A plan that does not win even by such odds wins by nothing that can be
 * measured, and nothing of it is asked about.
 *
 * Tested  tests/core/cost/test_missing.c, tests/planner/make/test_missing_find.c, tests/tools/run/test_train.sh */
#ifndef GHP_PLANNER_MAKE_MISSING_H
#define GHP_PLANNER_MAKE_MISSING_H

#include "core/cost/missing.h"
#include "planner/make/choice.h"

/* Adds what the plan chosen and data parallelism hang on; with rivals_s in the request, what takes at most that long.
 *
 * Called by planner/make/make.h */
enum ghp_status ghp_missing_collect(const struct ghp_plan_context *context,
                                    const struct ghp_candidates *candidates,
                                    const struct ghp_choice *choice, struct ghp_missing *missing);

#endif
