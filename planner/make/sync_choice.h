/* planner/make/sync_choice.h - the synchroniser of a plan: as asked for, or the one that is needed or faster.
 *
 * All-reduce is simpler, so a sharded update is taken only if no plan with all-reduce fits the memory, or if it is
 * faster by more than the predictions' error and 1 % of the step. It is searched for in full if the memory is
 * limited, else if it makes the plan with all-reduce itself faster by so much; if that is likely, since it
 * makes data parallelism faster, the search with all-reduce leaves it most of the time. Baselines as plans of their
 * own are yardsticks: they keep the all-reduce unless it does not fit. */
#ifndef GHP_PLANNER_MAKE_SYNC_CHOICE_H
#define GHP_PLANNER_MAKE_SYNC_CHOICE_H

#include "planner/make/make.h"

/* ghp_plan_make_within (build.h) by request->sync, or if that is NULL by the choice above. What a sharded update
 * saves and costs is in the plan's certificate.
 *
 * Returns   as ghp_plan_make; infeasible only if neither fits
 * Tested    tests/planner/make/test_sync_choice.c */
enum ghp_status ghp_plan_make_synced(const struct ghp_plan_request *request, struct ghp_plan *plan);

#endif
