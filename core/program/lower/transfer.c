/* core/program/lower/transfer.c - what goes from stage to stage: sends, receives, and the waits for them. */
#include "core/program/lower/transfer.h"

#include "core/base/array.h"

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
                                  bool backward, const struct ghp_transfer *transfer, int point)
{
    struct ghp_instr *instr = ghp_emitter_add(e, kind, point);
    bool sends = kind == GHP_INSTR_SEND;
    if (instr == NULL) return GHP_NO_MEMORY();
    struct ghp_traffic traffic =
        sends ? ghp_transfer_sent(transfer, e->rank) : ghp_transfer_received(transfer, e->rank);
    const struct ghp_edge *at = &e->lowering->model->edges[edge];
    instr->backward = backward;
    instr->layer = sends == backward ? at->to : at->from; /* the one of this stage */
    instr->edge = edge;
    instr->transfer = *transfer;
    instr->bytes = traffic.bytes;
    instr->copy_bytes = traffic.packed_bytes;
    return GHP_OK;
}

/* Layouts of an edge's producer in its own stage, and of its remote activation in the consumer's. */
static void sides_of(const struct ghp_emitter *e, int edge, struct ghp_layouts *producer,
                     struct ghp_layouts *remote_activation)
{
    const struct ghp_lowering *lowering = e->lowering;
    const struct ghp_edge *at = &lowering->model->edges[edge];
    struct ghp_placement reader = {.stage = ghp_stage_of(lowering->staging, at->to)};
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
    return ghp_emit_transfer(e, kind, edge, backward, &transfer, point);
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
    const struct ghp_staging *staging = e->lowering->staging;
    int micro = e->micro, n = e->lowering->model->n_edges, from, to;
    int chunk = slot.chunk * e->placement.n_stages + e->placement.stage; /* of all */
    enum ghp_status status = GHP_OK;
    if (e->placement.n_stages == 1) return GHP_OK;
    e->micro = slot.micro;
    for (int i = 0; i < n && status == GHP_OK; i++) {
        int edge = slot.backward ? n - 1 - i : i;
        if (!ghp_edge_carries(e->lowering, edge, &from, &to)) continue;
        const struct ghp_edge *at = &e->lowering->model->edges[edge];
        if (ghp_chunk_of(staging, slot.backward ? at->from : at->to) != chunk) continue;
        if (slot.backward && !ghp_edge_needs_gradient(e->lowering->model, edge)) continue;
        status = ghp_emit_edge_transfer(e, GHP_INSTR_RECEIVE, edge, slot.backward, point);
    }
    e->micro = micro;
    return status;
}

/* Schedule steps after which a send is waited for: one to a neighbour; past stages as many as its receiver may lag
 * (docs/explanation/stages.md 3). */
static int patience_of(const struct ghp_emitter *e, const struct ghp_sends *sends,
                       const struct ghp_instr *send, int slot)
{
    const struct ghp_edge *edge = &e->lowering->model->edges[send->edge];
    int distance = abs(send->transfer.to_stage - send->transfer.from_stage);
    if (sends->times->steps == 0) return distance > 2 ? distance - 1 : 1;
    return ghp_schedule_patience(
        sends->times, e->placement.stage, slot,
        (struct ghp_schedule_step){.micro = send->micro, .backward = send->backward},
        ghp_chunk_of(e->lowering->staging, send->backward ? edge->from : edge->to));
}

static enum ghp_status note_send(struct ghp_sends *sends, struct ghp_sent sent)
{
    GHP_TRY_ROOM(sends->of, sends->n, sends->max);
    sends->of[sends->n++] = sent;
    return GHP_OK;
}

enum ghp_status ghp_emit_send_waits(const struct ghp_emitter *e, struct ghp_sends *sends, int begin,
                                    int slot, bool last, int point)
{
    int end = e->program->n_instrs, left = 0;
    for (int i = begin; i < end; i++) {
        const struct ghp_instr *instr = &e->program->instrs[i];
        if (instr->kind == GHP_INSTR_SEND)
            GHP_TRY(
                note_send(sends, (struct ghp_sent){i, slot + patience_of(e, sends, instr, slot)}));
    }
    for (int k = 0; k < sends->n; k++) {
        struct ghp_sent sent = sends->of[k];
        if (last || sent.due == slot)
            GHP_TRY(emit_wait(e, sent.send, point));
        else
            sends->of[left++] = sent;
    }
    sends->n = left;
    return GHP_OK;
}
