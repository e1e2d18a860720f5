/* profiler/measure/speed_probe.h - how fast the machine was while it was measured, for runs to compare themselves with.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_rates.c */
#ifndef GHP_PROFILER_MEASURE_SPEED_PROBE_H
#define GHP_PROFILER_MEASURE_SPEED_PROBE_H

#include "profiler/measure/measure.h"

enum { GHP_SPEED_PROBE_JOBS = 2 }; /* compute, memory */

/* Times the jobs of executor/opbench/speed_probe.h once, on all ranks at once, and appends their means over the ranks
 * to the samples.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; as ghp_measure_mean
 * Collective over m->world */
enum ghp_status ghp_measure_speed_probe(const struct ghp_measure *m,
                                        struct ghp_samples samples[GHP_SPEED_PROBE_JOBS]);

#endif
