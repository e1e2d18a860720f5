/* core/base/clock.h - the one clock by which anything is timed or waited for. */
#ifndef GHP_CORE_BASE_CLOCK_H
#define GHP_CORE_BASE_CLOCK_H

double ghp_now_s(void); /* CLOCK_MONOTONIC: since some fixed moment, never backwards */

/* What this thread has computed so far, on whichever core [s]. */
double ghp_thread_cpu_s(void);

#endif
