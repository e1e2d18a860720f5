/* core/sharding/stage.h - pipeline partitioning: which workers of a group own which layers, and the order of a step's
 * micro-batches (core/sharding/schedule.h).
 *
 * A group is a list of stages; a stage is some of the group's workers and a contiguous part of the network, or several
 * parts that do not touch: *chunks*, the virtual stages of an interleaved pipeline, which are dealt to the stages in
 * turn. A step goes through them in micro-batches. One stage with all workers and one micro-batch is what a plan
 * without stages is: a NULL or zeroed staging. docs/explanation/stages.md has the rules.
 *
 * The workers of a stage in all groups are *numbered* in the order of their ranks; inside a stage splits, layouts and
 * subgroups are as core/sharding/split.h has them, with these numbers in place of ranks. A *placement* is one
 * worker's place in that.
 *
 * Tested  tests/core/sharding/test_stage.c */
#ifndef GHP_CORE_SHARDING_STAGE_H
#define GHP_CORE_SHARDING_STAGE_H

#include "core/sharding/split.h"

enum {
    GHP_MAX_STAGES = 16,
    GHP_MAX_STAGE_CHUNKS = 8,
    GHP_MAX_CHUNKS = GHP_MAX_STAGES * GHP_MAX_STAGE_CHUNKS,
    GHP_MAX_MICRO_BATCHES = 1024,
    GHP_MAX_SCHEDULE_STEPS = 3 * GHP_MAX_MICRO_BATCHES
};

/* Order of a stage's schedule steps: name, JSON text. */
#define GHP_PIPELINE_LIST(X)                                                                       \
    X(1F1B, "1f1b")               /* forward and backward in turn: few micro-batches in flight */  \
    X(FILL_DRAIN, "fill-drain")   /* all forward, then all backward */                             \
    X(ZB_H1, "zb-h1")             /* 1f1b whose weight gradients fill the bubbles */               \
    X(INTERLEAVED, "interleaved") /* 1f1b over several chunks a stage */

enum ghp_pipeline {
#define GHP_PIPELINE_ENUM(id, text) GHP_PIPELINE_##id,
    GHP_PIPELINE_LIST(GHP_PIPELINE_ENUM)
#undef GHP_PIPELINE_ENUM
        GHP_PIPELINE_COUNT
};

extern const char *const ghp_pipeline_names[GHP_PIPELINE_COUNT + 1]; /* NULL-terminated */

struct ghp_stage {
    int first_layer; /* of its first chunk: 0 for the first stage; ascending */
    int workers;     /* of each group, K_i >= 1 */
    /* workers of a block, to which samples are dealt; divides K_i; 0: K_i, all alike */
    int block_size;
};

/* Workers that a block of a stage has. */
static inline int ghp_stage_block_size(const struct ghp_stage *stage)
{
    return stage->block_size > 0 ? stage->block_size : stage->workers;
}

struct ghp_staging {
    int n; /* stages; 0 and 1: every worker owns every layer */
    struct ghp_stage stage[GHP_MAX_STAGES];
    int chunks; /* of each stage; 0 counts as 1 */
    int later_chunk[GHP_MAX_CHUNKS -
                    GHP_MAX_STAGES]; /* first layers of chunks n, n + 1, ...; ascending */
    int micro_batches;               /* u; 0 counts as 1 */
    enum ghp_pipeline pipeline;
    const int64_t *shares; /* NULL, or samples of a micro-batch for each rank; borrowed */
    /* NULL, or with `samples_per_worker`: each rank's speed relative to the slowest; borrowed */
    const double *speeds;
    /* NULL, or for each layer whether it is recomputed in the backward pass; borrowed */
    const bool *recompute;
};

/* Ranks of workers with the numbers first, first + stride, ...  Plain if held is 0: numbers are ranks. */
struct ghp_ranks {
    int first, count, stride;
    int held, group, from; /* number n is rank n / held * group + from + n % held */
    /* if not 0, of two stages: `skip` ranks lie between places 0 .. part - 1 of a group and the others */
    int part, skip;
};

struct ghp_layer_range {
    int first, end; /* layers first .. end - 1 */
};

struct ghp_placement {
    int stage, n_stages;
    int n_chunks;
    struct ghp_layer_range chunk[GHP_MAX_STAGE_CHUNKS]; /* the layers that it owns; ascending */
    int number;                 /* among the workers of its stage; of one stage: the rank */
    struct ghp_problem problem; /* the stage's workers, and its own share times these */
    int64_t micro_batch;        /* samples of one micro-batch, all groups together */
    int64_t first_sample;       /* of its share, in the micro-batch */
    int held, group, from;      /* as in struct ghp_ranks */
    /* relative to the slowest worker, whose costs a profile has; 1 with equal shares */
    double speed;
};

/* The samples, positions (rows of an image) and channels that a worker has of a tensor, as places in the micro-batch
 * and in the whole tensor. */
struct ghp_region {
    int64_t first_sample, samples;
    int64_t first_position, positions;
    int64_t first_channel, channels;
};

/* All of these take NULL for the trivial staging. */
int ghp_staging_stages(const struct ghp_staging *staging);        /* >= 1 */
int ghp_staging_micro_batches(const struct ghp_staging *staging); /* >= 1 */
bool ghp_staging_trivial(const struct ghp_staging *staging);      /* as if there were none */
/* The same one, or NULL for a trivial one: as programs are lowered. */
const struct ghp_staging *ghp_staging_or_none(const struct ghp_staging *staging);
int ghp_staging_group(const struct ghp_staging *staging,
                      int workers); /* K; all workers if there is one stage */
int ghp_stage_of(const struct ghp_staging *staging, int layer);
/* Whether the layer's output is made, not loaded, and read in one stage only: it may lie blocked. */
bool ghp_stage_keeps(const struct ghp_staging *staging, const struct ghp_model *model, int layer);

/* Chunks of all stages, numbered in the order of their layers: chunk c is of stage c mod n. One a stage, unless the
 * schedule is interleaved. */
int ghp_staging_chunks(const struct ghp_staging *staging); /* >= 1 */
int ghp_chunk_of(const struct ghp_staging *staging, int layer);
struct ghp_layer_range ghp_chunk_range(const struct ghp_staging *staging, int chunk, int n_layers);

/* Whether a cut may stand before the layer: not before what works in place on the tensor before it. */
bool ghp_stage_may_start(const struct ghp_model *model, int layer);
/* The first layer after a cut before `layer` that shares parameters with one before it, if all that share them have
 * to lie in one stage; -1: there is none. */
int ghp_stage_parts_sharers(const struct ghp_model *model, int layer);

/* Whether the layer can be recomputed in the backward pass: it makes a tensor of its own and is not an input, batch
 * norm or loss. */
bool ghp_stage_may_recompute(const struct ghp_layer *layer);

/* Structure: stages in order, whole groups, micro-batches and shares that come out even, batch norms that are possible
 * with them. Not the splits (ghp_split_check of each layer with its placement's problem).
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming what would do */
enum ghp_status ghp_staging_check(const struct ghp_staging *staging, const struct ghp_model *model,
                                  struct ghp_problem whole);

/* Whether a worker owns the layer; the first of its layers, and one past the last. */
bool ghp_placement_owns(const struct ghp_placement *placement, int layer);
int ghp_placement_first(const struct ghp_placement *placement);
int ghp_placement_end(const struct ghp_placement *placement);

/* The place of a rank. The staging is sound for that problem. */
struct ghp_placement ghp_placement_of(const struct ghp_staging *staging, int n_layers,
                                      struct ghp_problem whole, int rank);

/* The rank whose program stands for a stage's: the first with the largest share; if speeds are known, the one that
 * needs longest for its share. */
int ghp_stage_representative(const struct ghp_staging *staging, int stage,
                             struct ghp_problem whole);

/* The first rank with the largest share of a stage: whose arena is the stage's largest. */
int ghp_stage_fullest(const struct ghp_staging *staging, int stage, struct ghp_problem whole);

/* Whether layers of the stage can be split over `tp_size` workers: all members of each subgroup have equal shares. */
bool ghp_stage_takes_tp_size(const struct ghp_staging *staging, int stage, struct ghp_problem whole,
                             int tp_size);

/* The worker of a stage, counted inside its group, whose share has the sample (0 .. b - 1 of the group's). */
int ghp_stage_worker_of(const struct ghp_staging *staging, int stage, int group,
                        struct ghp_problem whole, int64_t sample);

/* `ranks` in numbers of the placement's stage, with the map to ranks. */
struct ghp_ranks ghp_placement_ranks(const struct ghp_placement *placement, struct ghp_ranks ranks);
int ghp_ranks_at(struct ghp_ranks ranks, int i);       /* the i-th rank */
int ghp_ranks_index(struct ghp_ranks ranks, int rank); /* its place among them, -1: none */
bool ghp_ranks_same(struct ghp_ranks a, struct ghp_ranks b);

/* A rank's region, and a placement's, of a tensor of that shape in `layout`. For ghp_region_of all workers of the
 * problem have equal shares. */
struct ghp_region ghp_region_of(struct ghp_layout layout, struct ghp_shape shape,
                                struct ghp_problem problem, int rank);
struct ghp_region ghp_placement_region(const struct ghp_placement *placement,
                                       struct ghp_layout layout, struct ghp_shape shape);

/* The layer of another stage that shares its parameters with this one: its owner, or the one tied to it; -1: none. Each
 * of the two stages has them, and holds the sum of both gradients. */
int ghp_stage_partner(const struct ghp_model *model, const struct ghp_staging *staging, int layer);

/* Whether the layer's parameters can be sharded among these stages: none shares them, their gradients are made in the
 * backward pass, and two chunks that share them reduce them once a step. Returns GHP_ERR_INPUT naming what would do. */
enum ghp_status ghp_stage_check_sharding(const struct ghp_model *model,
                                         const struct ghp_staging *staging, int layer,
                                         struct ghp_split split);

/* The split with each sharding that is offered (bits of enum ghp_param_sharding) and possible; without sharding if none
 * is possible. With one micro-batch GHP_SHARDING_MICRO_BATCH is left out for GHP_SHARDING_STEP. Returns their
 * number. */
struct ghp_sharding_place {
    const struct ghp_model *model;
    const struct ghp_staging *staging;
    int layer;
    struct ghp_problem problem; /* of its stage */
};
int ghp_stage_shardings(const struct ghp_sharding_place *place, unsigned offered,
                        struct ghp_split split, struct ghp_split variants[GHP_SHARDING_COUNT]);

/* Shards the parameters of each layer so, if its stage can, and else not at all.
 *
 * splits   one a layer; their shardings are set */
void ghp_staging_shard(const struct ghp_staging *staging, const struct ghp_model *model,
                       struct ghp_problem whole, enum ghp_param_sharding sharding,
                       struct ghp_split *splits);

/* The workers of two stages, of all groups, that hold the part of shared parameters that the worker of the placement
 * does, which is in the earlier or the later one.
 *
 * tp_size   of both layers; divides the workers of both stages */
struct ghp_ranks ghp_stage_partner_ranks(const struct ghp_staging *staging,
                                         const struct ghp_placement *placement, const int stages[2],
                                         int tp_size);

/* Whether a layer that shares parameters can be split over `tp_size` workers: both stages then hold equal parts of
 * them. */
bool ghp_stage_partner_takes(const struct ghp_model *model, const struct ghp_staging *staging,
                             int layer, int tp_size);

/* ghp_split_check_tied, and the same of stages.
 * Returns GHP_ERR_INPUT naming both. */
enum ghp_status ghp_staging_check_tied(const struct ghp_staging *staging,
                                       const struct ghp_model *model,
                                       const struct ghp_split *splits);

/* Whether backward steps leave weight gradients to steps of their own. */
bool ghp_staging_defers_weights(const struct ghp_staging *staging);

/* Readers of a layer's output in a stage: their number, and the edge to the first of them, which carries the remote
 * activation (-1: none). */
int ghp_remote_activation_readers(const struct ghp_model *model, const struct ghp_staging *staging,
                                  int layer, int stage, int *carrier);

#endif
