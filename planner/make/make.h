/* planner/make/make.h - from a model, a profile and a request to a whole plan, in steps that read what earlier steps
 * made and change none of it.
 *
 *     request       what is asked for, checked                                             make/request.h
 *     context       model, costs of every piece, what is left open                         make/context.h
 *     candidates    the three baselines; the search from their plans; stages; layers
 *                   recomputed; shares by the workers' speeds; the plan by rules           make/candidates.h
 *     choice        which of them, with which buckets, and why: margin over data
 *                   parallelism, the second best of each conv2d and linear layer           make/choice.h
 *     plan          the one place that writes it; break-even values                        make/write.h
 *
 * Where a network's tensors may lie blocked, the context has formats for data parallelism; if the choice cannot keep to
 * them, the steps are taken again with formats for its stages, then with none.
 *
 * The certificate speaks of the splits, each layer reduced alone (bucket_bytes 0), if the bucket size is tried
 * afterwards: its status then says so.
 *
 * Tested  tests/planner/make/test_make.c, tests/tools/plan/test_plan.sh */
#ifndef GHP_PLANNER_MAKE_MAKE_H
#define GHP_PLANNER_MAKE_MAKE_H

#include "planner/make/request.h"

/* Makes the plan.
 *
 * plan   filled on success and released by the caller; zeroed on failure
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE (says what binds and what would do); GHP_ERR_USAGE (force, groups); errors of
 *           model, profile and lowering */
enum ghp_status ghp_plan_make(const struct ghp_plan_request *request, struct ghp_plan *plan);

typedef enum ghp_status ghp_plan_maker(const struct ghp_plan_request *request,
                                       struct ghp_plan *plan);
/* Whether another plan is to take a plan's place. */
typedef bool ghp_plan_judge(const struct ghp_plan_request *request, const struct ghp_plan *plan,
                            const struct ghp_plan *other);

/* Makes another plan, and puts it in place of the one that is there if it is judged better.
 *
 * request   of the other plan
 * plan      replaced or left as it is, also on failure
 * taken     whether it was replaced
 *
 * Returns   GHP_OK, also if no other plan is feasible; other errors of the maker
 * Tested    tests/planner/make/test_sync_choice.c, tests/planner/make/test_shard_groups.c */
enum ghp_status ghp_plan_replace(ghp_plan_maker *make, ghp_plan_judge *is_better,
                                 const struct ghp_plan_request *request, struct ghp_plan *plan,
                                 bool *taken);

/* The maker's plan. If no limit on the memory was given, and the plan or data parallelism needs more than
 * worker_bytes, it is made again with worker_bytes as the limit.
 *
 * Returns   as the maker
 * Tested    tests/planner/make/test_make.c */
enum ghp_status ghp_plan_make_within(ghp_plan_maker *make, const struct ghp_plan_request *request,
                                     struct ghp_plan *plan);

#endif
