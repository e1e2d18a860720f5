/* planner/expect/degrees.h - a plan by its degrees, as other systems say it: tensor and pipeline parallelism, and whole
 * blocks recomputed. The degree of data parallelism is what is left of the workers.
 *
 * Tested  tests/tools/plan/test_expect.sh, tests/tools/bench/test_published_runs.sh */
#ifndef GHP_PLANNER_EXPECT_DEGREES_H
#define GHP_PLANNER_EXPECT_DEGREES_H

#include "core/cost/machine.h"
#include "core/sharding/stage.h"

struct ghp_degrees {
    int tensor, pipeline; /* >= 1 */
    bool recompute;       /* of each block of a transformer all but its output */
};

bool ghp_has_attention(const struct ghp_model *model);

/* What splits are checked against: without stages the samples of a micro-batch, of which there may be fewer than
 * workers. Stages give each worker a sample. */
struct ghp_problem ghp_degrees_problem(struct ghp_problem whole, const struct ghp_degrees *degrees,
                                       int micro_batches);

/* Transformers as in Shoeybi et al., arXiv 1909.08053, section 3; of other networks filters and rows of linear layers.
 *
 * problem  as ghp_degrees_problem has it
 * splits   one a layer
 *
 * Returns   GHP_OK; GHP_ERR_INPUT: a layer cannot be divided so */
enum ghp_status ghp_degrees_splits(const struct ghp_model *model, struct ghp_problem problem,
                                   const struct ghp_degrees *degrees, struct ghp_split *splits);

/* Systems that shard parameters gather and reduce a block's at once, ghp each layer's: deals the latency of the
 * machine's links to the sharded layers of a block. Nothing changes if fewer layers are sharded than there are
 * blocks. */
void ghp_degrees_share_latency(const struct ghp_model *model, const struct ghp_split *splits,
                               struct ghp_machine *machine);

/* Stages of as many blocks each.
 *
 * recompute   one a layer, borrowed by the staging if the degrees recompute
 *
 * Returns   GHP_OK; GHP_ERR_INPUT: workers, batch or blocks do not come out */
enum ghp_status ghp_degrees_staging(const struct ghp_model *model, struct ghp_problem problem,
                                    const struct ghp_degrees *degrees, int micro_batches,
                                    bool *recompute, struct ghp_staging *staging);

#endif
