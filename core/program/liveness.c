/* core/program/liveness.c - see program/liveness.h. A row for each kind of instruction that touches such tensors. */
#include "core/program/liveness.h"

#include <stddef.h>

#define OPERAND(field) ((int)(offsetof(struct ghp_operands, field) / sizeof(int)))

static void put(struct ghp_touches *t, enum ghp_tensor tensor, int of, int operand, bool writes)
{
    GHP_ASSERT(t->n < GHP_MAX_TOUCHES);
    t->touch[t->n++] =
        (struct ghp_touch){.tensor = tensor, .of = of, .operand = operand, .writes = writes};
}

/* A loss's are the same forward and backward. */
static enum ghp_tensor stats_of(const struct ghp_instr *instr)
{
    return instr->backward && instr->local.parts == 0 ? GHP_TENSOR_BACKWARD_STATS
                                                      : GHP_TENSOR_STATS;
}

/* Evaluation runs on running statistics. */
static bool has_stats(const struct ghp_lowering *how, const struct ghp_instr *instr)
{
    return (ghp_op_uses(instr->local.op, instr->pass) & GHP_AT_STATS) != 0 &&
           ghp_local_stats_bytes(&instr->local) > 0 &&
           (instr->local.parts > 0 || !how->forward_only);
}

static void put_summands(const struct ghp_lowering *how, int layer, int operand, bool writes,
                         struct ghp_touches *t)
{
    for (int p = 0; p < how->model->layers[layer].n_params; p++) {
        put(t, GHP_TENSOR_SUMMAND, layer, operand + p, writes);
        t->touch[t->n - 1].slot = p;
    }
}

static void put_compute(const struct ghp_lowering *how, const struct ghp_instr *instr,
                        struct ghp_touches *t)
{
    const struct ghp_layer *l = &how->model->layers[instr->layer];
    const struct ghp_op_pass *pass = &ghp_op_of(l->op)->passes[instr->pass];
    unsigned uses = pass->reads | pass->writes;

    for (int i = 0; i < l->n_inputs; i++) {
        if (uses & GHP_AT_X) put(t, GHP_TENSOR_INPUT, l->first_edge + i, OPERAND(x) + i, false);
        if (uses & GHP_AT_DX)
            put(t, GHP_TENSOR_INPUT_GRADIENT, l->first_edge + i, OPERAND(dx) + i, true);
    }
    if (uses & GHP_AT_Y)
        put(t, GHP_TENSOR_OUTPUT, instr->layer, OPERAND(y), (pass->writes & GHP_AT_Y) != 0);
    if (uses & GHP_AT_DY) put(t, GHP_TENSOR_GRADIENT, instr->layer, OPERAND(dy), false);
    if ((uses & GHP_AT_DW) && instr->micro > 0 &&
        !ghp_lower_adds_weight_gradient(how, instr->layer))
        put_summands(how, ghp_model_owner(how->model, instr->layer), OPERAND(dw), true, t);
    if (has_stats(how, instr))
        put(t, stats_of(instr), instr->layer, OPERAND(stats), (pass->writes & GHP_AT_STATS) != 0);
    if ((uses & GHP_AT_SAVED) && ghp_local_saved_bytes(&instr->local, how->element_bytes) > 0)
        put(t, GHP_TENSOR_SAVED, instr->layer, OPERAND(saved), (pass->writes & GHP_AT_SAVED) != 0);
    if (uses & GHP_AT_LABELS) put(t, GHP_TENSOR_LABELS, instr->layer, OPERAND(labels), false);
}

/* Samples in the first stage, labels in the last. */
static void put_load(const struct ghp_lowering *how, const struct ghp_instr *instr,
                     struct ghp_touches *t)
{
    int loss = how->model->n_layers - 1;

    if (instr->layer == 0) put(t, GHP_TENSOR_OUTPUT, 0, OPERAND(y), true);
    if (ghp_stage_of(how->staging, instr->layer) == ghp_stage_of(how->staging, loss))
        put(t, GHP_TENSOR_LABELS, loss, OPERAND(labels), true);
}

static bool same_reshard(const struct ghp_program *program, int index, int other)
{
    const struct ghp_instr *a = &program->instrs[index], *b = &program->instrs[other];

    return other >= 0 && other < program->n_instrs && b->kind == GHP_INSTR_RESHARD &&
           b->edge == a->edge && b->backward == a->backward;
}

static void put_reshard(const struct ghp_lowering *how, const struct ghp_program *program,
                        int index, struct ghp_touches *t)
{
    const struct ghp_instr *instr = &program->instrs[index];
    int e = instr->edge, from = how->model->edges[e].from;

    if (same_reshard(program, index, index - 1))
        put(t, GHP_TENSOR_BETWEEN, e, OPERAND(x), false);
    else if (instr->backward)
        put(t, GHP_TENSOR_INPUT_GRADIENT, e, OPERAND(x), false);
    else
        put(t, GHP_TENSOR_OUTPUT, from, OPERAND(x), false);
    if (same_reshard(program, index, index + 1))
        put(t, GHP_TENSOR_BETWEEN, e, OPERAND(y), true);
    else
        put(t, instr->backward ? GHP_TENSOR_EDGE_GRADIENT : GHP_TENSOR_INPUT, e, OPERAND(y), true);
}

/* A further consumer's gradient into an output's; or, without an edge, a micro-batch's into those of parameters. */
static void put_accumulate(const struct ghp_lowering *how, const struct ghp_instr *instr,
                           struct ghp_touches *t)
{
    if (instr->edge >= 0) {
        put(t, GHP_TENSOR_EDGE_GRADIENT, instr->edge, OPERAND(x), false);
        put(t, GHP_TENSOR_GRADIENT, instr->layer, OPERAND(dy), false);
        return;
    }
    put_summands(how, ghp_model_owner(how->model, instr->layer), OPERAND(x), false, t);
}

static void put_send(const struct ghp_lowering *how, const struct ghp_instr *instr,
                     struct ghp_touches *t)
{
    put(t, instr->backward ? GHP_TENSOR_GRADIENT : GHP_TENSOR_OUTPUT,
        how->model->edges[instr->edge].from, OPERAND(x), false);
}

/* Into the remote activation of a tensor, or the gradient of one that was sent. */
static void put_receive(const struct ghp_lowering *how, const struct ghp_instr *instr,
                        struct ghp_touches *t)
{
    if (instr->backward)
        put(t, GHP_TENSOR_EDGE_GRADIENT, instr->edge, OPERAND(y), true);
    else
        put(t, GHP_TENSOR_OUTPUT, how->model->edges[instr->edge].from, OPERAND(y), true);
}

void ghp_instr_touches(const struct ghp_lowering *how, const struct ghp_program *program, int index,
                       struct ghp_touches *touches)
{
    const struct ghp_instr *instr = &program->instrs[index];

    touches->n = 0;
    switch (instr->kind) {
    case GHP_INSTR_LOAD: put_load(how, instr, touches); return;
    case GHP_INSTR_COMPUTE: put_compute(how, instr, touches); return;
    case GHP_INSTR_STAT_REDUCE:
        put(touches, stats_of(instr), instr->layer, OPERAND(stats), false);
        return;
    case GHP_INSTR_RESHARD: put_reshard(how, program, index, touches); return;
    case GHP_INSTR_ACCUMULATE: put_accumulate(how, instr, touches); return;
    case GHP_INSTR_NORM:
        if (instr->layer >= 0 && instr->micro > 0)
            put_summands(how, instr->layer, OPERAND(dw), false, touches);
        return;
    case GHP_INSTR_SEND: put_send(how, instr, touches); return;
    case GHP_INSTR_RECEIVE: put_receive(how, instr, touches); return;
    default: return; /* nothing but what lives always; a WAIT touches what it waits for */
    }
}
