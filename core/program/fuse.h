/* core/program/fuse.h - which instructions one kernel does together, while the tensor is in registers or in cache.
 *
 * A bias and a ReLU after a convolution or linear layer each read and write its output once, for next to no computing.
 * So does a bias after a layer norm, and a ReLU after a batch norm or an addition. If they follow it in the program, in
 * place and without a reshard between, the product's or the norm's instruction names them as its epilogue. In the
 * backward pass, a batch norm zeroes in dy what the ReLU after it would.
 *
 * A batch norm whose statistics no other worker shares takes its sums and applies them in one kernel, a few channels
 * after the other, so that the tensors come from memory once and not twice. Forward, that kernel also does the addition
 * that follows, unless that is recomputed from the batch norm's output. Backward, it runs right after the place of the
 * sums, which the weights' gradients read.
 *
 * A max pool right after a ReLU saves no place if the greatest value is 0, so its gradient is already that of the
 * ReLU's input. A ReLU whose last reader's gradient is added just before takes its mask with that sum. Another further
 * gradient is added by the kernel that makes it: a linear layer's product or a norm's data pass.
 *
 * Likewise the gradient of a convolution's input takes the mask of the ReLU that made the input, if the convolution is
 * its only reader and no batch norm is before it.
 *
 * A loss writes its gradient in the forward pass already, where its output would be, which nothing else reads.
 *
 * A convolution right before a batch norm, which alone reads it, may sum its output's channels, and their squares.
 * These sums lie where the norm will save its statistics, which it makes of them.
 *
 * An addition right before a layer norm or RMS norm is done where the norm is, which has the sum in registers.
 *
 * Products of one shape that read the same tensor (queries, keys and values; the two products before a gate) may run at
 * once: forward where the last of them stands, backward, for their weights' gradients, where the first does.
 *
 * The list is the same for every backend: instructions that another does stay in it, each at a place where it can also
 * run on its own. A backend without a kernel for all of them runs them one after the other, in the same order. So the
 * profiler measures an operation together with what follows it in its network, if the backend runs them together. A
 * bias or a ReLU that every layer of its kind hands to another is recorded as taking no time. If a plan divides such a
 * convolution by input channels, its parts must be summed before the bias, and no profile says what that bias costs
 * (docs/explanation/cpu.md). */
#ifndef GHP_CORE_PROGRAM_FUSE_H
#define GHP_CORE_PROGRAM_FUSE_H

#include "core/program/program.h"

/* The program pass. It names in each instruction what that does together with others. It moves the update of a bias, or
 * the wait for it, before the product that adds the bias, and a batch norm's backward data pass after its sums.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/core/program/test_fuse.c */
enum ghp_status ghp_program_fuse(const struct ghp_model *model, struct ghp_program *program);

enum { GHP_MOST_SIBLINGS = 4 };

/* Names in each product those that may run at once with it: nothing between them writes what they
 * read, or has to do with what they write. Local. Tested tests/core/program/test_siblings.c */
void ghp_program_find_siblings(struct ghp_program *program);

/* The instruction at whose place the products that begin with `first` run at once. */
int ghp_siblings_at(const struct ghp_program *program, int first);

/* What kernels may fuse, wherever the splits let them. */
struct ghp_fuse_scope {
    bool local_stats; /* no other worker shares a batch norm's statistics */
    /* [GHP_OP_COUNT] operations whose forward pass has such kernels; NULL: all */
    const bool *fuses;
    bool masks; /* a convolution's BACKWARD_DATA has kernels that take a ReLU's mask */
};

/* The layers whose work one does in its forward pass (stats, gradient: the layer itself; sums: of a convolution the
 * batch norm, and the other way round); -1: none. */
struct ghp_epilogue ghp_fuse_layers(const struct ghp_model *model, int layer,
                                    struct ghp_fuse_scope scope);

/* What the kernels of a pass fuse, of a norm what most layers of its size do: they share an entry in a profile. */
struct ghp_epilogue ghp_fuse_usual(const struct ghp_model *model, int layer, enum ghp_pass pass,
                                   struct ghp_fuse_scope scope);

/* The other of a convolution and a batch norm that alone reads it, right after it; -1: there is none. */
int ghp_fuse_summed(const struct ghp_model *model, int layer);

/* Whether the gradient that comes by the edge is the last that a ReLU's output gets, and is not its only one: then
 * their sum takes the ReLU's mask. */
bool ghp_fuse_sum(const struct ghp_model *model, int edge);

/* Whether the pass of every layer of this one's kind and image size (but for biases and ReLUs forward: and channels)
 * is done by another: all that can share its entry in a profile. */
bool ghp_fuse_always(const struct ghp_model *model, int layer, enum ghp_pass pass,
                     struct ghp_fuse_scope scope);

#endif
