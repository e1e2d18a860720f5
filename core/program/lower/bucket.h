/* core/program/lower/bucket.h - which layers' gradients are reduced together.
 *
 * Returns of all that make something: GHP_OK or GHP_ERR_NO_MEMORY. */
#ifndef GHP_CORE_PROGRAM_LOWER_BUCKET_H
#define GHP_CORE_PROGRAM_LOWER_BUCKET_H

#include "core/program/program.h"

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
        int shards;          /* replicas that it is divided among, neighbours; 0: it is not */
        int64_t server_shard_bytes; /* of one server; 0: no server has it */
        bool updated_here;          /* of what servers have: workers update it, too */
        bool holds_weights;         /* its layers' weights lie together as their gradients do */
        int partner; /* the layer of another stage that has the same parameters; -1: none */
        enum ghp_param_sharding sharding; /* of its layers' parameters */
    } * ranges;
};

enum ghp_status ghp_bucket_plan_init(const struct ghp_lowering *lowering,
                                     const struct ghp_placement *placement,
                                     const struct ghp_split *splits, struct ghp_bucket_plan *plan);
void ghp_bucket_plan_release(struct ghp_bucket_plan *plan);

/* The bucket that a layer has to itself, of no bytes if steps change nothing of it. */
struct ghp_bucket_range ghp_bucket_alone(const struct ghp_lowering *lowering, int workers,
                                         int layer, struct ghp_split split);

/* The layer whose parameters its stage has and updates before the layer's forward pass: itself, or its owner if that
 * is in another stage; -1: none. */
int ghp_lower_held(const struct ghp_lowering *lowering, int layer);
/* The same layer if steps change what it holds; -1: it holds nothing, or all of it is fixed. */
int ghp_lower_changed(const struct ghp_lowering *lowering, int layer);
/* Whether steps change what lies in the layer's bucket: its parameters, or its running statistics. */
bool ghp_lowering_changes(const struct ghp_lowering *lowering, int layer);

/* Whether a layer's parameter p has a copy in bfloat16 that updates write, unless its bucket is sharded: if a product
 * reads it, or adds it as the bias of a linear layer. */
bool ghp_lower_has_bf16(const struct ghp_lowering *lowering, int layer, int p);
/* Whether weights that are gathered for use travel as bfloat16: in bf16, if all who read them round them to it. */
bool ghp_lower_gathers_bf16(const struct ghp_lowering *lowering, int layer);
/* Bytes of all copies of a layer's parameters. */
int64_t ghp_lower_bf16_bytes(const struct ghp_lowering *lowering, int layer,
                             const struct ghp_local *local);

/* Those who sum the gradients of a bucket: the replica group, and that of its partner in another stage; of a bucket of
 * optimizer shards those that it is divided among. */
struct ghp_ranks ghp_bucket_ranks(const struct ghp_lowering *lowering,
                                  const struct ghp_placement *placement,
                                  const struct ghp_bucket_range *range);
/* Who has the same optimizer shard of a bucket as this worker, itself among them. */
struct ghp_ranks ghp_bucket_copies(const struct ghp_placement *placement,
                                   const struct ghp_bucket_range *range);

/* 0: nothing to reduce, else the TP size whose replicas sum. */
int ghp_layer_reduce_tp_size(const struct ghp_lowering *lowering, int layer,
                             struct ghp_split split);

/* Gradient bytes of one layer, each tensor rounded up to GHP_ALIGN_BYTES. */
int64_t ghp_lower_gradient_bytes(const struct ghp_lowering *lowering, int layer,
                                 struct ghp_split split);

/* Whether a later layer of the same stage, whose backward pass comes before, makes gradients of the same parameters. */
bool ghp_lower_has_sharer_after(const struct ghp_lowering *lowering, int layer);
/* Whether the layer's pass adds its weight gradients to those, as that of a table of tokens does. */
bool ghp_lower_adds_weight_gradient(const struct ghp_lowering *lowering, int layer);
/* Whether the pass writes its weight gradients to a buffer of their own, from which another instruction adds them to
 * those of the step. That holds for a further micro-batch, or a further layer with the same parameters. */
bool ghp_lower_makes_summand(const struct ghp_lowering *lowering, int layer, bool first_micro,
                             enum ghp_param_sharding sharding);

#endif
