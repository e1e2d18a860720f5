/* core/program/lower/edge.c - the instructions of one edge: reshards both ways, and the addition of further
 * gradients. */
#include "core/program/lower/edge.h"
#include "core/program/lower/points.h"

#include "core/program/fuse.h"

/* Bytes exchanged and copied by one step; docs/explanation/time-model.md has the table. */
static void size_step(const struct ghp_emitter *e, struct ghp_shape shape, struct ghp_instr *instr)
{
    const struct ghp_reshard_step *step = &instr->step;
    struct ghp_layout widest = {GHP_LAYOUT_FULL, step->tp_size};
    int64_t samples = ghp_layout_samples(widest, e->placement.problem);
    int64_t whole = samples * ghp_reshard_channels(step, ghp_shape_columns(shape)) * shape.h *
                    shape.w * ghp_shape_element_bytes(shape, e->lowering->element_bytes);
    int64_t part = whole / step->tp_size;
    instr->local =
        (struct ghp_local){.n = samples, .c = ghp_shape_columns(shape), .h = shape.h, .w = shape.w};
    switch (step->op) {
    case GHP_RESHARD_SLICE_BATCH: instr->copy_bytes = part * step->to.tp_size; break;
    case GHP_RESHARD_SLICE_CHANNEL:
    case GHP_RESHARD_SLICE_POSITION: instr->copy_bytes = part; break;
    case GHP_RESHARD_GATHER_BATCH:
    case GHP_RESHARD_SUM_TO_BATCH: instr->bytes = whole; break;
    case GHP_RESHARD_GATHER_CHANNEL:
    case GHP_RESHARD_GATHER_POSITION:
    case GHP_RESHARD_SUM_TO_CHANNEL:
    case GHP_RESHARD_SUM_TO_POSITION:
    case GHP_RESHARD_SUM_TO_FULL:
        instr->bytes = whole;
        instr->copy_bytes = whole;
        break;
    case GHP_RESHARD_BATCH_TO_CHANNEL:
    case GHP_RESHARD_BATCH_TO_POSITION:
    case GHP_RESHARD_CHANNEL_TO_BATCH:
    case GHP_RESHARD_POSITION_TO_BATCH:
        instr->bytes = part;
        instr->copy_bytes = part;
        break;
    case GHP_RESHARD_CHANNEL_TO_POSITION:
    case GHP_RESHARD_POSITION_TO_CHANNEL:
        instr->bytes = part;
        instr->copy_bytes = 2 * part;
        break;
    case GHP_RESHARD_OP_COUNT: break;
    }
}

static enum ghp_status emit_reshard(const struct ghp_emitter *e, int edge, struct ghp_layout from,
                                    struct ghp_layout to, bool backward)
{
    const struct ghp_model *model = e->lowering->model;
    struct ghp_reshard reshard;
    if (!ghp_reshard_find(from, to, &reshard))
        return GHP_FAIL(GHP_ERR_INTERNAL, "no reshard into '%s' exists; report this",
                        model->layers[model->edges[edge].to].name);
    int point = ghp_emitter_edge_point(e, edge, backward);
    for (int s = 0; s < reshard.n_steps; s++) {
        struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_RESHARD, point);
        if (instr == NULL) return GHP_NO_MEMORY();
        instr->layer = model->edges[edge].to;
        instr->edge = edge;
        instr->backward = backward;
        instr->step = reshard.steps[s];
        instr->comm = ghp_reshard_comm(instr->step.op);
        if (instr->comm != GHP_COMM_NONE)
            instr->ranks = ghp_placement_ranks(
                &e->placement, ghp_ranks_subgroup(e->placement.number, instr->step.tp_size));
        size_step(e, model->layers[model->edges[edge].from].out, instr);
    }
    return GHP_OK;
}

enum ghp_status ghp_emit_addition(const struct ghp_emitter *e, int edge, struct ghp_layout dy,
                                  int point)
{
    const struct ghp_model *model = e->lowering->model;
    const struct ghp_layer *l = &model->layers[model->edges[edge].from];
    struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_ACCUMULATE, point);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = model->edges[edge].from;
    instr->edge = edge;
    instr->backward = true;
    instr->local = (struct ghp_local){.n = ghp_layout_samples(dy, e->placement.problem),
                                      .c = ghp_layout_channels(dy, ghp_shape_columns(l->out)),
                                      .h = ghp_layout_positions(dy, l->out.h),
                                      .w = l->out.w};
    instr->bytes = ghp_local_in_elements(&instr->local) * e->lowering->element_bytes;
    instr->masks = ghp_fuse_sum(model, edge);
    return GHP_OK;
}

static bool makes_sums(const struct ghp_layer *layer)
{
    return (ghp_op_of(layer->op)->fuses & GHP_FUSES_SUM) != 0;
}

enum ghp_status ghp_emit_edge_backward(const struct ghp_emitter *e, int edge,
                                       struct ghp_layouts from, struct ghp_split to)
{
    const struct ghp_model *model = e->lowering->model;
    struct ghp_instr *sum;
    if (!ghp_edge_needs_gradient(model, edge)) return GHP_OK;
    GHP_TRY(emit_reshard(e, edge, ghp_edge_layouts(model, edge, to).dx, from.dy, true));
    if (ghp_placement_first_gradient(e->lowering, &e->placement, model->edges[edge].from) == edge)
        return GHP_OK;
    GHP_TRY(ghp_emit_addition(e, edge, from.dy, ghp_emitter_edge_point(e, edge, true)));
    sum = &e->program->instrs[e->program->n_instrs - 1];
    sum->joins = !sum->masks && makes_sums(&model->layers[model->edges[edge].to]) &&
                 ghp_layout_same(ghp_edge_layouts(model, edge, to).dx, from.dy);
    return GHP_OK;
}

enum ghp_status ghp_emit_edge_forward(const struct ghp_emitter *e, int edge,
                                      struct ghp_layouts from, struct ghp_split to)
{
    return emit_reshard(e, edge, from.y, ghp_edge_layouts(e->lowering->model, edge, to).x, false);
}
