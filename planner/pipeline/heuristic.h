/* planner/pipeline/heuristic.h - pipeline partitioning by rules instead of a search, as in the literature on group
 * hybrid parallelism. It shows what a plan by rules of thumb costs compared with the best one.
 *
 *     1. layer preference: a layer prefers data parallelism if reducing its weights' gradient over all workers moves
 *        fewer bytes than gathering its activations over a group; the front ends with the last layer before
 *        which all prefer data
 *     2. G: the divisor of N next to G* = sqrt(N B A / W_r) (docs/results/closed-forms.md), in the logarithm
 *     3. stages: K_m grows from 1 while the step falls; then one stage, if it is faster
 * The rear is split `out` as far as it divides. Every step of a rule is evaluated by the simulation.
 *
 * Source   docs/explanation/stages.md 6 (reconstructed: the paper's own rules were not available)
 * Tested   tests/planner/pipeline/test_partition.c */
#ifndef GHP_PLANNER_PIPELINE_HEURISTIC_H
#define GHP_PLANNER_PIPELINE_HEURISTIC_H

#include "planner/pipeline/partition.h"

/* The plan by rules. job->space and best_s are not used; a plan above job->limit_bytes does not count.
 *
 * allocation   staging (of one stage if that is faster) and splits; found is false if no rule's plan fits or can
 *              be
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_heuristic(const struct ghp_partition_job *job, struct ghp_partition *partition);

#endif
