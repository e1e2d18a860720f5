/* core/program/lower/flow.c - which gradients flow where and in which layouts, what is overwritten in place or
 * recomputed: asked by those who emit instructions and those who give them buffers. */
#include "core/program/lower/flow.h"

bool ghp_edge_needs_gradient(const struct ghp_model *model, int edge)
{
    return model->layers[model->edges[edge].from].learns;
}

bool ghp_lower_needs_gradient(const struct ghp_lowering *lowering, int layer)
{
    return lowering->model->layers[layer].learns;
}

/* The edge whose gradient comes first in backward order, of two edges of one producer; best is -1 if there is none
 * yet. */
static int earlier_gradient(const struct ghp_model *model, int best, int edge)
{
    const struct ghp_edge *e = &model->edges[edge], *b = best < 0 ? NULL : &model->edges[best];
    return b == NULL || e->to > b->to || (e->to == b->to && e->slot < b->slot) ? edge : best;
}

int ghp_lower_first_gradient(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    int best = -1;
    for (int i = 0; i < l->n_consumers; i++)
        best = earlier_gradient(model, best, l->out_edges[i]);
    return best;
}

int ghp_placement_first_gradient(const struct ghp_lowering *lowering,
                                 const struct ghp_placement *placement, int layer)
{
    const struct ghp_model *model = lowering->model;
    const struct ghp_layer *l = &model->layers[layer];
    int here = -1, later = -1, own = ghp_stage_of(lowering->staging, layer);
    if (placement->n_stages == 1) return ghp_lower_first_gradient(model, layer);
    for (int i = 0; i < l->n_consumers; i++) {
        int edge = l->out_edges[i], carrier;
        int stage = ghp_stage_of(lowering->staging, model->edges[edge].to);
        ghp_remote_activation_readers(model, lowering->staging, layer, stage, &carrier);
        if (stage == placement->stage)
            here = earlier_gradient(model, here, edge);
        else if (own == placement->stage && carrier == edge)
            later = earlier_gradient(model, later, edge);
    }
    return here >= 0 ? here : later;
}

struct ghp_layouts ghp_placement_layouts(const struct ghp_lowering *lowering,
                                         const struct ghp_placement *placement,
                                         const struct ghp_split *splits, int layer)
{
    const struct ghp_layout batch = {GHP_LAYOUT_BATCH, 1};
    int carrier, readers;
    if (ghp_stage_of(lowering->staging, layer) == placement->stage)
        return ghp_split_layouts(splits[layer]);
    readers = ghp_remote_activation_readers(lowering->model, lowering->staging, layer,
                                            placement->stage, &carrier);
    if (readers != 1) return (struct ghp_layouts){batch, batch, batch, batch};
    struct ghp_layouts reader =
        ghp_edge_layouts(lowering->model, carrier, splits[lowering->model->edges[carrier].to]);
    return (struct ghp_layouts){.x = batch, .y = reader.x, .dy = reader.dx, .dx = batch};
}

bool ghp_lower_recomputes(const struct ghp_lowering *lowering, int layer)
{
    if (lowering->staging == NULL || lowering->staging->recompute == NULL) return false;
    while (ghp_op_in_place(&lowering->model->layers[layer]) && layer > 0) {
        int from = lowering->model->layers[layer].inputs[0];
        if (ghp_stage_of(lowering->staging, from) != ghp_stage_of(lowering->staging, layer))
            return false;
        layer = from;
    }
    return lowering->staging->recompute[layer];
}

/* What works in place reads a gradient that others then write; those of a batch norm are sums that its own data
 * gradient needs. */
bool ghp_lower_defers_weights(const struct ghp_lowering *lowering, int layer)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    return ghp_staging_defers_weights(lowering->staging) &&
           ghp_layer_trains(lowering->model, layer) && !ghp_op_in_place(l) &&
           !ghp_op_has_pass(l->op, GHP_PASS_BACKWARD_STATS);
}

bool ghp_lower_overwrites_input(const struct ghp_model *model, int layer, bool changed)
{
    const struct ghp_layer *l = &model->layers[layer];
    if (!ghp_op_in_place(l) || changed) return ghp_op_in_place(l);
    const struct ghp_layer *from = &model->layers[l->inputs[0]];
    return from->n_consumers == 1 && !ghp_op_needs_output(from->op);
}

/* ---- gradients handed on ---- */

/* The layer whose passes are the last to read the gradient of a layer's output, if nobody writes into it: no other
 * gradient is added, nothing works on it in place (a bias hands it on as it is). -1: somebody does. */
static int last_reader(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    while (ghp_op_of(l->op)->hands_gradient_on && l->n_inputs == 1 && l->n_consumers == 1) {
        layer = l->inputs[0];
        l = &model->layers[layer];
    }
    return l->n_consumers == 1 && !ghp_op_of(l->op)->hands_gradient_on && !ghp_op_in_place(l)
               ? layer
               : -1;
}

/* Whether whatever writes into the gradient of `writer`'s output, which `through` reads too, comes after `reader`'s
 * passes. */
static bool writes_after(const struct ghp_model *model, int writer, int through, int reader)
{
    const struct ghp_layer *l = &model->layers[writer];
    bool after = writer < reader;
    for (int i = 0; i < l->n_consumers; i++) {
        int to = model->edges[l->out_edges[i]].to;
        after = after && (to >= through || to <= reader); /* gradients of inputs come last */
    }
    return after;
}

static int first_wanted(const struct ghp_lowering *lowering, const struct ghp_layer *l)
{
    for (int i = 0; i < l->n_inputs; i++)
        if (ghp_lower_needs_gradient(lowering, l->inputs[i])) return i;
    return -1;
}

/* The one input of an addition whose gradient is written into, among several that share it; -1: none. */
static int writer_of(const struct ghp_lowering *lowering, const struct ghp_layer *l)
{
    for (int i = 0; i < l->n_inputs; i++)
        if (ghp_lower_needs_gradient(lowering, l->inputs[i]) &&
            last_reader(lowering->model, l->inputs[i]) < 0)
            return i;
    return -1;
}

/* Whether all of an addition's inputs that only read their gradient can share it with the one that does not. */
static bool shares(const struct ghp_lowering *lowering, int layer)
{
    const struct ghp_model *model = lowering->model;
    const struct ghp_layer *l = &model->layers[layer];
    int writer = writer_of(lowering, l), stage = ghp_stage_of(lowering->staging, layer);
    for (int i = 0; i < l->n_inputs; i++) {
        int from = l->inputs[i], reader = last_reader(model, from);
        if (!ghp_lower_needs_gradient(lowering, from)) continue;
        if (ghp_stage_of(lowering->staging, from) != stage) return false;
        if (writer >= 0 && reader >= 0 &&
            (ghp_staging_defers_weights(lowering->staging) ||
             !writes_after(model, l->inputs[writer], layer, reader)))
            return false;
    }
    return true;
}

bool ghp_lower_gradient_alias(const struct ghp_lowering *lowering, int layer, int input)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    if (!ghp_lower_needs_gradient(lowering, l->inputs[input])) return false;
    if (ghp_op_in_place(l)) return true;
    if (ghp_op_of(l->op)->is_loss) return !ghp_lower_recomputes(lowering, layer);
    if (!ghp_op_of(l->op)->hands_gradient_on) return false;
    if (!shares(lowering, layer)) return input == first_wanted(lowering, l);
    return last_reader(lowering->model, l->inputs[input]) >= 0 || input == writer_of(lowering, l);
}

bool ghp_layer_has_stats_delta(const struct ghp_layer *layer)
{
    return ghp_op_of(layer->op)->has_batch_statistics &&
           (layer->norm.ghost_batch > 0 || layer->norm.local_stats);
}

bool ghp_lowering_has_stats_delta(const struct ghp_lowering *lowering,
                                  const struct ghp_layer *layer)
{
    return ghp_layer_has_stats_delta(layer) && !ghp_lowering_differs(lowering);
}

bool ghp_lowering_reduces_states(const struct ghp_lowering *lowering, const struct ghp_layer *layer)
{
    return layer->n_states > 0 &&
           (ghp_lowering_has_stats_delta(lowering, layer) || ghp_lowering_averages(lowering));
}

bool ghp_lowering_mixes(const struct ghp_lowering *lowering)
{
    const struct ghp_sync_ops *sync = ghp_lowering_sync(lowering);

    return sync->mixing != NULL && (sync->serves || lowering->problem.workers > 1);
}

int64_t ghp_labels_bytes(const struct ghp_model *model, struct ghp_split split,
                         struct ghp_problem problem)
{
    struct ghp_layout x = ghp_split_layouts(split).x;
    return ghp_layout_samples(x, problem) * ghp_layout_positions(x, ghp_model_labels(model)) *
           (int64_t)sizeof(int32_t);
}
