/* core/program/lower_private.h - private to core/program/lower*.c and core/program/sync: what the emitting and the
 * linking half share.
 *
 * The emitter appends instructions to a program, for a whole one or for a piece. It knows where it is: which slot and
 * micro-batch of the worker's schedule, and whether something is being recomputed. What a layer, an edge and a transfer
 * consist of is in lower_layer.c, lower_edge.c and lower_transfer.c; lower.c strings them together. Every function that
 * emits returns GHP_OK, GHP_ERR_NO_MEMORY, or what its comment says. */
#ifndef GHP_CORE_PROGRAM_LOWER_PRIVATE_H
#define GHP_CORE_PROGRAM_LOWER_PRIVATE_H

#include "core/program/lower.h"

struct ghp_emitter;

/* Which layers' gradients are reduced together. */
struct ghp_bucket_plan {
    int n;
    int *of_layer; /* bucket of a layer's gradients, -1: no parameters */
    struct ghp_bucket_range {
        int tp_size;     /* 0: gradients come out global (batch_norm over the global batch) */
        int ready_layer; /* its last member in backward order */
        int64_t gradient_bytes;
        int64_t bytes;       /* the same, padded to whole optimizer shards */
        int64_t shard_bytes; /* of one replica, which alone updates it; 0: all update all */
        int64_t cut_bytes;   /* of one server; 0: no server has it */
        bool updated_here;   /* of what servers have: workers update it, too */
        bool holds_weights;  /* its layers' weights lie together as their gradients do */
        int partner;         /* the layer of another stage that has the same parameters; -1: none */
    } * ranges;
};

enum ghp_status ghp_bucket_plan_init(const struct ghp_lowering *lowering,
                                     const struct ghp_placement *placement,
                                     const struct ghp_split *splits, struct ghp_bucket_plan *plan);
void ghp_bucket_plan_release(struct ghp_bucket_plan *plan);

/* The bucket of a layer's gradients, and its number; of a piece: what it has alone, -1. */
struct ghp_bucket_range ghp_emitter_range(const struct ghp_emitter *e, int layer,
                                          struct ghp_split split, int *bucket);

/* The layer whose parameters its stage has and updates before the layer's forward pass: itself, or its owner where that
 * is in another stage; -1: none. */
int ghp_lower_held(const struct ghp_lowering *lowering, int layer);

/* Those who sum the gradients of a bucket: the replica group, and that of its partner in another stage. */
struct ghp_ranks ghp_bucket_ranks(const struct ghp_lowering *lowering,
                                  const struct ghp_placement *placement,
                                  const struct ghp_bucket_range *range);

/* 0: nothing to reduce, else the TP size whose replicas sum. */
int ghp_layer_reduce_tp_size(const struct ghp_lowering *lowering, int layer,
                             struct ghp_split split);

/* A gradient flows through this edge into parameters (no closed-form premise). */
bool ghp_edge_needs_gradient(const struct ghp_model *model, int edge);

/* In a stage (docs/stages.md): whether a gradient flows through this edge into a buffer of the placement's; the edge
 * whose gradient comes first into a layer's output, or remote activation. A gradient from a later stage comes last: it
 * is waited for right before the layer's own backward pass. */
int ghp_placement_first_gradient(const struct ghp_lowering *lowering,
                                 const struct ghp_placement *placement, int layer);

/* Layouts of a layer's output as a stage sees it: its own, or its remote activation's (`x`, `dx` mean nothing then). */
struct ghp_layouts ghp_placement_layouts(const struct ghp_lowering *lowering,
                                         const struct ghp_placement *placement,
                                         const struct ghp_split *splits, int layer);

/* Whether the layer's output is recomputed in the backward pass: its own mark, or that of the tensor's maker it works
 * on; never of what works on a remote activation in place, which no longer is what was received. */
bool ghp_lower_recomputes(const struct ghp_lowering *lowering, int layer);

/* Appends a worker's or server's part in the exchange of a bucket of its own with the servers; NULL without memory. */
struct ghp_instr *ghp_emitter_add_exchange(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                           int bucket, struct ghp_bucket_range range, int point);

/* Operands, buffers, buckets and lifetimes for a complete list of instructions. */
enum ghp_status ghp_buffers_assign(const struct ghp_lowering *lowering,
                                   const struct ghp_split *splits,
                                   const struct ghp_bucket_plan *buckets,
                                   struct ghp_program *program);

/* The program passes over a list with buffers, in the order of their table. */
enum ghp_status ghp_lower_run_passes(const struct ghp_lowering *lowering,
                                     struct ghp_program *program);

/* ---- the emitter ---- */

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
};

/* At the first forward and the last backward slot, as pieces are emitted. */
struct ghp_emitter ghp_emitter_of(const struct ghp_lowering *lowering, int rank,
                                  struct ghp_program *piece);

/* An empty program of one point, with all that it says besides its list. */
struct ghp_program ghp_emitter_program(const struct ghp_emitter *e, const struct ghp_split *splits);

static inline const struct ghp_sync_ops *ghp_lowering_sync(const struct ghp_lowering *lowering)
{
    return ghp_sync_ops_of(lowering->method.sync);
}

/* Whether weights and running statistics are averaged over workers. */
static inline bool ghp_lowering_averages(const struct ghp_lowering *lowering)
{
    return ghp_lowering_sync(lowering)->replicas && ghp_lowering_sync(lowering)->mixing == NULL &&
           lowering->problem.workers > 1;
}

/* Whether weights meet others' between two steps (sync/mixing.c); whether batch statistics are each worker's own. */
bool ghp_lowering_mixes(const struct ghp_lowering *lowering);
static inline bool ghp_lowering_differs(const struct ghp_lowering *lowering)
{
    return ghp_lowering_averages(lowering) || ghp_lowering_sync(lowering)->mixing != NULL;
}

static inline const struct ghp_optimizer *
ghp_lowering_optimizer(const struct ghp_lowering *lowering)
{
    return lowering->method.optimizer != NULL ? lowering->method.optimizer : &ghp_optimizer_sgd;
}

/* Points (program.h) in the emitter's slot. */
int ghp_emitter_point(const struct ghp_emitter *e, int layer, bool backward);
int ghp_emitter_edge_point(const struct ghp_emitter *e, int edge, bool backward);

/* Appends a blank instruction (no operands, nobody to talk to); NULL without memory. */
struct ghp_instr *ghp_emitter_add(const struct ghp_emitter *e, enum ghp_instr_kind kind, int point);

/* Appends a layer's update of so many bytes of weights; NULL without memory. */
struct ghp_instr *ghp_emitter_add_update(const struct ghp_emitter *e, int layer, int64_t bytes,
                                         int point);

/* Appends the layer's wait until the bucket's instruction of a kind is done in this step. */
enum ghp_status ghp_emit_bucket_wait(const struct ghp_emitter *e, int layer,
                                     enum ghp_instr_kind kind, int bucket);

/* The replica group of this worker: who has the same shard of a layer split over `tp_size`. */
struct ghp_ranks ghp_emitter_replica_group(const struct ghp_emitter *e, int tp_size);

/* ---- a layer ---- */

/* Returns also GHP_ERR_INPUT: a split that the layer, or the worker's stage, cannot take. */
enum ghp_status ghp_emit_layer_forward(const struct ghp_emitter *e, int layer,
                                       struct ghp_split split);
enum ghp_status ghp_emit_layer_backward(const struct ghp_emitter *e, int layer,
                                        struct ghp_split split);
/* The weight gradients that ghp_emit_layer_backward left out, as the schedule asks, and the reductions that are ready. */
enum ghp_status ghp_emit_layer_deferred(const struct ghp_emitter *e, int layer,
                                        struct ghp_split split);
/* The update of all that this worker holds of a layer; nothing of a layer without parameters. */
enum ghp_status ghp_emit_whole_update(const struct ghp_emitter *e, int layer,
                                      struct ghp_split split);
/* The same at a point of the caller's. */
enum ghp_status ghp_emit_layer_update(const struct ghp_emitter *e, int layer,
                                      struct ghp_split split, int point);
/* Of synchronisers that mix: updates, where workers update, and the MIX behind them; a piece's update. */
enum ghp_status ghp_emit_mixing_start(const struct ghp_emitter *e);
enum ghp_status ghp_emit_mixing_before(const struct ghp_emitter *e, int layer,
                                       struct ghp_split split);
/* For struct ghp_mixing_facts: in_step of workers that never wait for others, or always; staleness that nothing bounds,
 * or says. */
bool ghp_mixing_never(struct ghp_sync sync);
bool ghp_mixing_always(struct ghp_sync sync);
int ghp_mixing_unbounded(struct ghp_sync sync);
double ghp_mixing_unknown(struct ghp_sync sync, int workers);
/* The reductions whose last gradient the layer has made: into sums that all replicas get, or of each one's optimizer
 * shard. */
enum ghp_status ghp_emit_reductions(const struct ghp_emitter *e, int layer, struct ghp_split split);
/* Those of parameters whose owner is in an earlier stage, which makes its own gradients last: at the step's end. */
enum ghp_status ghp_emit_partner_reductions(const struct ghp_emitter *e);
/* The norms of the gradients that a layer has just made of a micro-batch, before they are added to any. */
enum ghp_status ghp_emit_batch_norms(const struct ghp_emitter *e, int layer,
                                     const struct ghp_local *local);
/* The labels alone, in a last stage that does not load the samples. */
enum ghp_status ghp_emit_labels(const struct ghp_emitter *e);

/* ---- an edge ---- */

/* `from`: the producer's layouts as this stage sees them. */
enum ghp_status ghp_emit_edge_forward(const struct ghp_emitter *e, int edge,
                                      struct ghp_layouts from, struct ghp_split to);
enum ghp_status ghp_emit_edge_backward(const struct ghp_emitter *e, int edge,
                                       struct ghp_layouts from, struct ghp_split to);
/* `dy` of the edge's producer += this edge's gradient. */
enum ghp_status ghp_emit_addition(const struct ghp_emitter *e, int edge, struct ghp_layout dy,
                                  int point);

/* ---- between stages ---- */

/* Whether the edge brings a tensor from another stage, for itself and all later readers in its own. */
bool ghp_edge_carries(const struct ghp_lowering *lowering, int edge, int *from_stage,
                      int *to_stage);

/* The transfer of the edge's tensor, or gradient. `producer` and `remote_activation`: layouts on both sides. */
struct ghp_transfer ghp_edge_transfer_of(const struct ghp_lowering *lowering, int edge,
                                         bool backward, struct ghp_layouts producer,
                                         struct ghp_layouts remote_activation);

/* kind: SEND or RECEIVE. */
enum ghp_status ghp_emit_transfer(const struct ghp_emitter *e, enum ghp_instr_kind kind, int edge,
                                  const struct ghp_transfer *transfer, int point);
enum ghp_status ghp_emit_edge_transfer(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                       int edge, bool backward, int point);

/* The wait for the edge's receive. */
enum ghp_status ghp_emit_arrival(const struct ghp_emitter *e, int edge, bool backward, int point);

/* Receives of a slot, posted at `point`: forward the remote activations of this stage, backward the gradients of what
 * it sent. */
enum ghp_status ghp_emit_receives(struct ghp_emitter *e, struct ghp_schedule_step slot, int point);

/* Waits at the end of slot `slot` for the sends whose time it is, in the last slot for all that are left. `begins`:
 * first instruction of each slot so far, and one past the last. */
enum ghp_status ghp_emit_send_waits(const struct ghp_emitter *e, const int *begins, int slot,
                                    bool last, int point);

#endif
