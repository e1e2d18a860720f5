/* core/program/method.h - how a plan trains, whatever it splits: who combines gradients or weights, what updates them,
 * and by which rates.
 *
 * One value. A plan, the request for one, a lowering and a run have it whole, so that another choice of training is
 * another member here, and no copy leaves a member out. */
#ifndef GHP_CORE_PROGRAM_METHOD_H
#define GHP_CORE_PROGRAM_METHOD_H

#include "core/optimizer/lr_scaling.h"
#include "core/program/sync.h"

struct ghp_method {
    struct ghp_sync sync;                  /* zeroed: all-reduce */
    const struct ghp_optimizer *optimizer; /* NULL: ghp_optimizer_sgd */
    double clip_norm;                      /* of all gradients together; 0: they are not clipped */
    const struct ghp_lr_scaling *scaling;  /* of learning rates; NULL: none */
    /* gradients of one TP size are reduced together up to this size; 0: each layer alone */
    int64_t bucket_bytes;
    /* Workers among which optimizer shards and sharded parameters are divided: neighbours, such as a node's, so that
     * each such group has all (hybrid sharding); 0: all workers that hold the same. */
    int shard_within;
    /* gradients that are summed by an all-reduce travel as bfloat16, and are rounded to it at each addition */
    bool reduces_bf16;
};

/* Whether updates scale gradients down, so that they wait for all gradients and for their norm. */
static inline bool ghp_method_clips(const struct ghp_method *method)
{
    return method->clip_norm > 0;
}

#endif
