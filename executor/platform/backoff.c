/* executor/platform/backoff.c - see platform/backoff.h. */
#include "executor/platform/backoff.h"

#include "core/base/clock.h"

#include <time.h>

struct ghp_backoff_wait ghp_backoff_begin(const struct ghp_backoff *backoff)
{
    return (struct ghp_backoff_wait){backoff, ghp_now_s(), backoff->first_ns,
                                     backoff->testing_s > 0};
}

bool ghp_backoff_tests(struct ghp_backoff_wait *wait)
{
    wait->tests = wait->tests && ghp_backoff_waited_s(wait) < wait->backoff->testing_s;
    return wait->tests;
}

long ghp_backoff_take_ns(struct ghp_backoff_wait *wait)
{
    long ns = wait->next_ns, longer = ns + ns / wait->backoff->growth;

    wait->next_ns = longer < wait->backoff->last_ns ? longer : wait->backoff->last_ns;
    return ns;
}

bool ghp_backoff_pause(struct ghp_backoff_wait *wait)
{
    if (ghp_backoff_tests(wait)) return false;
    nanosleep(&(struct timespec){.tv_nsec = ghp_backoff_take_ns(wait)}, NULL);
    return true;
}

double ghp_backoff_waited_s(const struct ghp_backoff_wait *wait)
{
    return ghp_now_s() - wait->begin_s;
}
