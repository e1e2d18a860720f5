/* planner/alternatives/quantity.h - the quantities that a plan was made for, and a profile in which one of them is
 * changed.
 *
 * Tested  tests/planner/alternatives/test_break_even.c */
#ifndef GHP_PLANNER_ALTERNATIVES_QUANTITY_H
#define GHP_PLANNER_ALTERNATIVES_QUANTITY_H

#include "core/plan/plan.h"

/* What the plan was made for: the machine's link, 1 for the factor of computation, the batch, the memory limit. */
double ghp_quantity_nominal(const struct ghp_plan *plan, enum ghp_quantity quantity);

/* Scales what the quantity stands for in place, as core/plan/profile_scale.h does; batch and memory are not in a
 * profile.
 *
 * factor   > 0, of the nominal value
 *
 * Returns   GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_quantity_scale_profile(struct ghp_profile *profile, enum ghp_quantity quantity,
                                           double factor);

/* Whether the program's seconds depend on the quantity at all: a link that it crosses, and whose value is known. */
bool ghp_quantity_matters(const struct ghp_program *program, const struct ghp_profile *profile,
                          enum ghp_quantity quantity);

#endif
