/* profiler/measure/overlap.h - how much computing and communicating slow each other down when both run.
 *
 * The executor's communication thread (executor/platform/task_thread.h) reduces without pause while the main thread
 * computes, or exchanges; each is compared with itself alone, on the same cores, with all ranks at it.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_rates.c */
#ifndef GHP_PROFILER_MEASURE_OVERLAP_H
#define GHP_PROFILER_MEASURE_OVERLAP_H

#include "profiler/measure/measure.h"

enum { GHP_OVERLAP_TASKS = 6 }; /* at most */

/* Measures the slowdowns; one rank has none (all 1, queueing_delay_s 0).
 *
 *     compute            computing during a reduction / computing alone
 *     comm               reduction during computing / reduction alone
 *     link               c in  seconds of both = c min(a, b) + |a - b|,  a and b the seconds of each alone
 *     queueing_delay_s   how much longer an exchange of a few KiB takes during a reduction than link times its seconds
 *                        alone; 0 if the device transport enqueues
 *     comm_long          comm of reductions of GHP_OVERLAP_LONG_BYTES, if those of GHP_OVERLAP_BYTES are slowed by 5 %
 *                        or more and it is not late; else 0
 *
 * computes  n >= 1 tasks, typical work that runs during reductions, some milliseconds a run; they run in turns, and
 *           count as much as they take
 * overlap   receives means over several rounds, slowdowns each >= 1
 *
 * Collective over m->world */
enum ghp_status ghp_measure_overlap(const struct ghp_measure *m, const struct ghp_task *computes,
                                    int n, struct ghp_overlap *overlap);

#endif
