/* planner/make/write.h - the plan of a choice: the one place that writes struct ghp_plan.
 *
 * Called by planner/make/make.h alone. Tested  tests/planner/make/test_make.c */
#ifndef GHP_PLANNER_MAKE_WRITE_H
#define GHP_PLANNER_MAKE_WRITE_H

#include "planner/make/choice.h"

/* Writes the plan: the decision, baselines, certificate, alternatives with their break-even values, and the part of
 * the profile that its programs ask for.
 *
 * choice   handed over: empty afterwards
 * model    the context's; handed over: the plan's afterwards, also if this fails
 * plan     filled on success; zeroed on failure
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; errors of lowering and costing */
enum ghp_status ghp_write_plan(const struct ghp_plan_context *context,
                               const struct ghp_candidates *candidates, struct ghp_choice *choice,
                               const struct ghp_model *model, struct ghp_plan *plan);

#endif
