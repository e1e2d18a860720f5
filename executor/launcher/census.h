/* executor/launcher/census.h - how many workers there can be: a command counts them, asked when a run has failed, and
 * every so often while one trains by fewer than it could.
 *
 * The command is run by sh; its first word on stdout is the number. */
#ifndef GHP_EXECUTOR_LAUNCHER_CENSUS_H
#define GHP_EXECUTOR_LAUNCHER_CENSUS_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdio.h>

struct ghp_census {
    /* given */
    const char *command; /* NULL: nobody counts */
    double every_s;      /* from one answer to the next question, while a run trains */
    /* of the question that is open */
    FILE *out; /* NULL: none */
    double next_s;
    char text[32];
    size_t n;
};

/* Asks, and waits for the answer.
 *
 * left   -1 where nobody counts
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (no number, or a failure of the command)
 * Local */
enum ghp_status ghp_census_count(struct ghp_census *census, int *left);

/* Asks when it is time, without waiting. Whether an answer has come; what is no number is no answer.
 *
 * Local
 * Tested   tests/executor/launcher/test_restart.c */
bool ghp_census_look(struct ghp_census *census, int *left);

/* Forgets the question that is open. Local. */
void ghp_census_forget(struct ghp_census *census);

#endif
