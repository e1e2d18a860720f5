/* planner/search/mps.h - the integer program whose optimum a certificate claims, as a file for other solvers.
 *
 *     minimise step
 *     sum of x over a layer's choices = 1
 *     sum of y with one choice at one end = that choice's x                both ends of every edge
 *     a choice's x = the x of the tied layer's choice that goes with it
 *     after a slot = before it + the work that the choices and pairs have there
 *     idle of a layer <= that of the one before it, and <= the x of its choices that reduce nothing
 *     forward, backward time >= that of the layer before + its work, which counts unless the layer is idle
 *     reduced >= the reduction before it, and >= the layer's backward time, each + its own seconds
 *     step >= all computation; all reductions; the last `reduced`
 *     bytes live at every point + the receive segment <= the limit         if there is one
 *
 * A layer is idle if neither it nor one before it waits for a reduction. So the chains of times replace the many sums
 * of planner/search/constraints.h: a step is at least the longest of these if and only if such times exist. The file is
 * whole, and no solver has to be told of a constraint later. Only x and idle are integer. All else follows from x; idle
 * is named integer because solvers then decide early which layer is the first that waits, on which their bound hangs.
 *
 * It does without stages. Its optimum is the certificate's step if the constraints are exact, else a lower bound.
 *
 * In parts: search/mps.c, search/mps_time.c.
 * Tested  tests/planner/search/test_mps.c, tests/tools/plan/test_check_with.sh */
#ifndef GHP_PLANNER_SEARCH_MPS_H
#define GHP_PLANNER_SEARCH_MPS_H

#include "planner/search/domain.h"

struct ghp_mps_job {
    const struct ghp_domain *domain; /* without stages; its plans are the program's */
    double limit_bytes; /* on live bytes; 0: none; else the instance has memory spans */
    double unit_s;      /* that are 1 in the program; > 0 */
    const char *head;   /* lines of comment, each with a '*' in front and a line feed */
};

/* Writes the program as free MPS.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_mps_write(const struct ghp_mps_job *job, const char *path);

#endif
