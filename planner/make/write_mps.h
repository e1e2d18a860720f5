/* planner/make/write_mps.h - the integer program of a plan's certificate, for solvers of others.
 *
 * Its head names the plan's network, profile, workers, batch and update, so that ghp-inspect --check-with knows whose
 * it is.
 *
 * Tested  tests/tools/plan/test_check_with.sh */
#ifndef GHP_PLANNER_MAKE_WRITE_MPS_H
#define GHP_PLANNER_MAKE_WRITE_MPS_H

#include "planner/make/request.h"

/* Writes the program of the plans among which the request's plan was searched.
 *
 * plan   what the request has made
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE (with stages or micro-batches, or without a bound); GHP_ERR_IO;
 *           GHP_ERR_NO_MEMORY; errors of lowering and costing */
enum ghp_status ghp_plan_write_mps(const struct ghp_plan_request *request,
                                   const struct ghp_plan *plan, const char *path);

#endif
