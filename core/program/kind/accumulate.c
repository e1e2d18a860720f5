/* core/program/kind/accumulate.c - a sum of gradients: a further consumer's into an output's (at.dy += at.x[0]); or,
 * without an edge, a micro-batch's into those of a layer's parameters (at.dw += at.x), with a bucket into its optimizer
 * shard. */
#include "core/program/liveness.h"
#include "core/program/lower/buffer_assignment_private.h"

static void accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                     int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];

    if (instr->bucket >= 0) return;
    if (instr->edge < 0) {
        ghp_accesses_add_summands(lowering, ghp_model_owner(lowering->model, instr->layer),
                                  (struct ghp_access){.operand = GHP_OPERAND(x)}, t);
        return;
    }
    ghp_accesses_add(
        t, (struct ghp_access){GHP_TENSOR_EDGE_GRADIENT, instr->edge, .operand = GHP_OPERAND(x)});
    ghp_accesses_add(
        t, (struct ghp_access){GHP_TENSOR_GRADIENT, instr->layer, .operand = GHP_OPERAND(dy)});
}

static void assign(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    int owner = ghp_model_owner(k->lowering->model, instr->layer);

    if (instr->bucket >= 0) {
        instr->at.dw[0] = k->program->buckets[instr->bucket].gradient_shard;
        instr->at.x[0] = k->program->instrs[instr->after].at.y;
        return;
    }
    for (int p = 0; p < k->lowering->model->layers[owner].n_params && instr->edge < 0; p++)
        instr->at.dw[p] = k->gradients[owner * GHP_MAX_PARAMS + p];
}

const struct ghp_kind_facts ghp_kind_facts_accumulate = {
    .name = "accumulate",
    .purpose = "adds a further gradient to the sum of those before it",
    .phase = GHP_PHASE_COUNT,
    .cost = GHP_COST_ACCUMULATE,
    .is_local = true,
    .assign = assign,
    .accesses = accesses,
};
