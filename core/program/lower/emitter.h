/* core/program/lower/emitter.h - appends instructions to a program, for a whole one or for a piece.
 *
 * The emitter knows where it is: which slot and micro-batch of the worker's schedule, and whether something is being
 * recomputed. What a layer, an edge and a transfer consist of is in layer.h, edge.h and transfer.h,
 * and what synchronisers add in sync/; lower.c strings them together. Every function that emits returns GHP_OK,
 * GHP_ERR_NO_MEMORY, or what its comment says. */
#ifndef GHP_CORE_PROGRAM_LOWER_EMITTER_H
#define GHP_CORE_PROGRAM_LOWER_EMITTER_H

#include "core/program/lower/bucket.h"
#include "core/program/lower/flow.h"

struct ghp_emitter {
    const struct ghp_lowering *lowering;
    const struct ghp_split *splits;        /* NULL: a piece */
    const struct ghp_bucket_plan *buckets; /* NULL: a piece, whose bucket is its own layer */
    struct ghp_program *program;
    int rank;
    struct ghp_placement placement;
    int half;                        /* points of a slot */
    int forward_base, backward_base; /* points before the slot's */
    int micro;
    bool first, last; /* micro-batch of the step */
    bool *recomputed; /* a layer: recomputed in this slot; NULL: no layer ever is */
    int recompute_at; /* point of what is recomputed, -1: nothing is now */
    /* The synchronisers of layers whose gradients are sharded, and of those whose weights are gathered for use; NULL:
     * there are no such layers. */
    const struct ghp_sync_ops *shards, *gathers;
};

/* An emitter at the first forward and the last backward slot, as pieces are emitted. */
struct ghp_emitter ghp_emitter_of(const struct ghp_lowering *lowering, int rank,
                                  struct ghp_program *piece);

/* An empty program of one point, complete but for its list. */
struct ghp_program ghp_emitter_program(const struct ghp_emitter *e, const struct ghp_split *splits);

/* The bucket of a layer's gradients, and its number; of a piece: what it has alone, -1. */
struct ghp_bucket_range ghp_emitter_range(const struct ghp_emitter *e, int layer,
                                          struct ghp_split split, int *bucket);

/* Points (program.h) in the emitter's slot. */
int ghp_emitter_point(const struct ghp_emitter *e, int layer, bool backward);
int ghp_emitter_edge_point(const struct ghp_emitter *e, int edge, bool backward);

/* Appends a blank instruction (no operands, nobody to talk to); NULL without memory. */
struct ghp_instr *ghp_emitter_add(const struct ghp_emitter *e, enum ghp_instr_kind kind, int point);

/* Appends a layer's update of `bytes` bytes of weights; NULL without memory. */
struct ghp_instr *ghp_emitter_add_update(const struct ghp_emitter *e, int layer, int64_t bytes,
                                         int point);

/* Appends a worker's or server's part in the exchange of a bucket of its own with the servers; NULL without memory. */
struct ghp_instr *ghp_emitter_add_exchange(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                           int bucket, struct ghp_bucket_range range, int point);

/* Appends the layer's wait until the bucket's instruction of a kind is done in this step. */
enum ghp_status ghp_emit_bucket_wait(const struct ghp_emitter *e, int layer,
                                     enum ghp_instr_kind kind, int bucket);

/* What a layer's parameters, its own or tied ones, are sharded by on this worker. */
enum ghp_param_sharding ghp_emitter_sharding(const struct ghp_emitter *e, int layer,
                                             struct ghp_split split);

/* The synchroniser of a layer: the plan's, or what its sharding asks for. */
const struct ghp_sync_ops *ghp_emitter_sync(const struct ghp_emitter *e, int layer,
                                            struct ghp_split split);

/* Appends the gather of a bucket's weights, before a pass of a layer; NULL without memory. */
struct ghp_instr *ghp_emitter_add_gather(const struct ghp_emitter *e, int layer, int bucket,
                                         const struct ghp_bucket_range *range, int point);

/* The replica group of this worker: who has the same shard of a layer split over `tp_size`. */
struct ghp_ranks ghp_emitter_replica_group(const struct ghp_emitter *e, int tp_size);

#endif
