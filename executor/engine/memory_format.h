/* executor/engine/memory_format.h - which of a program's tensors lie blocked (backend.h), so that kernels that want
 * blocks need not reorder. Of activations: decided for a whole program, for each connected piece of its tensors at
 * once. Of weights, with their gradients and momentum: by the layer's own shape, for all who hold copies or share
 * sums must agree.
 *
 * A piece is what operations tie together that read and write the same format (a bias with its input, a pool, an
 * addition, a change of layout that only gathers or adds whole samples); convolutions tie nothing, they take either
 * format on either side, and neither do changes of layout that pack slices of channels, which reorder on the way
 * (pack.h). A piece lies blocked where every instruction that touches it can, its channels come in whole blocks, it
 * is not loaded nor passes between stages, and the plan says so; or, where no plan says anything, a convolution
 * beside it would otherwise reorder. Sizes, offsets and the order of instructions do not change with it. */
#ifndef GHP_EXECUTOR_ENGINE_MEMORY_FORMAT_H
#define GHP_EXECUTOR_ENGINE_MEMORY_FORMAT_H

#include "executor/engine/kernel_formats.h"
#include "executor/engine/kernels.h"

/* What a plan says (core/plan/memory_format.h): of each layer of the model, whether its output lies blocked. */
struct ghp_memory_format_request {
    const struct ghp_model *model;
    const bool *nchw16c;
};

/* Decides for every buffer: as the plan says, wherever that can be.
 *
 * kernels     find the plain kernel of each pass, where no plan says anything: one that reorders wants blocks
 * requested   NULL: no plan says anything
 * nchw16c     one entry a buffer of the program, written
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; failures of preparing kernels
 * Local
 * Tested    tests/executor/backend/test_memory_format.c */
enum ghp_status ghp_memory_format_choose(const struct ghp_program *program,
                                         struct ghp_kernels *kernels,
                                         const struct ghp_memory_format_request *requested,
                                         bool *nchw16c);

/* Which buffers can lie blocked; written. Returns GHP_OK; GHP_ERR_NO_MEMORY. Local */
enum ghp_status ghp_memory_format_possible(const struct ghp_program *program,
                                           const struct ghp_backend_ops *ops,
                                           const struct ghp_backend *backend, bool *possible);

/* The formats of a COMPUTE's tensors under that decision. */
struct ghp_memory_format ghp_memory_format_of(const struct ghp_program *program,
                                              const struct ghp_instr *instr,
                                              const struct ghp_kernels *kernels,
                                              const bool *nchw16c);
/* The same of its activations alone; of a RESHARD's, before and after it. */
struct ghp_nchw16c ghp_memory_format_sides(const struct ghp_program *program,
                                           const struct ghp_instr *instr, const bool *nchw16c);

#endif
