/* planner/make/shard_groups.h - how many neighbouring workers parameters are sharded within, if --shard auto leaves it
 * open: all of them, or groups whose members share fast links.
 *
 * Tried are a node's workers, twice as many, and so on: the least in which the plan's own splits are faster by more than
 * 1 % and may fit the memory. A plan is searched within it, and taken if it is faster by so much; if it is not, the next
 * size is tried. */
#ifndef GHP_PLANNER_MAKE_SHARD_GROUPS_H
#define GHP_PLANNER_MAKE_SHARD_GROUPS_H

#include "planner/make/request.h"

/* Whether groups are tried for this request: several nodes of several workers, one stage, every sharding allowed, and
 * splits by search or data parallelism. */
bool ghp_shard_groups_open(const struct ghp_plan_request *request);

/* Puts a plan within groups in place of this one if it is faster; its certificate then says what it gains.
 *
 * request   ghp_shard_groups_open; its time limit is what is left of it
 * plan      made for it; replaced or left as it is, also on failure
 *
 * Returns   GHP_OK; errors of ghp_plan_make other than GHP_ERR_INFEASIBLE
 * Tested    tests/planner/make/test_shard_groups.c */
enum ghp_status ghp_shard_groups_try(const struct ghp_plan_request *request, struct ghp_plan *plan);

#endif
