/* core/lower_flow.c - which gradients flow where and in which layouts, what is overwritten in place or made again: asked by
 * those who emit instructions and those who give them buffers. */
#include "core/lower_private.h"

bool ghp_edge_needs_gradient(const struct ghp_model *model, int edge)
{
    return model->layers[model->edges[edge].from].learns;
}

bool ghp_lower_needs_gradient(const struct ghp_lowering *how, int layer)
{
    return how->input_gradient || how->model->layers[layer].learns;
}

int ghp_lower_first_gradient(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    int best = -1;
    for (int i = 0; i < l->n_consumers; i++) {
        const struct ghp_edge *e = &model->edges[l->out_edges[i]];
        const struct ghp_edge *b = best < 0 ? NULL : &model->edges[best];
        if (b == NULL || e->to > b->to || (e->to == b->to && e->slot < b->slot))
            best = l->out_edges[i];
    }
    return best;
}

int ghp_seat_first_gradient(const struct ghp_lowering *how, const struct ghp_seat *seat, int layer)
{
    const struct ghp_model *model = how->model;
    const struct ghp_layer *l = &model->layers[layer];
    int best = -1, own = ghp_stage_of(how->staging, layer);
    if (seat->n_stages == 1) return ghp_lower_first_gradient(model, layer);
    for (int i = 0; i < l->n_consumers; i++) {
        const struct ghp_edge *e = &model->edges[l->out_edges[i]];
        const struct ghp_edge *b = best < 0 ? NULL : &model->edges[best];
        int carrier, stage = ghp_stage_of(how->staging, e->to);
        ghp_image_readers(model, how->staging, layer, stage, &carrier);
        bool arrives = stage == seat->stage || (own == seat->stage && carrier == l->out_edges[i]);
        if (!arrives) continue;
        if (b == NULL || e->to > b->to || (e->to == b->to && e->slot < b->slot))
            best = l->out_edges[i];
    }
    return best;
}

struct ghp_layouts ghp_seat_layouts(const struct ghp_lowering *how, const struct ghp_seat *seat,
                                    const struct ghp_split *splits, int layer)
{
    const struct ghp_layout batch = {GHP_LAYOUT_BATCH, 1};
    int carrier, readers;
    if (layer >= seat->first_layer) return ghp_split_layouts(splits[layer]);
    readers = ghp_image_readers(how->model, how->staging, layer, seat->stage, &carrier);
    if (readers != 1) return (struct ghp_layouts){batch, batch, batch, batch};
    struct ghp_layouts reader = ghp_split_layouts(splits[how->model->edges[carrier].to]);
    return (struct ghp_layouts){.x = batch, .y = reader.x, .dy = reader.dx, .dx = batch};
}

bool ghp_lower_remakes(const struct ghp_lowering *how, int layer)
{
    if (how->staging == NULL || how->staging->recompute == NULL) return false;
    while (ghp_op_in_place(&how->model->layers[layer]) && layer > 0)
        layer = how->model->layers[layer].inputs[0];
    return how->staging->recompute[layer];
}

bool ghp_lower_overwrites_input(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    if (!ghp_op_in_place(l)) return false;
    const struct ghp_layer *from = &model->layers[l->inputs[0]];
    return from->n_consumers == 1 && !ghp_op_needs_output(from->op);
}

bool ghp_layer_drifts(const struct ghp_layer *layer)
{
    return layer->op == GHP_OP_BATCH_NORM && layer->norm.ghost > 0;
}
