/* planner/build/wanted.h - which measurements a plan still hangs on: those that it, the baselines or the fastest plans
 * of the search are costed by and nobody made.
 *
 * ghp-plan asks twice (planner/build/wanted_find.h): with seconds by laws as they are, and with all of them less by their error,
 * so that a plan which would win if laws are too high for it is among those asked about. A plan that wins by measured
 * seconds alone against such odds stays the choice, whatever is measured.
 *
 * Tested  tests/core/cost/test_wanted.c, tests/tools/run/test_train.sh */
#ifndef GHP_PLANNER_BUILD_WANTED_H
#define GHP_PLANNER_BUILD_WANTED_H

#include "core/cost/wanted.h"
#include "planner/build/choice.h"

/* Adds what the plan chosen and its rivals hang on.
 *
 * Called by planner/build/build.h */
enum ghp_status ghp_wanted_collect(const struct ghp_setting *setting,
                                   const struct ghp_candidates *candidates,
                                   const struct ghp_choice *choice, struct ghp_wanted *wanted);

#endif
