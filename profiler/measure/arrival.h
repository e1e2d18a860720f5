/* profiler/measure/arrival.h - what a step loses when computing meets communicating, in addition to the seconds of
 * either.
 *
 * Collectives are timed among workers that come to them at once and do nothing else. In a step they come from layers:
 * some are late, early ones sleep and have to be woken, and on a shared core the late one computes between the looks of
 * the early one. The executor's communication thread has to be woken, too, and its first messages take the core from
 * the layer that follows. Both are measured in a small step: typical operations with a short collective after every few
 * of them, compared with the same operations alone.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_rates.c */
#ifndef GHP_PROFILER_MEASURE_ARRIVAL_H
#define GHP_PROFILER_MEASURE_ARRIVAL_H

#include "profiler/measure/measure.h"

/* Measures both delays, 0 on one rank and if a device transport enqueues.
 *
 *     arrival_delay_s   a blocking exchange after computing, less the exchange as collectives are timed
 *     launch_delay_s    a reduction that the communication thread begins after computing, less what the slowdown
 *                       during reductions explains of it
 *
 * computes  1 <= n <= GHP_OVERLAP_TASKS tasks, as for ghp_measure_overlap; the short ones are taken
 * overlap   has the slowdowns; receives the delays, each >= 0
 *
 * Collective over m->world */
enum ghp_status ghp_measure_arrival(const struct ghp_measure *m, const struct ghp_task *computes,
                                    int n, struct ghp_overlap *overlap);

#endif
