/* core/program/kind/load.c - samples in the first stage, labels in the last. */
#include "core/program/liveness.h"

/* at.y, at.labels; at.scratch: what was prefetched. */
static void accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                     int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];
    int loss = lowering->model->n_layers - 1;

    if (instr->layer == 0)
        ghp_accesses_add(t, (struct ghp_access){GHP_TENSOR_OUTPUT, 0, .operand = GHP_OPERAND(y),
                                                .writes = true});
    if (ghp_stage_of(lowering->staging, instr->layer) == ghp_stage_of(lowering->staging, loss))
        ghp_accesses_add(t, (struct ghp_access){GHP_TENSOR_LABELS, loss,
                                                .operand = GHP_OPERAND(labels), .writes = true});
}

const struct ghp_kind_facts ghp_kind_facts_load = {
    .name = "load",
    .purpose = "this worker's samples into the first layer's output, and their labels",
    .phase = GHP_PHASE_LOAD,
    .cost = GHP_COST_LOAD,
    .is_local = true,
    .writes = GHP_AT_Y | GHP_AT_LABELS,
    .scratch = GHP_LASTING_PREFETCH,
    .accesses = accesses,
};
