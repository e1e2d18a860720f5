/* profiler/measure/fill.h - entries of what the budget or the memory did not reach: scratch bytes from the kernel,
 * which is prepared but not run, seconds from the analytic models of what was measured.
 *
 * Private to profiler/.  Tested  tests/profiler/run/test_run.c */
#ifndef GHP_PROFILER_MEASURE_FILL_H
#define GHP_PROFILER_MEASURE_FILL_H

#include "profiler/measure/ops.h"

/* Fits the analytic model of computation to what the profile holds of the work list: total FLOPs by total seconds,
 * and total bytes by total seconds for ops without FLOPs. A rate without entries stays as it is. Local. */
void ghp_measure_fit_analytic(const struct ghp_worklist *worklist, struct ghp_profile *profile);

/* Enters what the work list asks for and nobody measured: seconds by interpolation or analytic model, scratch from
 * the backend.
 * Seals the profile. Local (rank 0). */
enum ghp_status ghp_measure_fill(const struct ghp_measure *m, const struct ghp_worklist *worklist,
                                 struct ghp_profile *profile, struct ghp_ops_count *count);

#endif
