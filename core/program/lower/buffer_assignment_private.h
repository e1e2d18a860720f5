/* core/program/lower/buffer_assignment_private.h - private to buffer_assignment*.c: the buffers of a program while
 * its instructions get their operands.
 *
 * A buffer is made when it is first asked for; the buffer assignment knows which tensor lies in which. What an
 * instruction reads and writes is buffer_assignment.c's matter. Call order: open -> for each instruction now,
 * recompute, then its operands -> close. Functions that make buffers return GHP_OK or GHP_ERR_NO_MEMORY; those that
 * look one up return its id, -1 for none. */
#ifndef GHP_CORE_PROGRAM_LOWER_BUFFER_ASSIGNMENT_PRIVATE_H
#define GHP_CORE_PROGRAM_LOWER_BUFFER_ASSIGNMENT_PRIVATE_H

#include "core/program/lower/bucket.h"
#include "core/program/lower/flow.h"

struct ghp_assigned_tensors { /* buffers of one micro-batch, -1 until made */
    int *y; /* per layer: its output, or its remote activation from another stage */
    int *x, *dx,
        *dxr; /* per edge: changed input, gradient as made, gradient after its reshard (or as received) */
    int *saved; /* per layer */
    int *stats; /* per layer, 2: forward, backward */
    int *recompute_y, *recompute_x,
        *recompute_saved; /* recomputed for the backward part, and then read in place of the first */
    int labels;
    int named; /* layers from here on have names for their input gradients */
};

struct ghp_buffer_assignment {
    const struct ghp_lowering *lowering;
    const struct ghp_split *splits;
    const struct ghp_bucket_plan *buckets;
    struct ghp_program *program;
    struct ghp_placement placement;
    int *tables;                        /* the block that all ids below lie in */
    struct ghp_assigned_tensors *micro; /* one a micro-batch */
    struct ghp_assigned_tensors *now;   /* of the present instruction's */
    bool recompute;                     /* the present instruction recomputes something */
    int *weights, *bf16, *gradients, *moments[GHP_MAX_MOMENTS]; /* per layer, GHP_MAX_PARAMS each */
    int *states, *stats_deltas;                                 /* per layer, GHP_MAX_STATES */
    bool *x_changed, *dx_changed; /* per edge: has a reshard, or comes from another stage */
    int metrics, squares, receive, prefetch, copies;
    int *weight_shard; /* per layer: this worker's part of sharded weights */
    int gathered;      /* the latest gathered weights */
    /* Per layer, of its bucket: the buffer of the present micro-batch's gradients, this worker's part of it, and the
     * micro-batch. */
    int *bucket_now, *part_now, *micro_now;
    int between; /* buffer between two steps of one reshard */
    int ring;    /* buffer of the blocks of one pass of an attention */
    /* a further micro-batch's weight gradients, until they are added */
    int partial[GHP_MAX_PARAMS];
};

/* Notes which tensors change their layouts, and makes what is there once for the whole program: parameters, metrics,
 * buckets and what their reductions receive into.
 *
 * lowering, splits, buckets, program   borrowed until close; the program's instructions are complete
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY, and then there is nothing to close */
enum ghp_status ghp_buffer_assignment_open(const struct ghp_lowering *lowering,
                                           const struct ghp_split *splits,
                                           const struct ghp_bucket_plan *buckets,
                                           struct ghp_program *program,
                                           struct ghp_buffer_assignment *assignment);
void ghp_buffer_assignment_close(
    struct ghp_buffer_assignment *assignment); /* the buffers stay the program's */

/* The buffer in *slot, made if it is not there. */
enum ghp_status ghp_buffer_assignment_demand(struct ghp_buffer_assignment *k, int *slot,
                                             struct ghp_buffer buffer);
/* Describes a buffer for a layer's output, or its gradient, in a layout. */
struct ghp_buffer ghp_buffer_assignment_tensor(const struct ghp_buffer_assignment *k,
                                               enum ghp_buffer_kind buffer_kind, int layer,
                                               struct ghp_layout layout);
/* Describes a buffer for weights, their gradients or statistics, whose numbers may be wider than those of
 * activations. */
struct ghp_buffer ghp_buffer_assignment_describe_parameter(const struct ghp_buffer_assignment *k,
                                                           enum ghp_buffer_kind buffer_kind,
                                                           int layer, int64_t elements);
struct ghp_buffer ghp_describe_bytes(enum ghp_buffer_kind buffer_kind, int layer, int64_t bytes);

/* The buffers of tensors: the recomputed one if there is one, else the one that was made first. */
int ghp_buffer_assignment_output(const struct ghp_buffer_assignment *k, int layer);
int ghp_buffer_assignment_input(const struct ghp_buffer_assignment *k, int edge);
int ghp_buffer_assignment_edge_gradient(const struct ghp_buffer_assignment *k, int edge);
/* dy of a layer: the gradient of the consumer that comes first in backward order (others are added to it). */
int ghp_buffer_assignment_output_gradient(const struct ghp_buffer_assignment *k, int layer);

/* The weights of a layer lie in what a GATHER makes from now on. */
enum ghp_status ghp_buffer_assignment_carve_gathered(struct ghp_buffer_assignment *k,
                                                     const struct ghp_instr *gather);
/* A pass of a further micro-batch whose gradients are reduced alone: its bucket's buffers from now on. */
enum ghp_status ghp_buffer_assignment_renew(struct ghp_buffer_assignment *k,
                                            const struct ghp_instr *instr);

/* A layer's output; in place if it may be. */
enum ghp_status ghp_buffer_assignment_make_output(struct ghp_buffer_assignment *k, int layer);
/* Some operations hand gradients on without an instruction, so names are given layer by layer from the end. */
enum ghp_status ghp_buffer_assignment_gradients(struct ghp_buffer_assignment *k, int layer);

#endif
