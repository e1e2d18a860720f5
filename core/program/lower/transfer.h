/* core/program/lower/transfer.h - what goes from stage to stage: sends, receives, and the waits for them. */
#ifndef GHP_CORE_PROGRAM_LOWER_TRANSFER_H
#define GHP_CORE_PROGRAM_LOWER_TRANSFER_H

#include "core/program/lower/emitter.h"
#include "core/sharding/schedule.h"

/* Whether the edge brings a tensor from another stage, for itself and all later readers in its own. */
bool ghp_edge_carries(const struct ghp_lowering *lowering, int edge, int *from_stage,
                      int *to_stage);

/* The transfer of the edge's tensor, or gradient. `producer` and `remote_activation`: layouts on both sides. */
struct ghp_transfer ghp_edge_transfer_of(const struct ghp_lowering *lowering, int edge,
                                         bool backward, struct ghp_layouts producer,
                                         struct ghp_layouts remote_activation);

/* kind: SEND or RECEIVE, of the edge's tensor or, backward, of its gradient. */
enum ghp_status ghp_emit_transfer(const struct ghp_emitter *e, enum ghp_instr_kind kind, int edge,
                                  bool backward, const struct ghp_transfer *transfer, int point);
enum ghp_status ghp_emit_edge_transfer(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                       int edge, bool backward, int point);

/* The wait for the edge's receive. */
enum ghp_status ghp_emit_arrival(const struct ghp_emitter *e, int edge, bool backward, int point);

/* Receives of a slot, posted at `point`: forward the remote activations that its chunk is the first to read, backward
 * the gradients of what its chunk sent. */
enum ghp_status ghp_emit_receives(struct ghp_emitter *e, struct ghp_schedule_step slot, int point);

/* Sends that nobody has waited for yet, in their order. */
struct ghp_sends {
    const struct ghp_schedule_times *times; /* borrowed */
    int n, max;
    struct ghp_sent {
        int send, due; /* instruction; slot at whose end it is waited for */
    } * of;            /* owned */
};

/* Waits at the end of slot `slot`, which begins with instruction `begin`, for the sends whose time it is; in the last
 * slot for all that are left. */
enum ghp_status ghp_emit_send_waits(const struct ghp_emitter *e, struct ghp_sends *sends, int begin,
                                    int slot, bool last, int point);

#endif
