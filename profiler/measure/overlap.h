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
 *     compute   computing beside a reduction / computing alone
 *     comm      reduction beside computing / reduction alone
 *     link      c in  seconds of both = c min(a, b) + |a - b|,  a and b the seconds of each alone
 *     queueing_delay_s   what an exchange of a few KiB takes longer beside a reduction than link times its seconds
 *                        alone; 0 where the
 *               device transport enqueues
 *     comm_long comm of reductions of GHP_OVERLAP_LONG_BYTES, where those of GHP_OVERLAP_BYTES are slowed by 5 % or
 *     more;
 *               else 0
 *
 * computes  n >= 1 tasks, typical work beside reductions, some milliseconds a run; they run in turns, and count as much
 *           as they take
 * overlap   receives means over several rounds, slowdowns each >= 1
 *
 * Collective over m->world */
enum ghp_status ghp_measure_overlap(const struct ghp_measure *m, const struct ghp_task *computes,
                                    int n, struct ghp_overlap *overlap);

#endif
