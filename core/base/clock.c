/* core/base/clock.c - see base/clock.h. */
#include "core/base/clock.h"

#include <time.h>

double ghp_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
