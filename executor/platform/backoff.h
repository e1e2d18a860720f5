/* executor/platform/backoff.h - waits for another thread, process or device: tests for a moment, then pauses for
 * growing times.
 *
 * Each use has its numbers in one const struct, with the reason next to it. The loop is the caller's: test, end or
 * pause, and give up after a limit.
 *
 *     struct ghp_backoff_wait wait = ghp_backoff_begin(&numbers);
 *     while (!done())
 *         ghp_backoff_pause(&wait);
 *
 * It sleeps and never yields: on Linux since 6.6 a yield gives the whole time slice (3 ms) to any thread that
 * computes on the same core. All local. Tested tests/executor/platform/test_backoff.c */
#ifndef GHP_EXECUTOR_PLATFORM_BACKOFF_H
#define GHP_EXECUTOR_PLATFORM_BACKOFF_H

#include <stdbool.h>

struct ghp_backoff {
    double testing_s;       /* so long without any pause; 0: none of it */
    long first_ns, last_ns; /* pauses: 0 < first <= last < 1e9 */
    int growth; /* each is 1 / growth longer than the one before, up to last_ns: so much later, of the time waited, is
                   noticed what took so long */
};

struct ghp_backoff_wait {
    const struct ghp_backoff *backoff; /* borrowed */
    double begin_s; /* clock time; may be set later if the wait's limit begins again */
    long next_ns;
    bool tests; /* without a pause, still */
};

struct ghp_backoff_wait ghp_backoff_begin(const struct ghp_backoff *backoff);

/* Whether it is still testing, for loops that test without pauses. Reads the clock. */
bool ghp_backoff_tests(struct ghp_backoff_wait *wait);

/* Sleeps, unless it is still testing. Returns whether it slept. */
bool ghp_backoff_pause(struct ghp_backoff_wait *wait);

/* The length of a pause that the caller makes itself, so that it can be woken; the next one is longer. */
long ghp_backoff_take_ns(struct ghp_backoff_wait *wait);

/* Since begin_s. */
double ghp_backoff_waited_s(const struct ghp_backoff_wait *wait);

#endif
