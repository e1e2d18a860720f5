/* executor/opbench/speed_probe.h - how fast this machine is just now, by two fixed jobs.
 *
 * A profile holds what they took when it was measured, a run what they take: a processor that is throttled, or a
 * machine shared with others, is told from a model that is wrong. Nothing is corrected by it.
 *
 *     compute   the forward pass of one linear layer that fits the caches
 *     memory    the update of weights that do not
 *
 * Call order: open -> time ... time -> close. All workers time at once, as they train. */
#ifndef GHP_EXECUTOR_OPBENCH_SPEED_PROBE_H
#define GHP_EXECUTOR_OPBENCH_SPEED_PROBE_H

#include "core/cost/profile.h"
#include "executor/backend/backend.h"

struct ghp_speed_prober;

/* Returns   GHP_OK; GHP_ERR_NO_MEMORY; the backend's failures
 * Local
 * Tested    tests/executor/opbench/test_speed_probe.c */
enum ghp_status ghp_speed_prober_open(const struct ghp_backend_ops *ops,
                                      struct ghp_backend *backend,
                                      struct ghp_speed_prober **prober);
void ghp_speed_prober_close(struct ghp_speed_prober *prober); /* accepts NULL */

/* Seconds of each job on this worker, the mean over some milliseconds of repeats. */
enum ghp_status ghp_speed_prober_time(struct ghp_speed_prober *prober,
                                      struct ghp_speed_probe *speed_probe);

/* The compute job alone, over and over for `last_s` > 0 seconds: mean seconds of a run. If that is long compared
 * with the time slices of a core that other programs use too, it tells how much of the core is left. */
enum ghp_status ghp_speed_prober_time_compute(struct ghp_speed_prober *prober, double last_s,
                                              double *seconds);

/* How much longer a job takes now than when it was profiled, 1 for as long; 0 if either is not known. */
struct ghp_speed_probe ghp_speed_probe_ratio(const struct ghp_speed_probe *now,
                                             const struct ghp_speed_probe *profiled);

#endif
