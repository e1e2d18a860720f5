/* core/program/fuse.h - which instructions one kernel does together, while the tensor is in registers or in cache.
 *
 * A bias and a ReLU behind a convolution or linear layer read and write its output once each, for next to no computing;
 * so does a bias behind a layer norm, and a ReLU behind a batch norm or an addition. Where they stand behind it in the
 * program, in place and with no reshard between, the product's or the norm's instruction names them as its epilogue.
 * Backward, a batch norm's passes leave out of dy what the ReLU behind it would.
 *
 * A batch norm whose statistics no other worker shares takes its sums and applies them in one kernel, a few channels
 * after the other, so that the tensors come from memory once and not twice; forward that kernel also adds what the
 * addition behind it adds, unless that is recomputed from the batch norm's output. Backward it runs right behind the
 * place of the sums, which the weights' gradients read.
 *
 * A max pool right behind a ReLU saves no place where the greatest value is 0, so its gradient is the ReLU's input's
 * already. A ReLU whose last reader's gradient is added just before takes its mask with that sum. Another further
 * gradient is added by the kernel that makes it: a linear layer's product or a norm's data pass.
 *
 * An addition right before a layer norm or RMS norm is done where the norm is, which has the sum in registers.
 *
 * The list is the same for every backend: instructions that another does stay in it, each where it can also run on its
 * own. A backend without a kernel for all of them runs them one after the other, in the same order. So the profiler
 * measures an operation together with what follows it in its network where its backend does so, and a bias or a ReLU
 * that every layer of its kind hands to another as taking no time. Where a plan divides such a convolution by input
 * channels its parts must be summed before the bias, which then costs what no profile says (docs/explanation/cpu.md). */
#ifndef GHP_CORE_PROGRAM_FUSE_H
#define GHP_CORE_PROGRAM_FUSE_H

#include "core/program/program.h"

/* The program pass: names in each instruction what it does with others, and lets the update of a bias, or the wait for
 * it, run before the product that adds it, and a batch norm's backward data pass behind its sums.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/core/program/test_fuse.c */
enum ghp_status ghp_program_fuse(const struct ghp_model *model, struct ghp_program *program);

/* What kernels may fuse, wherever the splits let them. */
struct ghp_fuse_scope {
    bool local_stats; /* no other worker shares a batch norm's statistics */
    /* [GHP_OP_COUNT] operations whose forward pass has such kernels; NULL: all */
    const bool *fuses;
};

/* The layers whose work one does in its forward pass (stats: the layer itself); -1: none. */
struct ghp_epilogue ghp_fuse_layers(const struct ghp_model *model, int layer,
                                    struct ghp_fuse_scope scope);

/* The same, of a norm what most layers of its size do: they share an entry in a profile. */
struct ghp_epilogue ghp_fuse_usual(const struct ghp_model *model, int layer,
                                   struct ghp_fuse_scope scope);

/* Whether the gradient that comes by the edge is the last that a ReLU's output gets, and is not its only one: then their
 * sum takes the ReLU's mask. */
bool ghp_fuse_sum(const struct ghp_model *model, int edge);

/* Whether the pass of every layer of this one's kind and image size (but for biases and ReLUs forward: and channels)
 * is done by another: all that can share its entry in a profile. */
bool ghp_fuse_always(const struct ghp_model *model, int layer, enum ghp_pass pass,
                     struct ghp_fuse_scope scope);

#endif
