/* planner/build/build.h - from a model, a profile and a request to a whole plan, in steps that read what earlier steps
 * made and change none of it.
 *
 *     request       what is asked for, checked                                             build/request.h
 *     setting       model, costs of every piece, what is left open                         build/setting.h
 *     candidates    the three baselines; the search from their plans; stages; layers
 *                   recomputed; shares by the workers' speeds; the plan by rules           build/candidates.h
 *     choice        which of them, with which buckets, and why: margin over data
 *                   parallelism, the second best of each conv2d and linear layer           build/choice.h
 *     plan          the one place that writes it; break-even values                        build/write.h
 *
 * Where a network's tensors may lie blocked, the setting has formats for data parallelism; if the choice cannot keep to
 * them, the steps are taken again with formats for its stages, then with none.
 *
 * The certificate speaks of the splits, each layer reduced alone (bucket_bytes 0), where the bucket size is tried
 * afterwards: its status then says so.
 *
 * Tested  tests/planner/build/test_build.c, tests/tools/plan/test_plan.sh */
#ifndef GHP_PLANNER_BUILD_BUILD_H
#define GHP_PLANNER_BUILD_BUILD_H

#include "planner/build/request.h"

/* Makes the plan.
 *
 * plan   filled on success and released by the caller; zeroed on failure
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE (says what binds and what would do); GHP_ERR_USAGE (force, groups); errors of
 *           model, profile and lowering */
enum ghp_status ghp_plan_make(const struct ghp_plan_request *request, struct ghp_plan *plan);

typedef enum ghp_status ghp_plan_maker(const struct ghp_plan_request *request,
                                       struct ghp_plan *plan);

/* The maker's plan. Where no limit on the memory was given, and the plan or data parallelism needs more than share_bytes, it
 * is made again with share_bytes as the limit.
 *
 * Returns   as the maker
 * Tested    tests/planner/build/test_build.c */
enum ghp_status ghp_plan_make_within(ghp_plan_maker *make, const struct ghp_plan_request *request,
                                     struct ghp_plan *plan);

#endif
