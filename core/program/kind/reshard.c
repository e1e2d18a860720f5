/* core/program/kind/reshard.c - one step of the reshard of one edge, forward or backward: at.x[0] -> at.y, packing
 * through at.scratch, receiving into at.saved. */
#include "core/program/liveness.h"

static bool same_reshard(const struct ghp_program *program, int index, int other)
{
    const struct ghp_instr *a = &program->instrs[index], *b = &program->instrs[other];

    return other >= 0 && other < program->n_instrs && b->kind == GHP_INSTR_RESHARD &&
           b->edge == a->edge && b->backward == a->backward;
}

static void accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                     int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];
    struct ghp_access from = {.of = instr->edge, .operand = GHP_OPERAND(x)};
    struct ghp_access to = {.of = instr->edge, .operand = GHP_OPERAND(y), .writes = true};

    from.tensor = to.tensor = GHP_TENSOR_BETWEEN;
    if (!same_reshard(program, index, index - 1)) {
        from.tensor = instr->backward ? GHP_TENSOR_INPUT_GRADIENT : GHP_TENSOR_OUTPUT;
        if (!instr->backward) from.of = lowering->model->edges[instr->edge].from;
    }
    if (!same_reshard(program, index, index + 1))
        to.tensor = instr->backward ? GHP_TENSOR_EDGE_GRADIENT : GHP_TENSOR_INPUT;
    ghp_accesses_add(t, from);
    ghp_accesses_add(t, to);
}

static enum ghp_status work(const struct ghp_lowering *lowering, const struct ghp_instr *instr,
                            struct ghp_instr_scratch *scratch)
{
    bool pads = ghp_reshard_channels(&instr->step, instr->local.c) > instr->local.c;

    (void)lowering;
    switch (instr->step.op) {
    case GHP_RESHARD_GATHER_CHANNEL:
    case GHP_RESHARD_GATHER_POSITION:
    case GHP_RESHARD_BATCH_TO_CHANNEL:
    case GHP_RESHARD_BATCH_TO_POSITION:
    case GHP_RESHARD_CHANNEL_TO_BATCH:
    case GHP_RESHARD_POSITION_TO_BATCH:
    case GHP_RESHARD_POSITION_TO_CHANNEL: scratch->work_bytes = instr->bytes; break;
    /* what is sent lies in y, or in scratch if y is smaller */
    case GHP_RESHARD_CHANNEL_TO_POSITION:
        scratch->work_bytes = (pads ? 2 : 1) * instr->bytes;
        break;
    case GHP_RESHARD_SUM_TO_POSITION:
    case GHP_RESHARD_SUM_TO_CHANNEL: scratch->work_bytes = instr->bytes; /* fall through */
    case GHP_RESHARD_SUM_TO_BATCH:
    case GHP_RESHARD_SUM_TO_FULL:
        scratch->receive_bytes = ghp_receive_bytes(instr->bytes, instr->ranks.count);
        break;
    default: break;
    }
    return GHP_OK;
}

const struct ghp_kind_facts ghp_kind_facts_reshard = {
    .name = "reshard",
    .purpose = "one step of a tensor's way from its producer's layout to its reader's, or back",
    .phase = GHP_PHASE_RESHARD,
    .writes = GHP_AT_Y | GHP_AT_SAVED,
    .accesses = accesses,
    .work = work,
};
