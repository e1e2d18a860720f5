/* planner/make/failure.h - why no plan fits, and what would.
 *
 * Called by planner/make/make.h alone. Tested  tests/tools/plan/test_plan.sh */
#ifndef GHP_PLANNER_MAKE_FAILURE_H
#define GHP_PLANNER_MAKE_FAILURE_H

#include "planner/make/context.h"

/* Takes what was met where layers were recomputed, by trial, 0: nothing, among the least memory: that is proven no
 * more. */
void ghp_fail_take_recomputed(int64_t recomputed_bytes, int64_t *least_bytes, bool *least_proven);

/* GHP_ERR_INFEASIBLE, of a search without stages. */
enum ghp_status ghp_fail_memory(const struct ghp_plan_context *context,
                                const struct ghp_search_result *result);

/* GHP_ERR_INFEASIBLE, of the stages that were asked for. */
enum ghp_status ghp_fail_given_stages(const struct ghp_plan_context *context,
                                      const struct ghp_partition *stages);

/* GHP_ERR_INFEASIBLE, of all that was searched.
 *
 * stages, recomputed   zeroed if they were not searched */
enum ghp_status ghp_fail_all(const struct ghp_plan_context *context,
                             const struct ghp_search_result *shared,
                             const struct ghp_partition *stages,
                             const struct ghp_partition *recomputed);

#endif
