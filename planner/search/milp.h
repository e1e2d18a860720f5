/* planner/search/milp.h - the same search as a mixed integer program for GLPK: for graphs too wide for tables, and as
 * the reference implementation of planner/search/branch.h in tests.
 *
 * One binary a choice, one a pair (sums of pairs equal the choices at both ends), the step above every time
 * constraint that a solution has broken so far, memory constraints likewise. A solution is evaluated by the objective.
 * If that is worse than its constraints say, a no-good constraint forbids exactly this plan, and the program is solved
 * again.
 *
 * GLPK works to 1e-7 relative, so `proven` means that no plan is better by more than that.
 *
 * Tested  tests/planner/search/test_milp.c */
#ifndef GHP_PLANNER_SEARCH_MILP_H
#define GHP_PLANNER_SEARCH_MILP_H

#include "planner/search/branch.h"

/* Searches as ghp_branch_run does; limits.enough is not looked at.
 *
 * Returns   GHP_OK (also at the deadline); GHP_ERR_INTERNAL (GLPK failed); GHP_ERR_NO_MEMORY; what objective.evaluate
 *           returns */
enum ghp_status ghp_milp_run(const struct ghp_branch_job *job, struct ghp_branch_result *result);

/* GLPK's version as linked, such as "5.0". */
const char *ghp_milp_library(void);

#endif
