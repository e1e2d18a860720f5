/* executor/launcher/question.h - runs a command and waits for its answer during other work, with a time limit.
 *
 * It is run by sh in a process group of its own, without stdin, and is ended with this process. Its answer is complete
 * when it has ended, even if another process still holds its stdout.
 *
 * Call order: ask -> hear, as often as one likes -> drop, which hear does when there is nothing more to hear.
 *
 * Tested  tests/executor/launcher/test_restart.c, test_replan.c */
#ifndef GHP_EXECUTOR_LAUNCHER_QUESTION_H
#define GHP_EXECUTOR_LAUNCHER_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { GHP_QUESTION_TEXT_BYTES = 64 };

struct ghp_question {
    pid_t process;                      /* 0: none is asked */
    int out;                            /* its stdout */
    double end_s;                       /* when it is ended */
    char text[GHP_QUESTION_TEXT_BYTES]; /* what it has printed, as far as there is room */
    size_t n;
};

enum ghp_answer {
    GHP_ANSWER_AWAITED, /* nothing yet, or nothing was asked */
    GHP_ANSWER_GIVEN,   /* the command has ended with exit code 0: `text` is there */
    GHP_ANSWER_FAILED,  /* it has ended otherwise */
    GHP_ANSWER_LATE     /* it has not ended in time, and was ended */
};

/* Starts the command. False: no process, or no pipe. Local. */
bool ghp_question_ask(struct ghp_question *question, const char *command, double limit_s);

/* What has come of it, without waiting. Local. */
enum ghp_answer ghp_question_hear(struct ghp_question *question);

/* Ends the command; accepts one that is not asked. Local. */
void ghp_question_drop(struct ghp_question *question);

#endif
