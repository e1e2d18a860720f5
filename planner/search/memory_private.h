/* planner/search/memory_private.h - private to memory.c: what its functions share, and bytes that live from one point to
 * another as spans. */
#ifndef GHP_PLANNER_SEARCH_MEMORY_PRIVATE_H
#define GHP_PLANNER_SEARCH_MEMORY_PRIVATE_H

#include "core/program/liveness.h"
#include "planner/search/memory.h"

/* When a layer's own passes, and those of an edge's consumer, access a tensor: the model alone decides. */
struct ghp_memory_lives {
    struct ghp_life *output, *gradient; /* a layer; with `input` one allocation */
    struct ghp_life *input;             /* an edge */
    struct ghp_life labels;
};

struct ghp_memory_maker {
    struct ghp_instance *in;
    const struct ghp_model *model;
    struct ghp_memory_lives lives;
    bool *outlived; /* an edge: see is_outlived, which walks far for many pairs to ask */
    struct ghp_program piece;
    int stage; /* whose memory the present spans are of */
};

/* A stage's points: forward from its first layer's in-edges to its last layer, backward the other way. */
struct ghp_memory_stretch {
    int forward, forward_end, backward, backward_end;
};

struct ghp_memory_stretch ghp_memory_stretch_of(const struct ghp_memory_maker *m);

/* Bytes from one point to another of a stage's worker. With stages the points of others are left out; what is kept from
 * forward to backward is there once more for every other micro-batch in flight, at all points. */
enum ghp_status ghp_memory_span(struct ghp_memory_maker *m, struct ghp_spans *spans, int64_t bytes,
                                int first, int last);

/* The same for what there is once, however many micro-batches: weights and their like. */
enum ghp_status ghp_memory_lasting(struct ghp_memory_maker *m, struct ghp_spans *spans,
                                   int64_t bytes);

#endif
