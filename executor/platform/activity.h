/* executor/platform/activity.h - what this process computes, and since when, for a thread that watches it: a kernel
 * that never returns cannot say so itself.
 *
 * One thread computes, and says what it begins and that it has ended; a wait for other workers has a limit of its own
 * and is not an activity. A handler of signals says that the run is to end. Any thread may ask.
 *
 * Tested   tests/tools/hardship/test_stall.sh */
#ifndef GHP_EXECUTOR_PLATFORM_ACTIVITY_H
#define GHP_EXECUTOR_PLATFORM_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

struct ghp_activity {
    const char *what; /* NULL: nothing is computed */
    uint64_t step;    /* from 0 */
    uint64_t number;  /* another one for each activity */
};

/* what   borrowed until ghp_activity_end */
void ghp_activity_begin(const char *what, uint64_t step);
void ghp_activity_end(void);
struct ghp_activity ghp_activity_now(void);

/* A signal that is to end the run has come; safe in its handler. */
void ghp_activity_interrupt(int number);
/* The last of these; 0: none has come. */
int ghp_activity_interrupted(void);

#endif
