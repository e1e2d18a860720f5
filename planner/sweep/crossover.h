/* planner/sweep/crossover.h - from how many tokens a step on a transformer is better trained by data than split.
 *
 * Two parts are looked at, each by itself: the blocks (linear and attention layers), and the ends (embedding and output
 * layers, ghp_layer_is_end). For one batch after the other a whole plan is made, in powers of two of a sample a worker
 * up to GHP_CROSSOVER_DOUBLINGS; after the last batch whose plan splits the part, the change is closed in on. A batch
 * that cannot be planned splits nothing.
 *
 * Tested  tests/tools/plan/test_why.sh */
#ifndef GHP_PLANNER_SWEEP_CROSSOVER_H
#define GHP_PLANNER_SWEEP_CROSSOVER_H

#include "planner/make/make.h"

#include <stdio.h>

enum { GHP_CROSSOVER_DOUBLINGS = 12 };

enum ghp_part { GHP_PART_BLOCKS, GHP_PART_ENDS, GHP_PART_COUNT };

struct ghp_crossovers {
    int64_t tokens; /* of a sample */
    struct {
        int64_t split; /* the largest batch found whose plan splits the part [samples]; 0: none */
        int64_t data;  /* the next larger one looked at, which does not; 0: none was */
    } of[GHP_PART_COUNT];
};

/* Makes the plans.
 *
 * request   of any batch; its time limit is for all plans together; the profile is costed at other batches as a sweep's
 *
 * Returns   GHP_OK; GHP_ERR_USAGE: the network has no tokens; what ghp_plan_make returns but that a batch cannot be
 *           planned */
enum ghp_status ghp_crossovers_find(const struct ghp_plan_request *request,
                                    struct ghp_crossovers *crossovers);

/* Two lines of text, each with a # before it. */
enum ghp_status ghp_crossovers_print(const struct ghp_crossovers *crossovers, FILE *out);

#endif
