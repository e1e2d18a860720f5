/* executor/launcher/worker_count.h - how many workers there can be: a command counts them, asked when a run has failed,
 * and every so often while one trains by fewer than it could.
 *
 * The command is run by sh; its first word on stdout is the number. One that does not end in time is ended, and that is
 * said: a connection to a host that has died may never return. */
#ifndef GHP_EXECUTOR_LAUNCHER_WORKER_COUNT_H
#define GHP_EXECUTOR_LAUNCHER_WORKER_COUNT_H

#include "core/base/status.h"
#include "executor/launcher/question.h"

#include <signal.h>

struct ghp_worker_count {
    /* given */
    const char *command; /* NULL: nobody counts */
    double every_s;      /* from one answer to the next question, while a run trains */
    double limit_s;      /* how long it may take */
    /* found */
    struct ghp_question question; /* the open one */
    double next_s;
};

/* Asks, and waits for the answer, for as long as nobody asks this process to stop.
 *
 * stop_requests   how often a signal asked it
 * left            -1 if nobody counts, does so in time, or wants to know any more
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (no number, or a failure of the command)
 * Local */
enum ghp_status ghp_worker_count_ask(struct ghp_worker_count *worker_count,
                                     const volatile sig_atomic_t *stop_requests, int *left);

/* Asks when it is time, without waiting. Whether an answer has come; anything but a number is not an answer.
 *
 * Local
 * Tested   tests/executor/launcher/test_restart.c */
bool ghp_worker_count_poll(struct ghp_worker_count *worker_count, int *left);

/* Ends the question that is open. Local. */
void ghp_worker_count_cancel(struct ghp_worker_count *worker_count);

#endif
