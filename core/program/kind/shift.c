/* core/program/kind/shift.c - keys and values of an attention, a block of each, go to the next worker; backward with
 * the sums of their gradients, which come back to at.dx[1] and at.dx[2]. The own ones are at.x[1] and at.x[2], all
 * others in at.ring (program/ring.h). */
#include "core/program/liveness.h"

static void accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                     int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];
    int edge = lowering->model->layers[instr->layer].first_edge;

    for (int i = 1; i < 3; i++) {
        if (instr->block < instr->blocks)
            ghp_accesses_add(
                t, (struct ghp_access){GHP_TENSOR_INPUT, edge + i, .operand = GHP_OPERAND(x) + i});
        else
            ghp_accesses_add(t,
                             (struct ghp_access){GHP_TENSOR_INPUT_GRADIENT, edge + i,
                                                 .operand = GHP_OPERAND(dx) + i, .writes = true});
    }
    ghp_accesses_add(
        t, (struct ghp_access){GHP_TENSOR_RING, instr->layer, .operand = GHP_OPERAND(ring)});
}

const struct ghp_kind_facts ghp_kind_facts_shift = {
    .name = "shift",
    .purpose = "a block of an attention's keys and values goes to the next worker",
    .phase = GHP_PHASE_RESHARD,
    .comm = GHP_COMM_SHIFT,
    .writes = GHP_AT_DX,
    .accesses = accesses,
};
