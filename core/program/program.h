/* core/program/program.h - what one worker does in one training step, as a flat list of instructions over a buffer
 * table.
 *
 * The planner costs this list, the allocator sizes it and the executor runs it: one list, so that predicted and
 * measured speak of the same things. It is made by core/program/lower/lower.h and never edited afterwards.
 *
 * Three streams a worker: *compute* runs its instructions in list order; *communication* runs gradient reductions and
 * weight gathers in list order at the same time; *transfer* carries tensors between stages, in any order. An
 * instruction of another stream may start when all compute instructions before it in the list are done. An UPDATE waits
 * for the reduction of its bucket (`wait`) *of the previous step*: updates stand before their layers' forward pass
 * (program/sync.h says where), so the list is the steady state of a loop. The first step skips updates and what takes
 * updated weights to others; a *flush* (before evaluation, a checkpoint or the end) runs these alone, in the order of
 * `flush`.
 *
 * A *point* is a place in the step's order that depends on the model only, not on the splits: forward: every in-edge of
 * layer 0, layer 0, every in-edge of layer 1, layer 1, ...; backward: the last layer, its in-edges, and so on down.
 * With several micro-batches every step of the schedule (core/sharding/stage.h) has such points of its own, one
 * slot's after the other's; if layers are recomputed in the backward pass, each instruction is a point.
 * Buffers live from first_point to last_point inclusive. */
#ifndef GHP_CORE_PROGRAM_PROGRAM_H
#define GHP_CORE_PROGRAM_PROGRAM_H

#include "core/program/instr.h"
#include "core/program/lowering.h"

enum ghp_buffer_kind {
    GHP_BUFFER_OUTPUT,            /* y of a layer */
    GHP_BUFFER_EDGE_INPUT,        /* x of an edge after a reshard */
    GHP_BUFFER_EDGE_GRADIENT,     /* dx of an edge as the consumer makes it */
    GHP_BUFFER_EDGE_GRADIENT_OUT, /* dx of an edge after the reshard */
    GHP_BUFFER_WEIGHT,
    GHP_BUFFER_WEIGHT_GRADIENT, /* inside a bucket's buffer */
    GHP_BUFFER_MOMENT, /* of a parameter, the optimizer's first; without a slot: of an optimizer shard */
    GHP_BUFFER_SECOND_MOMENT, /* the same, its second */
    GHP_BUFFER_STATE,         /* running statistics */
    GHP_BUFFER_STATS_DELTA, /* by what a step's ghost batches move them, inside a bucket's buffer */
    GHP_BUFFER_SAVED, /* kept from forward to backward: pool indices, mean and inverse deviation, lrn scale */
    GHP_BUFFER_STATS,   /* doubles: batch_norm sums, a loss's rows, which STAT_REDUCE sums */
    GHP_BUFFER_LABELS,  /* int32, one a sample or position */
    GHP_BUFFER_METRICS, /* GHP_METRIC_COUNT doubles, and as many of each kept step */
    GHP_BUFFER_SQUARES, /* doubles: sums of squares of the step's gradients, as ghp_norm_sums says */
    GHP_BUFFER_SCRATCH,         /* of one instruction */
    GHP_BUFFER_BUCKET,          /* contiguous gradients that are reduced together */
    GHP_BUFFER_WEIGHT_BUCKET,   /* contiguous weights, which lie as their gradients do in theirs */
    GHP_BUFFER_OPTIMIZER_SHARD, /* this worker's part of either, which it alone updates */
    GHP_BUFFER_COMM,            /* receive segment of the communication stream */
    GHP_BUFFER_PREFETCH,        /* samples of the next load, made while the step runs */
    /* of a server: each worker's part of its shard of a bucket's gradients, one after the other */
    GHP_BUFFER_ARRIVALS,
    GHP_BUFFER_COPIES, /* of all weights: what a mix compares with, sends and receives */
    /* a layer's part of the first or second copy: no buffers of their own */
    GHP_BUFFER_FIRST_COPY,
    GHP_BUFFER_SECOND_COPY,
    GHP_BUFFER_WEIGHT_SHARD, /* this worker's part of a layer's sharded weights */
    GHP_BUFFER_BF16_WEIGHT,  /* a weight's copy in bfloat16 */
    GHP_BUFFER_KIND_COUNT
};

enum {
    GHP_COMM_SEGMENT_BYTES = 4 << 20, /* reductions receive into a segment of at most this size */
    GHP_NORM_PARTS = 512, /* doubles in a NORM's scratch: sums of parts, added in their order */
    GHP_MAX_STEP_SCRATCH = 2
};

struct ghp_buffer {
    enum ghp_buffer_kind buffer_kind;
    /* slot: which parameter, state, or reshard step; -1 if it does not apply */
    int layer, edge, slot;
    int64_t elements;
    int64_t bytes;               /* rounded up to GHP_ALIGN_BYTES */
    int first_point, last_point; /* inclusive; persistent buffers: 0 .. n_points - 1 */
    bool persistent;
    bool nchw16c;           /* lies in blocks of channels: core/program/memory_format.h */
    int storage;            /* buffer whose memory this one uses (itself unless an alias) */
    int64_t storage_offset; /* bytes inside that storage (gradients in a bucket) */
    int64_t offset;         /* bytes from the arena's start, set by ghp_program_place */
};

/* The buffers of an optimizer's moment, and whether a buffer is one. */
static inline enum ghp_buffer_kind ghp_moment_kind(int moment)
{
    return (enum ghp_buffer_kind)(GHP_BUFFER_MOMENT + moment);
}

static inline bool ghp_buffer_kind_is_moment(enum ghp_buffer_kind buffer_kind)
{
    return buffer_kind >= GHP_BUFFER_MOMENT && buffer_kind < GHP_BUFFER_MOMENT + GHP_MAX_MOMENTS;
}

struct ghp_bucket {
    int tp_size;   /* reduced over the N / TP size ranks that hold the same shard */
    int64_t bytes; /* with padding */
    /* of this worker's optimizer shard, or this server's shard; 0: it updates all of it */
    int64_t shard_bytes;
    int shards;                 /* replicas that it is divided among; 0: none */
    int64_t server_shard_bytes; /* of a server's shard; 0: no server has it */
    bool updated_here;          /* of what servers have: workers update it, too */
    int buffer;                 /* GHP_BUFFER_BUCKET */
    int weights;                /* GHP_BUFFER_WEIGHT_BUCKET, -1: none */
    int weight_shard, gradient_shard, moment[GHP_MAX_MOMENTS]; /* -1: none */
    /* How its layers' parameters are sharded. Unless NONE, the gradients live from pass to reduction, and then in the
     * optimizer shard alone. */
    enum ghp_param_sharding sharding;
    int64_t shard_offset; /* where this worker's optimizer shard begins in the bucket */
    struct ghp_ranks ranks;
};

struct ghp_mix_terms {           /* how a MIX goes: struct ghp_sync says it of a plan */
    const char *scheme;          /* by this name executor/mixing has it */
    int argument;                /* steps, by the scheme's own rule; or a */
    double chance;               /* of 0 to 1 */
    bool other;                  /* by its other rule */
    int groups, leader_period;   /* of workers, each with a leader; steps between leaders of all */
    struct ghp_neighbours graph; /* of neighbours */
};

struct ghp_program {
    /* How its plan trains and divides: a split a layer, and stages (NULL: none). They are for code that places weights,
     * saves them or loops over steps: the engine and mixing read none of them. All pointers are borrowed. */
    struct ghp_method method;
    const struct ghp_split *splits;
    const struct ghp_staging *staging;
    const struct ghp_model *model;
    int rank;                       /* a server's follows those of all workers */
    struct ghp_problem problem;     /* all workers, the global batch */
    struct ghp_placement placement; /* its place among the stages */
    int element_bytes;              /* 2, 4 or 8: core/model/precision.h */
    const struct ghp_optimizer *optimizer;
    const struct ghp_rate_rule *rates; /* by which learning rates follow norms; NULL: by none */
    int micro_batches;
    int replicas; /* workers whose weights differ between two steps; 1: none do */
    /* All steps are alike: a device may record them. */
    bool is_recordable;
    int servers;                           /* ranks that have weights; 0: there are none */
    const struct ghp_mixing_facts *mixing; /* NULL: weights do not mix */
    struct ghp_mix_terms mix;              /* of a program whose weights mix */
    int n_points;
    int n_instrs, max_instrs;
    struct ghp_instr *instrs;
    int n_flush, *flush; /* instructions that finish the step before: updates, then the others */
    int n_buffers, max_buffers;
    struct ghp_buffer *buffers;
    int n_buckets;
    struct ghp_bucket *buckets;
    int64_t peak_bytes; /* arena size, after ghp_program_place */
    int64_t live_bytes; /* greatest sum of live buffers at a point: no allocation can do better */
};

void ghp_program_release(struct ghp_program *program);

/* Scratch of a reduction of `bytes` bytes over `ranks` ranks, a multiple of GHP_ALIGN_BYTES. It holds a segment and at
 * least one aligned part for each rank, in whole elements. */
int64_t ghp_receive_bytes(int64_t bytes, int ranks);

/* Offsets for all storages so that no two that live at a common point overlap; sets offset, peak_bytes, live_bytes.
 * Greedy by size, best fit. Local. Tested tests/core/program/lower/test_lower.c */
enum ghp_status ghp_program_place(struct ghp_program *program);

/* That all buffers lie in the arena, and no two that live at a common point overlap: GHP_ERR_INTERNAL if not. */
enum ghp_status ghp_program_check_placement(const struct ghp_program *program);

/* Every read is written before, no two live buffers overlap, every wait names a reduction: GHP_ERR_INTERNAL if not. */
enum ghp_status ghp_program_check(const struct ghp_program *program);

/* Live bytes at each point, `live` has n_points entries. */
void ghp_program_live(const struct ghp_program *program, int64_t *live);

/* The elements of a parameter's gradient (a WEIGHT_GRADIENT buffer) that this worker squares for the norm: over all
 * workers of all stages each element of each whole parameter once. If gradients lie in optimizer shards it is this
 * worker's shard, else an even part among those that hold the same. It begins at a multiple of 16 elements. Local.
 * Tested tests/executor/engine/worker/test_update.c */
struct ghp_norm_range {
    int64_t first, end;
};
struct ghp_norm_range ghp_norm_range_of(const struct ghp_program *program, int buffer);

/* The doubles that a NORM_REDUCE sums: one of all gradients or, if rates follow norms, of each parameter of the
 * model in its order of layers and slots that of its gradients, then the other norm (core/optimizer/tensor_rates.h).
 * The buffer has one more then: the sum of the gradients' squares. */
int64_t ghp_norm_sums(const struct ghp_model *model, const struct ghp_rate_rule *rates);
/* A parameter's place in that order. */
int ghp_norm_place(const struct ghp_model *model, int layer, int slot);

/* Names the list, after `seed` (core/base/hash.h): kinds, streams, layers, passes, local operations, ranks, bytes,
 * buckets, waits, fusion, memory formats and order. Not buffers and scratch, which depend on the backend at hand.
 * Local. Tested tests/core/program/lower/test_lower.c */
uint64_t ghp_program_hash(const struct ghp_program *program, uint64_t seed);

/* per step by this worker, pairwise algorithms */
int64_t ghp_program_sent_bytes(const struct ghp_program *program);

/* Arena offset of a buffer's first byte (through its storage). */
int64_t ghp_buffer_offset(const struct ghp_program *program, int buffer);
const char *ghp_buffer_kind_name(enum ghp_buffer_kind buffer_kind);

#endif
