/* executor/platform/activity.c - see activity.h. */
#include "executor/platform/activity.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(const char *) now_what;
static atomic_ullong now_step, now_number;
static atomic_int interrupted;

void ghp_activity_begin(const char *what, uint64_t step)
{
    atomic_store_explicit(&now_step, step, memory_order_relaxed);
    atomic_fetch_add_explicit(&now_number, 1, memory_order_relaxed);
    atomic_store_explicit(&now_what, what, memory_order_release);
}

void ghp_activity_end(void)
{
    atomic_store_explicit(&now_what, NULL, memory_order_release);
}

struct ghp_activity ghp_activity_now(void)
{
    struct ghp_activity now = {.what = atomic_load_explicit(&now_what, memory_order_acquire)};

    now.step = atomic_load_explicit(&now_step, memory_order_relaxed);
    now.number = atomic_load_explicit(&now_number, memory_order_relaxed);
    return now;
}

void ghp_activity_interrupt(int number)
{
    interrupted = number;
}

int ghp_activity_interrupted(void)
{
    return interrupted;
}
