/* core/base/clock.c - see base/clock.h. */
#include "core/base/clock.h"

#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double ghp_now_s(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double ghp_thread_cpu_s(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}
