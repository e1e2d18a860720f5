/* core/program/kind/transfer.c - tensors on their way to another stage's workers and from them, and waiting. */
#include "core/program/liveness.h"
#include "core/program/lower/buffer_assignment_private.h"

/* at.x[0], packing through at.scratch. */
static void accesses_sent(const struct ghp_lowering *lowering, const struct ghp_program *program,
                          int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];

    ghp_accesses_add(t, (struct ghp_access){
                            instr->backward ? GHP_TENSOR_GRADIENT : GHP_TENSOR_OUTPUT,
                            lowering->model->edges[instr->edge].from, .operand = GHP_OPERAND(x)});
}

/* at.y, joining through at.scratch: the remote activation of a tensor, or the gradient of one that was sent. */
static void accesses_received(const struct ghp_lowering *lowering,
                              const struct ghp_program *program, int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];
    struct ghp_access access = {GHP_TENSOR_EDGE_GRADIENT, instr->edge, .operand = GHP_OPERAND(y),
                                .writes = true};

    if (!instr->backward) {
        access.tensor = GHP_TENSOR_OUTPUT;
        access.of = lowering->model->edges[instr->edge].from;
    }
    ghp_accesses_add(t, access);
}

static enum ghp_status work(const struct ghp_lowering *lowering, const struct ghp_instr *instr,
                            struct ghp_instr_scratch *scratch)
{
    (void)lowering;
    scratch->work_bytes = instr->copy_bytes;
    return GHP_OK;
}

static int64_t all_bytes(const struct ghp_instr *instr)
{
    return instr->bytes;
}

const struct ghp_kind_facts ghp_kind_facts_send = {
    .name = "send",
    .purpose = "parts of one tensor to another stage's workers",
    .stream = GHP_STREAM_TRANSFER,
    .cost = GHP_COST_TRANSFER,
    .sent_bytes = all_bytes,
    .accesses = accesses_sent,
    .work = work,
};

const struct ghp_kind_facts ghp_kind_facts_receive = {
    .name = "receive",
    .purpose = "parts of one tensor from another stage's workers",
    .stream = GHP_STREAM_TRANSFER,
    .cost = GHP_COST_COPY,
    .writes = GHP_AT_Y,
    .accesses = accesses_received,
    .work = work,
};

/* What a transfer, a gather or a reduction accesses lives until it is waited for. Other weights live always. */
static void assign(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_instr *what = &k->program->instrs[instr->after];

    if (what->stream != GHP_STREAM_TRANSFER && what->sharding == GHP_SHARDING_NONE) return;
    instr->at.x[0] = what->at.x[0];
    instr->at.y = what->at.y;
    instr->at.scratch = what->at.scratch;
}

const struct ghp_kind_facts ghp_kind_facts_wait = {
    .name = "wait",
    .purpose = "until a transfer, a reduction or gathered weights of this step are there",
    .of_all = "all gradients",
    .cost = GHP_COST_NOTHING,
    .waits = true,
    .writes = GHP_AT_Y,
    .assign = assign,
};
