/* profiler/measure/rates.h - what is priced by its bytes alone: strided copies, updates, loading, accumulation.
 *
 * Each is timed by the executor's own code at a small and a large size; latency and bandwidth are the straight line
 * through the two. The bytes are those that core/program/lower/lower.h counts: copied; weights and moments, for each
 * optimizer; images and labels; the sum's;
 * and gradients that are squared, which are only read.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_rates.c */
#ifndef GHP_PROFILER_MEASURE_RATES_H
#define GHP_PROFILER_MEASURE_RATES_H

#include "profiler/measure/measure.h"

/* Fills profile->copy, update, load and accumulate on all ranks.
 *
 * model     whose samples are loaded (the built-in generator's)
 * samples   of one worker, >= 1
 *
 * Collective over m->world */
enum ghp_status ghp_measure_rates(const struct ghp_measure *m, const struct ghp_model *model,
                                  int64_t samples, struct ghp_profile *profile);
/* profile->load alone, of samples of `data` as training takes them, or if it is NULL generated ones.
 *
 * Returns   what ghp_data_open and ghp_measure_task return
 * Collective over m->world */
enum ghp_status ghp_measure_load(const struct ghp_measure *m, const struct ghp_model *model,
                                 const char *data, int64_t samples, struct ghp_rate *load);

/* The straight line through two timings; a line that would fall, or start below 0, is pinned to latency 0.
 * bytes[0] < bytes[1].  Local */
struct ghp_rate ghp_measure_line(const double bytes[2], const struct ghp_timed timed[2]);

#endif
