/* planner/recompute/recompute.h - which layers to recompute in the backward pass, so that a plan fits the memory and
 * loses least.
 *
 * For one plan (splits and staging), every set of layers can be recomputed. Two bounds exclude most sets. The bound of
 * the time is what all streams do anyway, plus the forward passes that are run again. The bound of the memory is what
 * is kept between the forward and the backward part; a set frees only what its own layers keep. The sets that both
 * bounds leave open are lowered, placed and simulated, those that free most memory first, until none is left or the
 * time is over.
 *
 * Source   docs/explanation/stages.md 8
 * Tested   tests/planner/recompute/test_recompute.c (brute force over all sets) */
#ifndef GHP_PLANNER_RECOMPUTE_RECOMPUTE_H
#define GHP_PLANNER_RECOMPUTE_RECOMPUTE_H

#include "planner/pipeline/partition.h"

struct ghp_recompute {
    bool found;      /* a set that fits, faster than job->best_s */
    bool *recompute; /* one a layer; owned */
    double step_s;
    int64_t peak_bytes;
    int64_t least_bytes; /* the least arena met */
    bool proven;         /* no set is faster: all were looked at, or bounded */
    int64_t plans;       /* simulated, or placed */
};

/* Sets that are lowered and placed at most: a first one that fits, and all that bounds leave open. */
enum { GHP_RECOMPUTE_FIRST = 0, GHP_RECOMPUTE_ALL = 20000 };

/* The fastest set for these splits that fits job->limit_bytes (> 0) and is faster than job->best_s; the empty one too.
 *
 * job       how is without staging
 * staging   the plan's; NULL: none; what it says of layers to be recomputed is not read
 * most      GHP_RECOMPUTE_FIRST: what is dear is kept again, no more is tried; else sets beyond that
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY; GHP_ERR_INPUT (a plan that cannot be) */
enum ghp_status ghp_recompute_compute(const struct ghp_partition_job *job,
                                      const struct ghp_staging *staging,
                                      const struct ghp_split *splits, int most,
                                      struct ghp_recompute *recompute);
void ghp_recompute_release(struct ghp_recompute *recompute); /* accepts a zeroed one */

#endif
