/* planner/pipeline/load_balance.h - shares of the samples for workers that are not equally fast.
 *
 * For each block size D (a divisor of N, 1 first) whose blocks differ in speed, three steps: shares in proportion to
 * the blocks' speeds; the best splits for these shares (TP sizes divide D; with D = 1 all layers are data parallel);
 * then, with these splits, the shares that minimise the time of the slowest worker. A step takes at least as long as
 * each worker alone, which is found by simulating the worker's own program. That time grows with the worker's samples,
 * so the minimum is found by bisection, in quanta of 4, 2 or 1 samples: at most an eighth of the least share. Shares in
 * proportion stay unless others are faster by 1 %, since a profile of these workers has timed the operations over
 * exactly these numbers of samples.
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
 * found   as ghp_partition_compute fills it: one stage, one micro-batch, shares; step_s is that of the slowest worker
 *
 * Returns   GHP_OK (found->found false: there is none); GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_load_balance_compute(const struct ghp_partition_job *job, const double *speed,
                                         struct ghp_partition *found);

#endif
