/* executor/formats.h - which of a program's tensors lie blocked (backend.h), so that kernels that want blocks need not
 * reorder. Of activations: decided for a whole program, for each connected piece of its tensors at once. Of weights, with
 * their gradients and momentum: by the layer's own shape, for all who hold copies or share sums must agree.
 *
 * A piece is what operations tie together that read and write the same format (a bias with its input, a pool, an
 * addition); convolutions tie nothing, they take either format on either side. A piece lies blocked where every
 * instruction that touches it can, its channels come in whole blocks, no exchange or reader of input data touches it, and
 * a convolution beside it would otherwise reorder. Sizes, offsets and the order of instructions do not change with it. */
#ifndef GHP_EXECUTOR_FORMATS_H
#define GHP_EXECUTOR_FORMATS_H

#include "executor/kernels.h"
#include "executor/opbench.h"

/* Decides for every buffer.
 *
 * kernels   find the plain kernel of each pass: one that says "+reorder" wants blocks
 * blocked   one entry a buffer of the program, written
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; failures of preparing kernels
 * Local
 * Tested    tests/executor/test_formats.c */
enum ghp_status ghp_formats_choose(const struct ghp_program *program, struct ghp_kernels *kernels,
                                   bool *blocked);

/* Whether the weights of an operation lie blocked, in steps and between them. */
bool ghp_formats_weights(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                         const struct ghp_local *local);

/* The formats of a COMPUTE's tensors under that decision. */
struct ghp_formats ghp_formats_of(const struct ghp_program *program, const struct ghp_instr *instr,
                                  const struct ghp_kernels *kernels, const bool *blocked);

/* The formats in which an operation is most likely to run, blocks wherever there can be any: what the profiler measures. */
struct ghp_formats ghp_formats_likely(const struct ghp_backend_ops *ops,
                                      const struct ghp_backend *backend,
                                      const struct ghp_local *local);

/* Whether a pass may take a bias and a ReLU along (fuse.h). */
bool ghp_formats_fuses(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                       const struct ghp_local *local, enum ghp_pass pass);

/* Which formats a program gives an operation is known only after its memory is laid out, so an operation's scratch is the
 * most that any of them takes: the i-th of GHP_FORMATS_MOST, none with more blocks than `likely`; the second half with a
 * bias and a ReLU, for passes that take them along. */
enum { GHP_FORMATS_MOST = 8 };
struct ghp_formats ghp_formats_variant(struct ghp_formats likely, int i);
bool ghp_formats_fused(struct ghp_formats formats);

/* That scratch, for the pass by an algorithm (NULL: the likeliest).
 *
 * Returns   GHP_OK; failures of preparing kernels
 * Local */
enum ghp_status ghp_formats_scratch(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                                    const struct ghp_opbench_task *task, const char *algorithm,
                                    int64_t *bytes);

#endif
