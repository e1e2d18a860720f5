/* core/program/liveness.c - see program/liveness.h. What each kind accesses stands in core/program/kind. */
#include "core/program/liveness.h"

void ghp_accesses_add(struct ghp_accesses *accesses, struct ghp_access access)
{
    GHP_ASSERT(accesses->n < GHP_MAX_ACCESSES);
    accesses->access[accesses->n++] = access;
}

void ghp_accesses_add_summands(const struct ghp_lowering *lowering, int layer,
                               struct ghp_access first, struct ghp_accesses *accesses)
{
    first.tensor = GHP_TENSOR_SUMMAND;
    first.of = layer;
    for (int p = 0; p < lowering->model->layers[layer].n_params; p++, first.operand++) {
        first.slot = p;
        ghp_accesses_add(accesses, first);
    }
}

enum ghp_tensor ghp_instr_stats(const struct ghp_instr *instr)
{
    return instr->backward && instr->local.parts == 0 ? GHP_TENSOR_BACKWARD_STATS
                                                      : GHP_TENSOR_STATS;
}
