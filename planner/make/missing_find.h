/* planner/make/missing_find.h - a plan made twice to find out what it hangs on (planner/make/missing.h).
 *
 * Tested  tests/planner/make/test_missing_find.c, tests/tools/run/test_train.sh */
#ifndef GHP_PLANNER_MAKE_MISSING_FIND_H
#define GHP_PLANNER_MAKE_MISSING_FIND_H

#include "planner/make/request.h"

/* All that is worth measuring before a plan is made by `request`: what cannot move the step of the plan by 1 % is left
 * out.
 *
 * request   its plan is made again; `missing` in it is ignored
 * profile   the request's: its seconds by laws are less afterwards, for no other use
 *
 * Returns   GHP_OK; failures of ghp_plan_make */
enum ghp_status ghp_missing_find(const struct ghp_plan_request *request,
                                 struct ghp_profile *profile, struct ghp_missing *missing);

#endif
