/* core/program/kind/norm.c - norms of gradients. Their sums of squares lie in at.y, which an UPDATE that clips
 * reads. */
#include "core/program/liveness.h"
#include "core/program/lower/buffer_assignment_private.h"

#include "core/model/precision.h"

static enum ghp_status work(const struct ghp_lowering *lowering, const struct ghp_instr *instr,
                            struct ghp_instr_scratch *scratch)
{
    (void)lowering;
    (void)instr;
    scratch->work_bytes = GHP_NORM_PARTS * (int64_t)sizeof(double);
    return GHP_OK;
}

/* ---- of all gradients ---- */

/* It reads the gradients, which live always, where they lie. */
static void assign_norm(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_program *program = k->program;
    const struct ghp_rate_rule *rates = program->rates;
    int64_t elements = 0;

    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];
        struct ghp_norm_range range;

        if (b->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT) continue;
        range = ghp_norm_range_of(program, i);
        elements += range.end - range.first;
    }
    if (rates != NULL && rates->weights) elements *= 2;
    if (rates != NULL && rates->directions) elements *= 2; /* and moments */
    instr->bytes = elements * ghp_parameter_bytes(program->element_bytes);
}

const struct ghp_kind_facts ghp_kind_facts_norm = {
    .name = "norm",
    .purpose = "sums of squares of this worker's part of all gradients",
    .of_all = "all gradients",
    .phase = GHP_PHASE_UPDATE,
    .cost = GHP_COST_SQUARES,
    .is_local = true,
    .y = GHP_LASTING_SQUARES,
    .assign = assign_norm,
    .work = work,
};

/* ---- of one worker batch's gradients of a layer: at.dw, what the layer's pass, right before it, has made ---- */

static void accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                     int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];

    if (instr->micro > 0 && !ghp_sharding_reduces_each(instr->sharding))
        ghp_accesses_add_summands(lowering, instr->layer,
                                  (struct ghp_access){.operand = GHP_OPERAND(dw)}, t);
}

static void assign_worker_norm(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    bool own = instr->micro == 0 || ghp_sharding_reduces_each(instr->sharding);

    for (int p = 0; own && p < k->lowering->model->layers[instr->layer].n_params; p++)
        instr->at.dw[p] = k->gradients[instr->layer * GHP_MAX_PARAMS + p];
}

const struct ghp_kind_facts ghp_kind_facts_worker_norm = {
    .name = "worker_norm",
    .purpose = "sums of squares of the gradients that a layer has just made of a worker batch",
    .phase = GHP_PHASE_UPDATE,
    .cost = GHP_COST_SQUARES,
    .is_local = true,
    .y = GHP_LASTING_SQUARES,
    .assign = assign_worker_norm,
    .accesses = accesses,
    .work = work,
};
