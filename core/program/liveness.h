/* core/program/liveness.h - which tensors an instruction accesses, as its kind says: what lifetimes follow from.
 *
 * A tensor lives from the first instruction that accesses it to the last, a transfer's until the transfer is waited
 * for. The buffer assignment (lower.h) gives every tensor that is accessed a buffer, so a buffer lives as long as its
 * tensors. The planner's memory constraints (planner/search/memory.h) add up the points of the same accesses, piece by
 * piece. Which tensors are one buffer is asked of ghp_lower_overwrites_input and ghp_lower_gradient_alias; what a
 * recomputed layer accesses in the backward pass follows from its instructions, as all else does.
 *
 * Only tensors that do not live always: no weights, moments, running statistics, metrics. Bytes that one instruction
 * has to itself are ghp_lower_scratch's. A pass is described in core/model/op (what it reads and writes). */
#ifndef GHP_CORE_PROGRAM_LIVENESS_H
#define GHP_CORE_PROGRAM_LIVENESS_H

#include "core/program/program.h"

#include <limits.h>
#include <stddef.h>

enum ghp_tensor {
    GHP_TENSOR_OUTPUT,   /* of a layer, or its remote activation */
    GHP_TENSOR_GRADIENT, /* of a layer's output, into which all its readers' are added */
    GHP_TENSOR_SAVED,    /* of a layer, from forward to backward */
    GHP_TENSOR_STATS,    /* of a layer: sums on their way to other workers, forward; of a loss */
    GHP_TENSOR_BACKWARD_STATS, /* the same, backward */
    GHP_TENSOR_SUMMAND,        /* of a layer: a further micro-batch's gradients of its parameters */
    GHP_TENSOR_LABELS,         /* of the network */
    GHP_TENSOR_INPUT,          /* of an edge: the producer's output, as the consumer reads it */
    GHP_TENSOR_INPUT_GRADIENT, /* of an edge, as the consumer makes it */
    GHP_TENSOR_EDGE_GRADIENT,  /* of an edge, as the producer takes it */
    GHP_TENSOR_BETWEEN,        /* of an edge: between two steps of one reshard */
    GHP_TENSOR_WEIGHTS,        /* of a layer, gathered for a use */
    GHP_TENSOR_RING,           /* of an attention: blocks of keys and values on their way round */
    GHP_TENSOR_COUNT
};

struct ghp_access {
    enum ghp_tensor tensor;
    int of;      /* layer or edge */
    int slot;    /* which parameter's; else 0 */
    int operand; /* where its buffer stands: index into struct ghp_operands as an array of int */
    bool writes; /* makes it; else reads it or adds to it */
};

enum { GHP_MAX_ACCESSES = 2 * GHP_MAX_INPUTS + GHP_MAX_PARAMS + 8 };

struct ghp_accesses {
    int n;
    struct ghp_access access[GHP_MAX_ACCESSES];
};

/* Bytes that an instruction needs in addition to its tensors while it runs: what it computes, packs or reduces through,
 * and what a step of a reshard receives into. 0: none. The allocation and the planner's memory constraints
 * (planner/search/memory.h) both ask here, and nothing else knows. Transfers between stages and the communication
 * stream are not included. */
struct ghp_instr_scratch {
    int64_t work_bytes, receive_bytes;
};

/* ---- for core/program/kind ---- */

#define GHP_OPERAND(field) ((int)(offsetof(struct ghp_operands, field) / sizeof(int)))

void ghp_accesses_add(struct ghp_accesses *accesses, struct ghp_access access);
/* A further micro-batch's gradients of all of a layer's parameters; `first`: the first's operand, and how it is
 * accessed. */
void ghp_accesses_add_summands(const struct ghp_lowering *lowering, int layer,
                               struct ghp_access first, struct ghp_accesses *accesses);
/* The statistics of an instruction; a loss's are the same forward and backward. */
enum ghp_tensor ghp_instr_stats(const struct ghp_instr *instr);

/* Points from the first access to the last, both included; first > last: none. */
struct ghp_life {
    int first, last;
};

#define GHP_LIFE_NONE ((struct ghp_life){.first = INT_MAX, .last = -1})

static inline void ghp_life_extend(struct ghp_life *life, int point)
{
    if (point < life->first) life->first = point;
    if (point > life->last) life->last = point;
}

#endif
