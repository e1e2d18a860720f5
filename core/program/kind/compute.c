/* core/program/kind/compute.c - one pass of one layer. What it reads and writes, its operation says
 * (core/model/op.h). */
#include "core/program/liveness.h"
#include "core/program/lower/bucket.h"
#include "core/program/lower/buffer_assignment_private.h"
#include "core/program/lower/flow.h"
#include "core/program/ring.h"

/* Evaluation runs on running statistics. */
static bool has_stats(const struct ghp_lowering *lowering, const struct ghp_instr *instr)
{
    return (ghp_op_uses(instr->local.op, instr->pass) & GHP_AT_STATS) != 0 &&
           ghp_local_stats_bytes(&instr->local) > 0 &&
           (instr->local.parts > 0 || !lowering->forward_only);
}

static void access_edges(const struct ghp_layer *l, unsigned uses, struct ghp_accesses *t)
{
    for (int i = 0; i < l->n_inputs; i++) {
        int edge = l->first_edge + i;

        if (uses & GHP_AT_X)
            ghp_accesses_add(
                t, (struct ghp_access){GHP_TENSOR_INPUT, edge, .operand = GHP_OPERAND(x) + i});
        if (uses & GHP_AT_DX)
            ghp_accesses_add(t,
                             (struct ghp_access){GHP_TENSOR_INPUT_GRADIENT, edge,
                                                 .operand = GHP_OPERAND(dx) + i, .writes = true});
    }
}

static void accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                     int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];
    const struct ghp_layer *l = &lowering->model->layers[instr->layer];
    const struct ghp_op_pass *pass = &ghp_op_of(l->op)->passes[instr->pass];
    unsigned uses = pass->reads | pass->writes;
    int layer = instr->layer;

    access_edges(l, uses, t);
    if (instr->blocks > 0)
        ghp_accesses_add(t,
                         (struct ghp_access){GHP_TENSOR_RING, layer, .operand = GHP_OPERAND(ring),
                                             .writes = instr->block == 0});
    if (uses & GHP_AT_Y)
        ghp_accesses_add(t, (struct ghp_access){GHP_TENSOR_OUTPUT, layer, .operand = GHP_OPERAND(y),
                                                .writes = pass->writes & GHP_AT_Y});
    if (uses & GHP_AT_DY)
        ghp_accesses_add(
            t, (struct ghp_access){GHP_TENSOR_GRADIENT, layer, .operand = GHP_OPERAND(dy)});
    if ((uses & GHP_AT_DW) &&
        ghp_lower_makes_summand(lowering, layer, instr->micro == 0, instr->sharding))
        ghp_accesses_add_summands(lowering, ghp_model_owner(lowering->model, layer),
                                  (struct ghp_access){.operand = GHP_OPERAND(dw), .writes = true},
                                  t);
    if (has_stats(lowering, instr))
        ghp_accesses_add(t, (struct ghp_access){ghp_instr_stats(instr), layer,
                                                .operand = GHP_OPERAND(stats),
                                                .writes = pass->writes & GHP_AT_STATS});
    if ((uses & GHP_AT_SAVED) && ghp_local_saved_bytes(&instr->local, lowering->element_bytes) > 0)
        ghp_accesses_add(t,
                         (struct ghp_access){GHP_TENSOR_SAVED, layer, .operand = GHP_OPERAND(saved),
                                             .writes = pass->writes & GHP_AT_SAVED});
    if (uses & GHP_AT_LABELS)
        ghp_accesses_add(
            t, (struct ghp_access){GHP_TENSOR_LABELS, layer, .operand = GHP_OPERAND(labels)});
}

static void assign_weights(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    int owner = ghp_model_owner(k->lowering->model, instr->layer) * GHP_MAX_PARAMS;
    unsigned uses = ghp_op_uses(instr->local.op, instr->pass);
    bool summand =
        (uses & GHP_AT_DW) != 0 &&
        ghp_lower_makes_summand(k->lowering, instr->layer, instr->micro == 0, instr->sharding);

    for (int p = 0; p < k->lowering->model->layers[owner / GHP_MAX_PARAMS].n_params; p++) {
        if (uses & GHP_AT_W) {
            instr->at.w[p] = k->weights[owner + p];
            instr->at.w_bf16[p] = k->bf16[owner + p];
        }
        if ((uses & GHP_AT_DW) && !summand) instr->at.dw[p] = k->gradients[owner + p];
    }
    if (uses & GHP_AT_METRICS) instr->at.metrics = k->metrics;
}

static void assign(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    bool stats_deltas =
        ghp_lowering_has_stats_delta(k->lowering, &k->lowering->model->layers[instr->layer]) &&
        instr->pass == GHP_PASS_FORWARD && !k->lowering->forward_only;

    int owner = ghp_model_owner(k->lowering->model, instr->layer) * GHP_MAX_STATES;

    assign_weights(k, instr);
    if ((ghp_op_uses(instr->local.op, instr->pass) & GHP_AT_STATE) == 0) return;
    for (int s = 0; s < GHP_MAX_STATES; s++) {
        instr->at.state[s] = k->states[owner + s];
        if (stats_deltas) instr->at.stats_delta[s] = k->stats_deltas[owner + s];
    }
}

int64_t ghp_instr_sums_bytes(const struct ghp_instr *instr)
{
    int64_t bytes = 2 * instr->local.c * (int64_t)sizeof(double);

    if (instr->kind != GHP_INSTR_COMPUTE || instr->pass != GHP_PASS_BACKWARD_WEIGHT ||
        instr->local.repeat < 2)
        return 0;
    return ghp_align(bytes);
}

static enum ghp_status work(const struct ghp_lowering *lowering, const struct ghp_instr *instr,
                            struct ghp_instr_scratch *scratch)
{
    if (lowering->scratch.bytes != NULL)
        GHP_TRY(lowering->scratch.bytes(lowering->scratch.context, &instr->local, instr->pass,
                                        &scratch->work_bytes));
    scratch->work_bytes += ghp_instr_sums_bytes(instr);
    scratch->work_bytes += ghp_ring_block_bytes(instr, lowering->element_bytes);
    return GHP_OK;
}

const struct ghp_kind_facts ghp_kind_facts_compute = {
    .name = "compute",
    .purpose = "one pass of one layer",
    .phase = GHP_PHASE_COUNT,
    .cost = GHP_COST_KERNEL,
    .is_local = true,
    .assign = assign,
    .accesses = accesses,
    .work = work,
};
