/* core/program/lower_transfer.c - what goes from stage to stage: sends, receives, and the waits for them. */
#include "core/program/lower_transfer.h"

#include <stdlib.h>

bool ghp_edge_carries(const struct ghp_lowering *lowering, int edge, int *from_stage, int *to_stage)
{
    const struct ghp_edge *e = &lowering->model->edges[edge];
    int carrier;
    *from_stage = ghp_stage_of(lowering->staging, e->from);
    *to_stage = ghp_stage_of(lowering->staging, e->to);
    if (*from_stage == *to_stage) return false;
    ghp_remote_activation_readers(lowering->model, lowering->staging, e->from, *to_stage, &carrier);
    return carrier == edge;
}

struct ghp_transfer ghp_edge_transfer_of(const struct ghp_lowering *lowering, int edge,
                                         bool backward, struct ghp_layouts producer,
                                         struct ghp_layouts remote_activation)
{
    const struct ghp_shape shape = lowering->model->layers[lowering->model->edges[edge].from].out;
    int from, to;
    ghp_edge_carries(lowering, edge, &from, &to);
    return (struct ghp_transfer){
        .staging = lowering->staging,
        .whole = lowering->problem,
        .n_layers = lowering->model->n_layers,
        .from_stage = backward ? to : from,
        .to_stage = backward ? from : to,
        .from = backward ? remote_activation.dy : producer.y,
        .to = backward ? producer.dy : remote_activation.y,
        .shape = shape,
        .element_bytes = ghp_shape_element_bytes(shape, lowering->element_bytes),
    };
}

enum ghp_status ghp_emit_transfer(const struct ghp_emitter *e, enum ghp_instr_kind kind, int edge,
                                  const struct ghp_transfer *transfer, int point)
{
    struct ghp_instr *instr = ghp_emitter_add(e, kind, point);
    bool sends = kind == GHP_INSTR_SEND;
    if (instr == NULL) return GHP_NO_MEMORY();
    struct ghp_traffic traffic =
        sends ? ghp_transfer_sent(transfer, e->rank) : ghp_transfer_received(transfer, e->rank);
    const struct ghp_edge *at = &e->lowering->model->edges[edge];
    instr->backward = transfer->from_stage > transfer->to_stage;
    instr->layer = sends == instr->backward ? at->to : at->from; /* the one of this stage */
    instr->edge = edge;
    instr->transfer = *transfer;
    instr->bytes = traffic.bytes;
    instr->copy_bytes = traffic.piece_bytes;
    return GHP_OK;
}

/* Layouts of an edge's producer in its own stage, and of its remote activation in the consumer's. */
static void sides_of(const struct ghp_emitter *e, int edge, struct ghp_layouts *producer,
                     struct ghp_layouts *remote_activation)
{
    const struct ghp_lowering *lowering = e->lowering;
    const struct ghp_edge *at = &lowering->model->edges[edge];
    int stage = ghp_stage_of(lowering->staging, at->to);
    struct ghp_placement reader = {.stage = stage,
                                   .n_stages = ghp_staging_stages(lowering->staging),
                                   .first_layer = lowering->staging->stage[stage].first_layer};
    *producer = ghp_split_layouts(e->splits[at->from]);
    *remote_activation = ghp_placement_layouts(lowering, &reader, e->splits, at->from);
}

enum ghp_status ghp_emit_edge_transfer(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                       int edge, bool backward, int point)
{
    struct ghp_layouts producer, remote_activation;
    sides_of(e, edge, &producer, &remote_activation);
    struct ghp_transfer transfer =
        ghp_edge_transfer_of(e->lowering, edge, backward, producer, remote_activation);
    return ghp_emit_transfer(e, kind, edge, &transfer, point);
}

/* Until the send or receive with that index is done. */
static enum ghp_status emit_wait(const struct ghp_emitter *e, int after, int point)
{
    struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_WAIT, point);
    if (instr == NULL) return GHP_NO_MEMORY();
    const struct ghp_instr *what = &e->program->instrs[after];
    instr->layer = what->layer;
    instr->edge = what->edge;
    instr->micro = what->micro;
    instr->backward = what->backward;
    instr->after = after;
    return GHP_OK;
}

enum ghp_status ghp_emit_arrival(const struct ghp_emitter *e, int edge, bool backward, int point)
{
    int i = e->program->n_instrs - 1;
    for (; i >= 0; i--) {
        const struct ghp_instr *instr = &e->program->instrs[i];
        if (instr->kind == GHP_INSTR_RECEIVE && instr->edge == edge &&
            instr->backward == backward && instr->micro == e->micro)
            break;
    }
    GHP_ASSERT(i >= 0);
    return emit_wait(e, i, point);
}

enum ghp_status ghp_emit_receives(struct ghp_emitter *e, struct ghp_schedule_step slot, int point)
{
    int micro = e->micro, n = e->lowering->model->n_edges, from, to;
    enum ghp_status status = GHP_OK;
    if (e->placement.n_stages == 1) return GHP_OK;
    e->micro = slot.micro;
    for (int i = 0; i < n && status == GHP_OK; i++) {
        int edge = slot.backward ? n - 1 - i : i;
        if (!ghp_edge_carries(e->lowering, edge, &from, &to)) continue;
        if ((slot.backward ? from : to) != e->placement.stage) continue;
        if (slot.backward && !ghp_edge_needs_gradient(e->lowering->model, edge)) continue;
        status = ghp_emit_edge_transfer(e, GHP_INSTR_RECEIVE, edge, slot.backward, point);
    }
    e->micro = micro;
    return status;
}

/* Schedule steps after which a send is waited for: to a neighbour one, past stages as many as its receiver may be
 * behind (docs/explanation/stages.md 3). */
static int patience_of(const struct ghp_instr *send)
{
    int distance = abs(send->transfer.to_stage - send->transfer.from_stage);
    return distance > 2 ? distance - 1 : 1;
}

enum ghp_status ghp_emit_send_waits(const struct ghp_emitter *e, const int *begins, int slot,
                                    bool last, int point)
{
    int first = slot < GHP_MAX_STAGES ? 0 : slot - GHP_MAX_STAGES;
    for (int s = first; s <= slot; s++)
        for (int i = begins[s]; i < begins[s + 1]; i++) {
            const struct ghp_instr *send = &e->program->instrs[i];
            if (send->kind != GHP_INSTR_SEND) continue;
            int at = s + patience_of(send);
            if (at == slot || (last && at > slot)) GHP_TRY(emit_wait(e, i, point));
        }
    return GHP_OK;
}
