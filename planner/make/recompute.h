/* planner/make/recompute.h - plans whose layers are recomputed in the backward pass, if the memory binds.
 *
 * The plans that would be fastest without the limit are those that it costs most to give up: the best that a search
 * without it meets, pure data parallelism, and if stages are searched the same in micro-batches and the best staging
 * without a limit. For each a first set of layers to recompute that fits (planner/recompute/recompute.h); then for
 * each, as far as the time goes, the sets that bounds leave open compared with the best so far; last all sets of the
 * fastest.
 *
 * Called by planner/make/make.h alone. Tested  tests/planner/recompute/test_recompute.c */
#ifndef GHP_PLANNER_MAKE_RECOMPUTE_H
#define GHP_PLANNER_MAKE_RECOMPUTE_H

#include "planner/pipeline/partition.h"

struct ghp_recompute_job {
    /* limit_bytes > 0; only plans faster than best_s count */
    const struct ghp_partition_job *partition;
    struct ghp_instance *instance;   /* of plans without stages */
    const struct ghp_domain *domain; /* what they may choose from */
    bool search_stages;
};

/* The fastest plan with layers recomputed that fits.
 *
 * found   as ghp_partition_compute fills it: staging, splits, recompute, least_bytes
 *
 * Returns   GHP_OK (found->found false: there is none); GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_recompute_plan_compute(const struct ghp_recompute_job *job,
                                           struct ghp_partition *found);

#endif
