/* core/program/lower_private.h - private to core/program/lower*.c: what the emitting and the linking half share. */
#ifndef GHP_CORE_PROGRAM_LOWER_PRIVATE_H
#define GHP_CORE_PROGRAM_LOWER_PRIVATE_H

#include "core/program/lower.h"

/* Which layers' gradients are reduced together. */
struct ghp_bucket_plan {
    int n;
    int *of_layer; /* bucket of a layer's gradients, -1: no parameters */
    struct ghp_bucket_range {
        int degree;      /* 0: gradients come out global (batch_norm over the global batch) */
        int ready_layer; /* its last member in backward order */
        int64_t bytes;
    } * ranges;
};

enum ghp_status ghp_bucket_plan_init(const struct ghp_lowering *how, const struct ghp_seat *seat,
                                     const struct ghp_split *splits, struct ghp_bucket_plan *plan);
void ghp_bucket_plan_release(struct ghp_bucket_plan *plan);

/* Gradient bytes of one layer, each tensor rounded up to GHP_ALIGN_BYTES. */
int64_t ghp_layer_gradient_bytes(const struct ghp_lowering *how, int layer, struct ghp_split split);
/* 0: nothing to reduce, else the degree whose replicas sum. */
int ghp_layer_reduce_degree(const struct ghp_layer *layer, struct ghp_split split);
int64_t ghp_param_local_elements(const struct ghp_local *local, int n_params);
int64_t ghp_align(int64_t bytes);

/* A gradient flows through this edge into parameters (no closed-form premise). */
bool ghp_edge_needs_gradient(const struct ghp_model *model, int edge);

/* In a stage (docs/stages.md): whether a gradient flows through this edge into a buffer of the seat's; the edge whose
 * gradient comes first into a layer's output, or image. */
int ghp_seat_first_gradient(const struct ghp_lowering *how, const struct ghp_seat *seat, int layer);

/* Layouts of a layer's output as a stage sees it: its own, or its image's (`x`, `dx` mean nothing then). */
struct ghp_layouts ghp_seat_layouts(const struct ghp_lowering *how, const struct ghp_seat *seat,
                                    const struct ghp_split *splits, int layer);

/* Whether the layer's output is made again going backward: its own mark, or that of the tensor's maker it works on. */
bool ghp_lower_remakes(const struct ghp_lowering *how, int layer);

/* Operands, buffers, buckets and lifetimes for a complete list of instructions. */
enum ghp_status ghp_link(const struct ghp_lowering *how, const struct ghp_split *splits,
                         const struct ghp_bucket_plan *buckets, struct ghp_program *program);

#endif
