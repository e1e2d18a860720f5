/* planner/pipeline/lower_bound.h - the least that layers cost a worker under any splits. First bounds of partitions are
 * sums of these.
 *
 * Private to planner/pipeline/partition*.c. Tested  tests/planner/pipeline/test_partition.c */
#ifndef GHP_PLANNER_PIPELINE_LOWER_BOUND_H
#define GHP_PLANNER_PIPELINE_LOWER_BOUND_H

#include "core/cost/profile.h"
#include "core/program/lower/lower.h"

/* The least that each layer costs a worker with a given number of samples in a micro-batch: prefix sums over the
 * layers. */
struct ghp_lower_bound {
    int64_t samples;
    int tp_sizes;   /* that divide it */
    int workers;    /* of the stage, 0 if they do not matter */
    double *work;   /* forward and backward, of one micro-batch; n_layers + 1 */
    double *data;   /* the same without weight gradients; n_layers + 1 */
    double *update; /* n_layers + 1 */
    struct ghp_lower_bound *next;
};

enum { GHP_LOWER_BOUNDS = 4096 }; /* a power of two */

/* A table of the lower bounds that were computed. */
struct ghp_lower_bounds {
    const struct ghp_lowering *lowering; /* without staging */
    const struct ghp_profile *profile;
    bool ghost_batches; /* a batch norm over ghost batches: the stage's workers matter */
    struct ghp_lower_bound *of[GHP_LOWER_BOUNDS];
};

/* The lower bound of workers with `samples` samples in a micro-batch; computed if it is not in the table.
 *
 * TP sizes   splits are over divisors of it
 * workers   of the stage, all groups together
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY; errors of lowering */
enum ghp_status ghp_lower_bound_compute(struct ghp_lower_bounds *lower_bounds, int64_t samples,
                                        int tp_sizes, int workers,
                                        const struct ghp_lower_bound **lower_bound);
void ghp_lower_bounds_release(struct ghp_lower_bounds *lower_bounds);

#endif
