/* inspect/check_with.h - whether another solver confirms a plan's certificate: HiGHS, CBC or GLPK solves the integer
 * program that ghp-plan --write-mps wrote, and its optimum is compared with the certificate's step and bound.
 *
 * The solver is a program of its own, so ghp-inspect needs none. To add one: a row in inspect/check_with.c.
 *
 * Tested  tests/tools/plan/test_check_with.sh */
#ifndef GHP_INSPECT_CHECK_WITH_H
#define GHP_INSPECT_CHECK_WITH_H

#include "core/plan/plan.h"
#include "inspect/sheet.h"

struct ghp_check_with {
    const char *solver;  /* highs, cbc or glpk, or the path of its program */
    double time_limit_s; /* of the solver */
};

/* Runs the solver and reports what it says.
 *
 * path      of the plan
 * program   the integer program; NULL: the plan's file with .mps in place of .json
 *
 * Returns   GHP_OK: it confirms step and bound; GHP_ERR_INPUT: it does not, or the program is another plan's;
 *           GHP_ERR_INFEASIBLE: it proves less than the certificate claims, within the time or at all; GHP_ERR_USAGE
 *           (no such solver); GHP_ERR_IO (it cannot be run, or the program not be read); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_inspect_check_with(struct ghp_display *report, const struct ghp_plan *plan,
                                       const char *path, const char *program,
                                       const struct ghp_check_with *check);

#endif
