/* core/program/memory_format.h - which of a program's tensors lie in blocks of channels (docs/explanation/cpu.md), so
 * that kernels that want blocks need not reorder. The format of activations is decided for a whole program, for each
 * connected component of its tensors at once. The format of weights, with their gradients and momentum, follows from
 * the layer's own shape, because all workers that hold copies or share sums must agree.
 *
 * A plan says it of each layer's output (planner/labelling/memory_format.h), so of each instruction before there are
 * buffers: ghp_instr.nchw16c, which is costed and hashed. Buffers then lie as the instructions say, and a program in
 * which one could not is refused.
 *
 * Where no plan says anything the buffers decide. A component is what operations tie together that read and write the
 * same format (a bias with its input, a pool, an addition, a change of layout that only gathers or adds whole samples);
 * convolutions tie nothing, they take either format on either side, and neither do changes of layout that pack slices
 * of channels, which reorder on the way. A component lies blocked if every instruction that accesses it can, its
 * channels come in whole blocks, it is neither loaded nor passed between stages, and a convolution next to it wants
 * blocks, by its sizes (wants_blocks of core/model/op.h). So the list of instructions and what a backend can do decide,
 * and not which kernels it has: the formats of such a plan follow from what its hash names, too. Sizes, offsets and the
 * order of instructions do not change with it. */
#ifndef GHP_CORE_PROGRAM_MEMORY_FORMAT_H
#define GHP_CORE_PROGRAM_MEMORY_FORMAT_H

#include "core/program/program.h"

/* The program pass: decides for every buffer (nchw16c).
 *
 * source      of the kernels at hand; zeroed: everything lies plain, whatever the instructions say
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming a layer that cannot lie as its instruction says; GHP_ERR_NO_MEMORY; failures
 *           of the source
 * Local
 * Tested    tests/executor/backend/test_kernel_spec.c */
enum ghp_status ghp_program_choose_formats(const struct ghp_model *model,
                                           struct ghp_program *program,
                                           const struct ghp_format_source *source);

/* The same with every buffer blocked that can be. Returns GHP_OK; GHP_ERR_NO_MEMORY. Local */
enum ghp_status ghp_program_possible_formats(struct ghp_program *program,
                                             const struct ghp_format_source *source);

/* How the activations of a COMPUTE, or of a RESHARD before and after it, lie by that decision. */
struct ghp_nchw16c ghp_instr_formats(const struct ghp_program *program,
                                     const struct ghp_instr *instr);

#endif
