/* planner/make/trust.h - what of a profile and a plan is refused, because too little of it was measured; and what the
 * difference of two predictions is worth.
 *
 * Local. Tested  tests/tools/plan/test_plan.sh */
#ifndef GHP_PLANNER_MAKE_TRUST_H
#define GHP_PLANNER_MAKE_TRUST_H

#include "core/plan/plan.h"

/* Sets the profile's width of numbers if it has no measurements of another one.
 *
 * path     of the profile, for messages
 * wanted   the width
 *
 * Returns   GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_trust_precision(struct ghp_profile *profile, const char *path,
                                    struct ghp_precision wanted);

/* Refuses a profile that was measured, but none of whose operations is the network's, nor one of them over other
 * samples.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_trust_profile(const struct ghp_profile *profile, const char *path,
                                  const struct ghp_model *model, struct ghp_problem problem);

/* Refuses a plan less than a fraction of whose predicted seconds was measured, 0 <= fraction <= 1.
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE */
enum ghp_status ghp_trust_plan(const struct ghp_plan *plan, double fraction);

/* A prediction's error, s, by itself: without what a disturbance of the profile did to all predictions together. */
double ghp_trust_own_error_s(const struct ghp_profile *profile,
                             const struct ghp_prediction *predicted);

/* The part of a difference of two predicted steps, s, that a disturbance of the profile may have made. It lengthened
 * both, by the same factor at most, so it makes a part of the difference and never all of it. */
double ghp_trust_doubtful_s(const struct ghp_profile *profile, double gain_s);

/* What the difference of two predicted steps may be off by, s: the greater of their own errors, and the disturbance's
 * part of the difference. */
double ghp_trust_margin_error_s(const struct ghp_profile *profile, const struct ghp_prediction *a,
                                const struct ghp_prediction *b);

/* Whether a plan by another synchroniser is faster by enough to leave the plan's own: by more than 1 % of the step and,
 * if simpler plans are preferred, than the difference may be off by. */
bool ghp_trust_sync_gains(const struct ghp_profile *profile, bool simplify,
                          const struct ghp_prediction *plan, const struct ghp_prediction *other);

#endif
