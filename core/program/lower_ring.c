/* core/program/lower_ring.c - see program/lower_ring.h. */
#include "core/program/lower_ring.h"

#include "core/program/lower_points.h"
#include "core/program/ring.h"

/* Another worker's piece lies wholly before the own positions, or is left out: no part of it is hidden. */
static enum ghp_status emit_piece(const struct ghp_emitter *e, struct ghp_instr piece)
{
    struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_COMPUTE, piece.point);

    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = piece.layer;
    instr->backward = piece.backward;
    instr->pass = piece.pass;
    instr->local = piece.local;
    instr->layouts = piece.layouts;
    instr->pieces = piece.pieces;
    instr->piece = piece.piece;
    instr->copy_bytes = ghp_ring_piece_bytes(instr, e->lowering->element_bytes);
    if (piece.piece > 0) instr->local.heads.causal = false;
    return GHP_OK;
}

/* Brings the piece; backward with the sums of its gradients, which alone go home at last. */
static enum ghp_status emit_shift(const struct ghp_emitter *e, struct ghp_instr piece)
{
    struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_SHIFT, piece.point);
    bool home = piece.piece == piece.pieces;
    int64_t both = ghp_ring_tensor_bytes(&piece, GHP_RING_KEYS, e->lowering->element_bytes) +
                   ghp_ring_tensor_bytes(&piece, GHP_RING_VALUES, e->lowering->element_bytes);

    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = piece.layer;
    instr->backward = piece.backward;
    instr->local = piece.local;
    instr->layouts = piece.layouts;
    instr->pieces = piece.pieces;
    instr->piece = piece.piece;
    instr->ranks =
        ghp_placement_ranks(&e->placement, ghp_ranks_subgroup(e->placement.number, piece.pieces));
    instr->bytes = piece.backward && !home ? 2 * both : both;
    return GHP_OK;
}

enum ghp_status ghp_emit_ring(const struct ghp_emitter *e, int layer, struct ghp_split split,
                              enum ghp_pass pass)
{
    bool backward = ghp_pass_is_backward(pass);
    struct ghp_instr piece = {
        .layer = layer,
        .point = ghp_emitter_point(e, layer, backward),
        .backward = backward,
        .pass = pass,
        .local = ghp_local_of(e->lowering->model, layer, split, e->placement.problem),
        .layouts = ghp_split_layouts(split),
        .pieces = split.tp_size};

    GHP_TRY(emit_piece(e, piece));
    for (piece.piece = 1; piece.piece < piece.pieces; piece.piece++) {
        GHP_TRY(emit_shift(e, piece));
        GHP_TRY(emit_piece(e, piece));
    }
    return backward ? emit_shift(e, piece) : GHP_OK;
}
