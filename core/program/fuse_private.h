/* core/program/fuse_private.h - private to core/program/fuse.c and siblings.c (a program's list) and fuse_private.c
 * (what a profile asks of a model): which of a model's layers are fused, and where buffers lie. */
#ifndef GHP_CORE_PROGRAM_FUSE_PRIVATE_H
#define GHP_CORE_PROGRAM_FUSE_PRIVATE_H

#include "core/program/fuse.h"

static const struct ghp_epilogue ghp_fuses_nothing = {-1, -1, -1, -1, -1, -1};
enum {
    GHP_FUSES_FORWARD = GHP_FUSES_BIAS | GHP_FUSES_RELU | GHP_FUSES_ADD_BEFORE | GHP_FUSES_GRADIENT
};

static inline bool ghp_fuses(enum ghp_op op, unsigned what)
{
    return (ghp_op_of(op)->fuses & what) != 0;
}

static inline bool ghp_is_fused_as(enum ghp_op op, unsigned what)
{
    return ghp_op_of(op)->fused_as == what;
}

/* The buffer that owns the memory of one, and how far into it that begins. */
struct ghp_buffer_place {
    int storage;
    int64_t offset;
};

static inline struct ghp_buffer_place ghp_place_of(const struct ghp_program *program, int buffer)
{
    struct ghp_buffer_place place = {buffer, 0};

    while (program->buffers[place.storage].storage != place.storage) {
        place.offset += program->buffers[place.storage].storage_offset;
        place.storage = program->buffers[place.storage].storage;
    }
    return place;
}

/* Whether a buffer is there at a point; "no buffer" always is. */
static inline bool ghp_lives_at(const struct ghp_program *program, int buffer, int point)
{
    const struct ghp_buffer *b =
        buffer >= 0 ? &program->buffers[ghp_place_of(program, buffer).storage] : NULL;

    return b == NULL || b->persistent || (b->first_point <= point && point <= b->last_point);
}

/* A buffer, or what it lies in, lives at the point too. */
static inline void ghp_keep_at(struct ghp_program *program, int buffer, int point)
{
    struct ghp_buffer *b = &program->buffers[ghp_place_of(program, buffer).storage];

    if (!b->persistent && point < b->first_point) b->first_point = point;
    if (!b->persistent && point > b->last_point) b->last_point = point;
}

/* The only reader of a layer's output, if it is fused as that to the layer; else -1. */
int ghp_fuse_reader(const struct ghp_model *model, int layer, unsigned what);

/* The max pool that takes the backward pass of a ReLU that the layer is; -1: none. */
int ghp_fuse_pool(const struct ghp_model *model, int layer);

/* The ReLU whose backward pass the convolution's may take: it made the convolution's input and has no other reader, and
 * no batch norm takes it. -1: none. */
int ghp_fuse_masked(const struct ghp_model *model, int layer);

#endif
