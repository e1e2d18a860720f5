/* planner/build/build.h - from a model, a profile and a request to a whole plan: searches, baselines, buckets,
 * certificate.
 *
 * The order: the three baselines; the search over everything that the request leaves open, from the baselines' plans;
 * shares by the workers' speeds where these differ; bucket sizes on the best plans met; data parallelism in place of
 * a plan that is not surely faster; the second best of each conv2d and linear layer, and where that is faster under
 * buckets than the plan, it instead; break-even values.
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

#endif
