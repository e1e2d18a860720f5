/* core/plan/integer_program.h - the head of a file with the integer program of a plan's certificate: whose it is, in
 * which unit its optimum is, and whether that is the certificate's step or only below it.
 *
 *     * certificate: model 0123456789abcdef profile 0123456789abcdef, 16 workers, batch 1024, allreduce, auto, 0 bytes
 *     * unit_s: 1e-05
 *     * exact: yes
 *     * hash: 0123456789abcdef
 *
 * The hash is of all lines after it: a program that was changed is not taken for the certificate's.
 *
 * The planner writes it in front of the program (planner/search/mps.h); ghp-inspect reads it (inspect/check_with.h).
 *
 * Tested  tests/tools/plan/test_check_with.sh */
#ifndef GHP_CORE_PLAN_INTEGER_PROGRAM_H
#define GHP_CORE_PLAN_INTEGER_PROGRAM_H

#include "core/plan/plan.h"

enum { GHP_INTEGER_PROGRAM_HEAD_SIZE = 1024, GHP_INTEGER_PROGRAM_SEAL_SIZE = 32 };

struct ghp_integer_program {
    double unit_s; /* 1 in the program */
    bool exact;    /* its optimum is the best plan's step; false: no plan is faster */
};

/* The unit of a plan's program: a power of ten, by which its step is 100 to 1000. Solvers work to absolute tolerances
 * of 1e-6, so this decides how exact they are. */
double ghp_integer_program_unit_s(const struct ghp_plan *plan);

/* The head of a plan's program.
 *
 * below   why its optimum can be below the step; NULL: it is the step
 * head    GHP_INTEGER_PROGRAM_HEAD_SIZE bytes */
void ghp_integer_program_format(const struct ghp_plan *plan, const char *below, char *head);

/* The head's last line, with a line feed.
 *
 * program   what comes after it, of n bytes
 * line      GHP_INTEGER_PROGRAM_SEAL_SIZE bytes */
void ghp_integer_program_seal(const char *program, size_t n, char *line);

/* Reads the head of a file.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (no such program, another plan's, or one that was changed); GHP_ERR_IO;
 *           GHP_ERR_NO_MEMORY */
enum ghp_status ghp_integer_program_read(const struct ghp_plan *plan, const char *path,
                                         struct ghp_integer_program *program);

#endif
