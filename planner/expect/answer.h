/* planner/expect/answer.h - a question about a training step, and its answer as lines of text, as a table over several
 * numbers of nodes, or as a JSON object.
 *
 * Tested  tests/tools/plan/test_expect.sh */
#ifndef GHP_PLANNER_EXPECT_ANSWER_H
#define GHP_PLANNER_EXPECT_ANSWER_H

#include "planner/expect/expect.h"

enum { GHP_QUESTION_NODES = 16 };

struct ghp_expect_question {
    const char *place; /* the name that the machine or the profile was given by; borrowed */
    struct ghp_expect_setup setup;          /* with the first number of nodes */
    int nodes[GHP_QUESTION_NODES], n_nodes; /* >= 1; several: a table */
    double measured_s;                      /* 0: nothing was measured; of one number of nodes */
};

/* Answers on stdout.
 *
 * Returns   GHP_OK; as ghp_expect_step. If there are several numbers of nodes, one that cannot be has its reason in
 *           the answer; only if none can be this fails */
enum ghp_status ghp_question_answer(const struct ghp_expect_question *question, bool json);

#endif
