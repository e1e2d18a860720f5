/* executor/engine/fuse.h - what one kernel does in place of several, while the tensor is in registers or in cache.
 *
 * A bias and a ReLU behind a convolution (on GPUs: or a linear layer) read and write its output once each, for next
 * to no computing; so does a ReLU behind a batch norm or an addition. Where they stand behind it in the program, in
 * place and with no reshard between, the worker prepares one kernel for all of them, and their own instructions do
 * nothing. The bias is updated before the convolution runs, which waits for nothing more: its gradient was ready
 * before the convolution's. Backward, a batch norm's passes leave out of dy what the ReLU behind it would, whose own
 * pass does nothing then.
 *
 * A batch norm whose statistics no other worker shares takes its sums and applies them in one kernel, a few channels
 * after the other, so that the tensors come from memory once and not twice; forward that kernel also adds what the
 * addition behind it adds, and then runs in the addition's place. Backward it runs in the place of the sums, which
 * the weights' gradients read.
 *
 * A max pool right behind a ReLU saves no place where the greatest value is 0, so its gradient is the ReLU's input's
 * already.
 *
 * The profiler measures what workers do so: an operation together with what follows it in its network, and a bias or
 * a ReLU that every layer of its kind hands to another as taking no time. Where a plan divides such a convolution by
 * input channels its parts must be summed before the bias, which then costs what no profile says (docs/cpu.md). */
#ifndef GHP_EXECUTOR_ENGINE_FUSE_H
#define GHP_EXECUTOR_ENGINE_FUSE_H

#include "core/program/program.h"
#include "executor/backend/backend.h"

struct ghp_epilogue { /* instructions, or layers; -1: none */
    int bias, relu;
    int update; /* instruction that updates the bias */
    int stats;  /* STATS of a batch norm, right before it (in models: the layer itself) */
    int add;    /* addition right behind that batch norm; the ReLU is behind the addition then */
};

/* What can be fused into instruction `taker`: of a convolution or linear layer bias and ReLU, of a batch norm its
 * statistics, an addition and a ReLU, of an addition a ReLU. Local. Tested tests/executor/engine/test_fuse.c */
struct ghp_epilogue ghp_fuse_find(const struct ghp_program *program, const struct ghp_model *model,
                                  int taker);

struct ghp_prologue {
    int relu;  /* backward pass of the ReLU behind a batch norm; -1: none */
    int stats; /* the batch norm's BACKWARD_STATS; -1: it is none */
    bool
        local_stats; /* no other worker shares the sums, and dx can be written where they are taken */
};

/* What a batch norm's backward passes can fuse, asked of its BACKWARD_DATA. */
struct ghp_prologue ghp_fuse_find_back(const struct ghp_program *program,
                                       const struct ghp_model *model, int data);

/* A max pool's forward pass, which knows what the ReLU right before it would let through, and that ReLU's backward
 * pass, right behind the pool's (instruction `data`). */
struct ghp_relu_mask {
    int relu, forward; /* -1: none */
};
struct ghp_relu_mask ghp_fuse_find_relu_mask(const struct ghp_program *program,
                                             const struct ghp_model *model, int data);

/* The backward pass of a ReLU right behind instruction `sum`, which adds a further gradient of its output; -1: none. */
int ghp_fuse_find_sum(const struct ghp_program *program, int sum);

/* What kernels may fuse, wherever the splits let them. */
struct ghp_fuse_scope {
    bool local_stats; /* no other worker shares a batch norm's statistics */
    bool linear;      /* linear layers do as convolutions do */
};

/* The layers behind one that it fuses. */
struct ghp_epilogue ghp_fuse_layers(const struct ghp_model *model, int taker,
                                    struct ghp_fuse_scope scope);

/* Whether the pass of every layer of this one's kind and image size (but for biases and ReLUs forward: and channels)
 * is taken along: all that can share its entry in a profile. */
bool ghp_fuse_always(const struct ghp_model *model, int layer, enum ghp_pass pass,
                     struct ghp_fuse_scope scope);

/* The same formats with that epilogue. */
struct ghp_memory_format ghp_fuse_memory_format(struct ghp_memory_format memory_formats,
                                                struct ghp_epilogue epilogue);

#endif
