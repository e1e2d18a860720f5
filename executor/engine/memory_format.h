/* executor/engine/memory_format.h - which of a program's tensors lie blocked (backend.h), so that kernels that want blocks need not
 * reorder. Of activations: decided for a whole program, for each connected piece of its tensors at once. Of weights, with
 * their gradients and momentum: by the layer's own shape, for all who hold copies or share sums must agree.
 *
 * A piece is what operations tie together that read and write the same format (a bias with its input, a pool, an
 * addition, a change of layout that only gathers or adds whole samples); convolutions tie nothing, they take either format
 * on either side, and neither do changes of layout that pack slices of channels, which reorder on the way (pack.h). A piece
 * lies blocked where every instruction that touches it can, its channels come in whole blocks, it is not loaded nor passes
 * between stages, and the plan says so; or, where no plan says anything, a convolution beside it would otherwise reorder.
 * Sizes, offsets and the order of instructions do not change with it. */
#ifndef GHP_EXECUTOR_ENGINE_MEMORY_FORMAT_H
#define GHP_EXECUTOR_ENGINE_MEMORY_FORMAT_H

#include "executor/engine/kernels.h"
#include "executor/opbench/opbench.h"

/* What a plan says (core/program/memory_format.h): of each layer of the model, whether its output lies blocked. */
struct ghp_formats_said {
    const struct ghp_model *model;
    const bool *blocked;
};

/* Decides for every buffer: as the plan says, wherever that can be.
 *
 * kernels   find the plain kernel of each pass, where no plan says anything: one that says "+reorder" wants blocks
 * said      NULL: no plan says anything
 * blocked   one entry a buffer of the program, written
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; failures of preparing kernels
 * Local
 * Tested    tests/executor/test_formats.c */
enum ghp_status ghp_formats_choose(const struct ghp_program *program, struct ghp_kernels *kernels,
                                   const struct ghp_formats_said *said, bool *blocked);

/* Which buffers can lie blocked; written. Returns GHP_OK; GHP_ERR_NO_MEMORY. Local */
enum ghp_status ghp_formats_possible(const struct ghp_program *program,
                                     const struct ghp_backend_ops *ops,
                                     const struct ghp_backend *backend, bool *possible);

/* Whether the weights of an operation lie blocked, in steps and between them. */
bool ghp_formats_weights(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                         const struct ghp_local *local);

/* The formats of a COMPUTE's tensors under that decision. */
struct ghp_formats ghp_formats_of(const struct ghp_program *program, const struct ghp_instr *instr,
                                  const struct ghp_kernels *kernels, const bool *blocked);
/* The same of its activations alone; of a RESHARD's, before and after it. */
struct ghp_blocked ghp_formats_sides(const struct ghp_program *program,
                                     const struct ghp_instr *instr, const bool *blocked);

/* The algorithm that an entry of a profile names for an operation in these formats; NULL (or no entry): none. */
const char *ghp_formats_algorithm(const struct ghp_op_entry *entry, struct ghp_formats formats);

/* The formats in which an operation may run, blocks wherever there can be any. */
struct ghp_formats ghp_formats_likely(const struct ghp_backend_ops *ops,
                                      const struct ghp_backend *backend,
                                      const struct ghp_local *local);

/* Whether a pass may take a ReLU, or a bias, along (fuse.h). */
bool ghp_formats_fuses(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                       enum ghp_op op, enum ghp_pass pass);

/* Which formats a program gives an operation is known only after its memory is laid out, so an operation's scratch is the
 * most that any of them takes: the i-th of GHP_FORMATS_MOST, none with more blocks than `likely`; the second half with a
 * bias and a ReLU, for passes that take them along. */
enum { GHP_FORMATS_MOST = 8 };
struct ghp_formats ghp_formats_variant(struct ghp_formats likely, int i);

/* That scratch, for the pass by the algorithms that an entry names (NULL: the likeliest).
 *
 * Returns   GHP_OK; failures of preparing kernels
 * Local */
enum ghp_status ghp_formats_scratch(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                                    const struct ghp_opbench_task *task,
                                    const struct ghp_op_entry *entry, int64_t *bytes);

#endif
