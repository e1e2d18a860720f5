/* planner/pipeline/interleave.h - virtual stages by trial: interleaved pipelines, in addition to the search of
 * partitions.
 *
 * Groups G dividing N, stages of equally many workers, two to four chunks a stage and micro-batches as in the space of
 * partitions give one staging each: its cuts divide the computation as equally as layers allow. All are simulated with
 * data parallelism inside their stages. The splits of the fastest few are then searched. Nothing is proven about them.
 *
 * Source   docs/explanation/stages.md 6
 * Tested   tests/planner/pipeline/test_interleave.c (brute force over the cuts of equal layers) */
#ifndef GHP_PLANNER_PIPELINE_INTERLEAVE_H
#define GHP_PLANNER_PIPELINE_INTERLEAVE_H

#include "planner/pipeline/partition.h"

/* The fastest interleaved plan; not found: none is faster than best_s. Stagings with operations that the profile does
 * not have are passed over.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; errors of lowering and costing */
enum ghp_status ghp_interleave_compute(const struct ghp_partition_job *job,
                                       struct ghp_partition *found);

#endif
