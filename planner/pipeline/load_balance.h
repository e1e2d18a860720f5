/* planner/pipeline/load_balance.h - shares of the samples for workers that are not equally fast.
 *
 * For each block size D (a divisor of N, 1 first) whose blocks differ in speed: shares in proportion to the blocks'
 * speeds, the best splits for them (TP sizes divide D; with D = 1 all is data parallel), then the shares for which
 * the worker that needs longest needs least, with these splits. A step is no faster than any of its workers alone,
 * and each worker's is the simulation of its own program; it grows with its samples, so the least worst is found by
 * bisection, in quanta of 4, 2 or 1 samples: at most an eighth of the least share. Shares in proportion stay unless
 * others are faster by one part in a hundred: a profile of these workers has timed the operations over just so many
 * samples.
 *
 * Source   docs/explanation/stages.md 7
 * Tested   tests/planner/pipeline/test_load_balance.c (brute force over share vectors) */
#ifndef GHP_PLANNER_PIPELINE_LOAD_BALANCE_H
#define GHP_PLANNER_PIPELINE_LOAD_BALANCE_H

#include "planner/pipeline/partition.h"

/* The fastest plan with unequal shares that is faster than job->best_s and fits job->limit_bytes.
 *
 * job     space is not read
 * speed   of each worker (core/cost/speeds.h)
 * found   as ghp_partition_compute fills it: one stage, one micro-batch, shares; step_s is that of the worker that
 *         needs longest
 *
 * Returns   GHP_OK (found->found false: there is none); GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_load_balance_compute(const struct ghp_partition_job *job, const double *speed,
                                         struct ghp_partition *found);

#endif
