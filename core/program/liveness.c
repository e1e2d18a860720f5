/* core/program/liveness.c - see program/liveness.h. What each kind touches stands in core/program/kind. */
#include "core/program/liveness.h"

void ghp_touches_add(struct ghp_touches *touches, struct ghp_touch touch)
{
    GHP_ASSERT(touches->n < GHP_MAX_TOUCHES);
    touches->touch[touches->n++] = touch;
}

void ghp_instr_touches(const struct ghp_lowering *lowering, const struct ghp_program *program,
                       int index, struct ghp_touches *touches)
{
    const struct ghp_kind_facts *kind = ghp_kind_of(&program->instrs[index]);

    touches->n = 0;
    if (kind->touches != NULL) kind->touches(lowering, program, index, touches);
}

void ghp_touches_add_summands(const struct ghp_lowering *lowering, int layer,
                              struct ghp_touch first, struct ghp_touches *touches)
{
    first.tensor = GHP_TENSOR_SUMMAND;
    first.of = layer;
    for (int p = 0; p < lowering->model->layers[layer].n_params; p++, first.operand++) {
        first.slot = p;
        ghp_touches_add(touches, first);
    }
}

enum ghp_tensor ghp_instr_stats(const struct ghp_instr *instr)
{
    return instr->backward && instr->local.parts == 0 ? GHP_TENSOR_BACKWARD_STATS
                                                      : GHP_TENSOR_STATS;
}
