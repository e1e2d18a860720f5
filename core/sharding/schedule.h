/* core/sharding/schedule.h - the order of a step's micro-batches on each stage of a pipeline.
 *
 * A *schedule step* is the forward part, the backward part or the deferred weight gradients of one micro-batch on one
 * chunk. A stage has a list of them, which lowering turns into instructions. docs/explanation/stages.md has the rules
 * and why they cannot wait for each other.
 *
 * Tested  tests/core/sharding/test_stage.c, tests/core/cost/test_stages.c */
#ifndef GHP_CORE_SHARDING_SCHEDULE_H
#define GHP_CORE_SHARDING_SCHEDULE_H

#include "core/sharding/stage.h"

struct ghp_schedule_step {
    int micro;
    int chunk; /* of its stage's: 0 is the first */
    bool backward;
    /* the weight gradients that its backward step left out; such a step receives and sends nothing */
    bool weights;
};

/* The schedule steps of a stage in order, one chunk each: forward and backward of u micro-batches; 3 u steps where
 * weight gradients are deferred; or the forward ones alone. `schedule` has room for GHP_MAX_SCHEDULE_STEPS. Returns
 * their number. */
int ghp_stage_schedule(const struct ghp_staging *staging, int stage, bool forward_only,
                       struct ghp_schedule_step *schedule);

/* Micro-batches of a stage that are between their forward and their backward part at once, at most; one counts for
 * each of the stage's chunks that it is in. */
int ghp_stage_in_flight(const struct ghp_staging *staging, int stage);

/* When each schedule step of each stage could run if all took the same time and transfers none. Only for an interleaved
 * schedule; zeroed for others. */
struct ghp_schedule_times {
    const struct ghp_staging *staging; /* borrowed */
    int steps;                         /* of each stage */
    int *time;                         /* of step s of stage i: [i * steps + s] */
    int *step; /* of each (chunk of all, micro-batch, backward): its place in its stage's list */
};

/* Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_schedule_times_init(const struct ghp_staging *staging, bool forward_only,
                                        struct ghp_schedule_times *times);
void ghp_schedule_times_release(struct ghp_schedule_times *times); /* accepts a zeroed one */

/* After how many further steps of its list a stage may wait until what step s sends to another chunk (of all) is
 * received: the least number that cannot make stages wait for each other. */
int ghp_schedule_patience(const struct ghp_schedule_times *times, int stage, int s,
                          struct ghp_schedule_step step, int to_chunk);

#endif
