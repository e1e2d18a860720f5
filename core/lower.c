/* core/lower.c - emits the instructions of layers and edges in point order, slot by slot of the worker's schedule.
 *
 * Forward, per layer: in-edge layout changes, then UPDATE (of the previous step), then the layer, then sends to later
 * stages. Backward, per layer: gradients from later stages, statistics, weight gradient, reductions that became ready,
 * data gradient, then in-edge layout changes and sends to earlier stages. Receives of a slot are posted at the start of
 * the slot before, sends waited for at the end of a later slot. */
#include "core/lower_emit.h"
#include "core/precision.h"

#include <stdlib.h>
#include <string.h>

int64_t ghp_align(int64_t bytes)
{
    return (bytes + GHP_ALIGN_BYTES - 1) / GHP_ALIGN_BYTES * GHP_ALIGN_BYTES;
}

int64_t ghp_receive_bytes(int64_t bytes, struct ghp_ranks ranks)
{
    int64_t segment = bytes < GHP_COMM_SEGMENT_BYTES ? bytes : GHP_COMM_SEGMENT_BYTES;
    int64_t least = (int64_t)ranks.count * GHP_ALIGN_BYTES;
    return ghp_align(segment > least ? segment : least);
}

struct ghp_ranks ghp_ranks_subgroup(int rank, int degree)
{
    return (struct ghp_ranks){.first = rank / degree * degree, .count = degree, .stride = 1};
}

struct ghp_ranks ghp_ranks_replica(int rank, int degree, int workers)
{
    return (struct ghp_ranks){.first = rank % degree, .count = workers / degree, .stride = degree};
}

/* ---- points ---- */

/* Forward: in-edges of a layer directly before it. Edges are numbered by consumer, so both count up together. */
int ghp_point_forward_edge(const struct ghp_model *model, int edge)
{
    return edge + model->edges[edge].to;
}

int ghp_point_forward(const struct ghp_model *model, int layer)
{
    return model->layers[layer].first_edge + model->layers[layer].n_inputs + layer;
}

int ghp_point_count(const struct ghp_model *model)
{
    return 2 * (model->n_layers + model->n_edges);
}

int ghp_point_backward(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    int later_edges = model->n_edges - (l->first_edge + l->n_inputs);
    return model->n_layers + model->n_edges + (model->n_layers - 1 - layer) + later_edges;
}

int ghp_point_backward_edge(const struct ghp_model *model, int edge)
{
    return ghp_point_backward(model, model->edges[edge].to) + 1 + model->edges[edge].slot;
}

/* ---- gradients ---- */

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

int64_t ghp_param_local_elements(const struct ghp_local *local, int n_params)
{
    return n_params > 0 ? ghp_local_weight_elements(local) / n_params : 0;
}

int64_t ghp_layer_gradient_bytes(const struct ghp_lowering *how, int layer, struct ghp_split split)
{
    const struct ghp_layer *l = &how->model->layers[layer];
    struct ghp_local local = ghp_local_of(how->model, layer, split, how->extent);
    int64_t drifts = ghp_layer_drifts(l) ? l->n_states : 0;
    int bytes = ghp_parameter_bytes(how->element_bytes);
    return l->n_params * ghp_align(ghp_param_local_elements(&local, l->n_params) * bytes) +
           drifts * ghp_align(local.c * bytes);
}

bool ghp_layer_drifts(const struct ghp_layer *layer)
{
    return layer->op == GHP_OP_BATCH_NORM && layer->norm.ghost > 0;
}

int ghp_layer_reduce_degree(const struct ghp_layer *layer, struct ghp_split split)
{
    if (layer->n_params == 0 ||
        (layer->op == GHP_OP_BATCH_NORM && !layer->norm.local_stats && layer->norm.ghost == 0))
        return 0;
    return split.degree;
}

/* ---- buckets ---- */

void ghp_bucket_plan_release(struct ghp_bucket_plan *plan)
{
    free(plan->of_layer);
    free(plan->ranges);
    memset(plan, 0, sizeof *plan);
}

enum ghp_status ghp_bucket_plan_init(const struct ghp_lowering *how, const struct ghp_seat *seat,
                                     const struct ghp_split *splits, struct ghp_bucket_plan *plan)
{
    int n_layers = how->model->n_layers;
    *plan = (struct ghp_bucket_plan){0};
    plan->of_layer = ghp_alloc((size_t)n_layers, sizeof *plan->of_layer);
    plan->ranges = ghp_alloc((size_t)n_layers, sizeof *plan->ranges);
    if (plan->of_layer == NULL || plan->ranges == NULL) {
        ghp_bucket_plan_release(plan);
        return GHP_NO_MEMORY();
    }
    for (int layer = n_layers - 1; layer >= 0; layer--) {
        const struct ghp_layer *l = &how->model->layers[layer];
        plan->of_layer[layer] = -1;
        if (l->n_params == 0 || layer < seat->first_layer || layer >= seat->end_layer) continue;
        int degree = ghp_layer_reduce_degree(l, splits[layer]);
        int64_t bytes = ghp_layer_gradient_bytes(how, layer, splits[layer]);
        int open = plan->n;
        for (int b = 0; b < plan->n; b++)
            if (plan->ranges[b].degree == degree && degree > 0 &&
                plan->ranges[b].bytes < how->bucket_bytes)
                open = b;
        if (open == plan->n) plan->ranges[plan->n++].degree = degree;
        plan->ranges[open].bytes += bytes;
        plan->ranges[open].ready_layer = layer;
        plan->of_layer[layer] = open;
    }
    return GHP_OK;
}

/* ---- instructions ---- */

struct ghp_instr *ghp_emit(struct ghp_program *program, enum ghp_instr_kind kind, int point,
                           int rank)
{
    if (program->n_instrs == program->max_instrs) {
        int max = program->max_instrs > 0 ? 2 * program->max_instrs : 64;
        struct ghp_instr *grown = realloc(program->instrs, (size_t)max * sizeof *grown);
        if (grown == NULL) return NULL;
        program->instrs = grown;
        program->max_instrs = max;
    }
    struct ghp_instr *instr = &program->instrs[program->n_instrs++];
    *instr = (struct ghp_instr){.kind = kind,
                                .point = point,
                                .layer = -1,
                                .edge = -1,
                                .bucket = -1,
                                .wait = -1,
                                .after = -1};
    instr->ranks = (struct ghp_ranks){.first = rank, .count = 1, .stride = 1};
    memset(&instr->at, 0xff, sizeof instr->at); /* every operand -1 */
    return instr;
}

struct emitter {
    const struct ghp_lowering *how;
    const struct ghp_split *splits;        /* NULL: a piece */
    const struct ghp_bucket_plan *buckets; /* NULL: a piece, whose bucket is its own layer */
    struct ghp_program *program;
    int rank;
    struct ghp_seat seat;
    int half;                        /* points of a slot */
    int forward_base, backward_base; /* points before the slot's */
    int micro;
    bool first, last; /* micro-batch of the step */
    bool *remade;     /* a layer: made again in this slot; NULL: no layer ever is */
    int again_at;     /* point of what is made again, -1: nothing is now */
};

static struct emitter piece_emitter(const struct ghp_lowering *how, int rank,
                                    struct ghp_program *piece)
{
    int half = how->model->n_layers + how->model->n_edges;
    return (struct emitter){.how = how,
                            .program = piece,
                            .rank = rank,
                            .seat =
                                ghp_seat_of(how->staging, how->model->n_layers, how->extent, rank),
                            .half = half,
                            .backward_base = half,
                            .first = true,
                            .last = true,
                            .again_at = -1};
}

static int point_of(const struct emitter *e, int layer, bool backward)
{
    const struct ghp_model *model = e->how->model;
    if (e->again_at >= 0) return e->again_at;
    return backward ? e->backward_base + ghp_point_backward(model, layer) - e->half
                    : e->forward_base + ghp_point_forward(model, layer);
}

static int point_of_edge(const struct emitter *e, int edge, bool backward)
{
    const struct ghp_model *model = e->how->model;
    if (e->again_at >= 0) return e->again_at;
    return backward ? e->backward_base + ghp_point_backward_edge(model, edge) - e->half
                    : e->forward_base + ghp_point_forward_edge(model, edge);
}

static struct ghp_instr *emit(const struct emitter *e, enum ghp_instr_kind kind, int point)
{
    struct ghp_instr *instr = ghp_emit(e->program, kind, point, e->rank);
    if (instr == NULL) return NULL;
    instr->micro = e->micro;
    instr->again = e->again_at >= 0;
    return instr;
}

/* The holders of this worker's shard, over `degree`. */
static struct ghp_ranks holders(const struct emitter *e, int degree)
{
    return ghp_seat_ranks(&e->seat,
                          ghp_ranks_replica(e->seat.number, degree, e->seat.extent.workers));
}

static enum ghp_status emit_compute(const struct emitter *e, int layer,
                                    const struct ghp_local *local, enum ghp_pass pass)
{
    bool backward = pass == GHP_PASS_BACKWARD_DATA || pass == GHP_PASS_BACKWARD_WEIGHT ||
                    pass == GHP_PASS_BACKWARD_STATS;
    struct ghp_instr *instr = emit(e, GHP_INSTR_COMPUTE, point_of(e, layer, backward));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = backward;
    instr->pass = pass;
    instr->local = *local;
    if (local->op == GHP_OP_BATCH_NORM) {
        int64_t samples = local->norm.local_stats ? local->n
                          : local->norm.ghost > 0 ? local->norm.ghost
                                                  : e->seat.micro_batch;
        instr->stat_count = samples * local->h * local->w;
    }
    return GHP_OK;
}

/* Who shares the statistics: all that hold other samples; or those that hold the same ghost batch. */
static struct ghp_ranks stat_ranks(const struct emitter *e, const struct ghp_local *local,
                                   int degree)
{
    int number = e->seat.number, q = 1;
    if (local->norm.local_stats) return holders(e, e->seat.extent.workers);
    if (local->norm.ghost == 0) return holders(e, degree);
    if (local->n < local->norm.ghost) q = (int)(local->norm.ghost / local->n);
    return ghp_seat_ranks(
        &e->seat, (struct ghp_ranks){.first = number / degree / q * q * degree + number % degree,
                                     .count = q,
                                     .stride = degree});
}

/* The sum of a batch_norm pass's statistics over the ranks that share them. */
static enum ghp_status emit_stat_reduce(const struct emitter *e, int layer, struct ghp_split split,
                                        bool backward)
{
    struct ghp_local local = ghp_local_of(e->how->model, layer, split, e->seat.extent);
    struct ghp_ranks ranks = stat_ranks(e, &local, split.degree);
    if (local.norm.local_stats || ranks.count == 1) return GHP_OK;
    struct ghp_instr *instr = emit(e, GHP_INSTR_STAT_REDUCE, point_of(e, layer, backward));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = backward;
    instr->local = local;
    instr->comm = GHP_COMM_ALL_REDUCE;
    instr->ranks = ranks;
    instr->bytes = 2 * local.c * (int64_t)sizeof(double);
    return GHP_OK;
}

static enum ghp_status emit_stats(const struct emitter *e, int layer, struct ghp_split split,
                                  bool backward)
{
    struct ghp_local local = ghp_local_of(e->how->model, layer, split, e->seat.extent);
    return emit_compute(e, layer, &local, backward ? GHP_PASS_BACKWARD_STATS : GHP_PASS_STATS);
}

static enum ghp_status emit_load(const struct emitter *e, struct ghp_split split,
                                 const struct ghp_local *local)
{
    struct ghp_instr *instr = emit(e, GHP_INSTR_LOAD, point_of(e, 0, false));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = 0;
    instr->local = *local;
    int64_t samples = ghp_layout_samples(ghp_split_layouts(split).y, e->seat.extent);
    int64_t labels = e->seat.n_stages == 1 ? samples * (int64_t)sizeof(int32_t) : 0;
    instr->bytes = ghp_local_out_elements(local) * e->how->element_bytes + labels;
    return GHP_OK;
}

/* The labels alone, in a last stage that does not load the samples. */
static enum ghp_status emit_load_labels(const struct emitter *e)
{
    int loss = e->how->model->n_layers - 1;
    struct ghp_instr *instr = emit(e, GHP_INSTR_LOAD, e->forward_base);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = loss;
    instr->bytes = ghp_layout_samples(ghp_split_layouts(e->splits[loss]).x, e->seat.extent) *
                   (int64_t)sizeof(int32_t);
    return GHP_OK;
}

static enum ghp_status check_split(const struct emitter *e, int layer, struct ghp_split split)
{
    const struct ghp_layer *l = &e->how->model->layers[layer];
    GHP_TRY(ghp_split_check(l, split, e->seat.extent));
    if (ghp_stage_takes_degree(e->how->staging, e->seat.stage, e->how->extent, split.degree))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' is split over %d workers of stage %d, whose shares differ among "
                    "them; use a degree that divides the stage's grain",
                    l->name, split.degree, e->seat.stage);
}

static enum ghp_status emit_layer_forward(const struct emitter *e, int layer,
                                          struct ghp_split split)
{
    const struct ghp_layer *l = &e->how->model->layers[layer];
    GHP_TRY(check_split(e, layer, split));
    struct ghp_local local = ghp_local_of(e->how->model, layer, split, e->seat.extent);
    if (l->op == GHP_OP_INPUT) return emit_load(e, split, &local);
    if (l->n_params > 0 && !e->how->forward_only && e->first && e->again_at < 0) {
        struct ghp_instr *instr = emit(e, GHP_INSTR_UPDATE, point_of(e, layer, false));
        if (instr == NULL) return GHP_NO_MEMORY();
        instr->layer = layer;
        instr->local = local;
        instr->bytes =
            2 * ghp_local_weight_elements(&local) * ghp_parameter_bytes(e->how->element_bytes);
    }
    if (l->op == GHP_OP_BATCH_NORM && !e->how->forward_only) {
        GHP_TRY(emit_stats(e, layer, split, false));
        GHP_TRY(emit_stat_reduce(e, layer, split, false));
    }
    return emit_compute(e, layer, &local, GHP_PASS_FORWARD);
}

static enum ghp_status emit_reduction(const struct emitter *e, int layer,
                                      struct ghp_bucket_range range, int bucket)
{
    struct ghp_ranks ranks = holders(e, range.degree > 0 ? range.degree : 1);
    if (range.degree == 0 || ranks.count == 1) return GHP_OK;
    struct ghp_instr *instr = emit(e, GHP_INSTR_ALL_REDUCE, point_of(e, layer, true));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->stream = GHP_STREAM_COMM;
    instr->layer = layer;
    instr->backward = true;
    instr->bucket = bucket;
    instr->comm = GHP_COMM_ALL_REDUCE;
    instr->ranks = ranks;
    instr->bytes = range.bytes;
    return GHP_OK;
}

/* Reductions whose last gradient this layer made. */
static enum ghp_status emit_reductions(const struct emitter *e, int layer, struct ghp_split split)
{
    if (!e->last) return GHP_OK;
    if (e->buckets == NULL) {
        struct ghp_bucket_range own = {
            .degree = ghp_layer_reduce_degree(&e->how->model->layers[layer], split),
            .bytes = ghp_layer_gradient_bytes(e->how, layer, split)};
        return emit_reduction(e, layer, own, -1);
    }
    for (int b = 0; b < e->buckets->n; b++)
        if (e->buckets->ranges[b].ready_layer == layer)
            GHP_TRY(emit_reduction(e, layer, e->buckets->ranges[b], b));
    return GHP_OK;
}

/* A further micro-batch's weight gradient is added to the sum. */
static enum ghp_status emit_sum(const struct emitter *e, int layer, const struct ghp_local *local)
{
    bool single = ghp_staging_micro_batches(e->how->staging) == 1;
    if (single || (e->splits != NULL && e->first)) return GHP_OK;
    struct ghp_instr *instr = emit(e, GHP_INSTR_ACCUMULATE, point_of(e, layer, true));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = true;
    instr->local = *local;
    instr->bytes = ghp_local_weight_elements(local) * e->how->element_bytes;
    return GHP_OK;
}

/* How many in-edges want this layer's data gradient. */
static int wanted_gradients(const struct ghp_lowering *how, int layer)
{
    const struct ghp_layer *l = &how->model->layers[layer];
    int wanted = 0;
    for (int i = 0; i < l->n_inputs; i++)
        wanted += ghp_lower_needs_gradient(how, l->inputs[i]);
    return wanted;
}

static enum ghp_status emit_layer_backward(const struct emitter *e, int layer,
                                           struct ghp_split split)
{
    const struct ghp_layer *l = &e->how->model->layers[layer];
    if (l->op == GHP_OP_INPUT || !ghp_lower_needs_gradient(e->how, layer)) return GHP_OK;
    struct ghp_local local = ghp_local_of(e->how->model, layer, split, e->seat.extent);
    bool own_sums = ghp_layer_drifts(l); /* its weight gradients are of its own samples */
    if (l->op == GHP_OP_BATCH_NORM) GHP_TRY(emit_stats(e, layer, split, true));
    if (l->op == GHP_OP_BATCH_NORM && !own_sums) GHP_TRY(emit_stat_reduce(e, layer, split, true));
    if (ghp_local_has_pass(&local, GHP_PASS_BACKWARD_WEIGHT)) {
        GHP_TRY(emit_compute(e, layer, &local, GHP_PASS_BACKWARD_WEIGHT));
        GHP_TRY(emit_sum(e, layer, &local));
        GHP_TRY(emit_reductions(e, layer, split));
    }
    if (own_sums) GHP_TRY(emit_stat_reduce(e, layer, split, true));
    int wanted = wanted_gradients(e->how, layer);
    bool copies =
        l->op != GHP_OP_ADD ||
        wanted > 1; /* an addition hands its gradient on; only further inputs are copies */
    if (wanted > 0 && copies && ghp_local_has_pass(&local, GHP_PASS_BACKWARD_DATA))
        return emit_compute(e, layer, &local, GHP_PASS_BACKWARD_DATA);
    return GHP_OK;
}

/* ---- layout changes ---- */

/* Bytes exchanged and copied by one step; docs/time-model.md has the table. */
static void size_step(const struct emitter *e, struct ghp_shape shape, struct ghp_instr *instr)
{
    const struct ghp_reshard_step *step = &instr->step;
    struct ghp_layout widest = {GHP_LAYOUT_FULL, step->degree};
    int64_t samples = ghp_layout_samples(widest, e->seat.extent);
    int64_t whole = samples * ghp_shape_elements(shape) * e->how->element_bytes;
    int64_t part = whole / step->degree;
    instr->local = (struct ghp_local){.n = samples, .c = shape.c, .h = shape.h, .w = shape.w};
    switch (step->op) {
    case GHP_RESHARD_SLICE_BATCH: instr->copy_bytes = part * step->to.degree; break;
    case GHP_RESHARD_SLICE_CHANNEL: instr->copy_bytes = part; break;
    case GHP_RESHARD_GATHER_BATCH:
    case GHP_RESHARD_SUM_TO_BATCH: instr->bytes = whole; break;
    case GHP_RESHARD_GATHER_CHANNEL:
    case GHP_RESHARD_SUM_TO_CHANNEL:
    case GHP_RESHARD_SUM_TO_FULL:
        instr->bytes = whole;
        instr->copy_bytes = whole;
        break;
    case GHP_RESHARD_BATCH_TO_CHANNEL:
    case GHP_RESHARD_CHANNEL_TO_BATCH:
        instr->bytes = part;
        instr->copy_bytes = part;
        break;
    case GHP_RESHARD_OP_COUNT: break;
    }
}

static enum ghp_status emit_reshard(const struct emitter *e, int edge, struct ghp_layout from,
                                    struct ghp_layout to, bool backward)
{
    const struct ghp_model *model = e->how->model;
    struct ghp_reshard reshard;
    if (!ghp_reshard_find(from, to, &reshard))
        return GHP_FAIL(GHP_ERR_INTERNAL, "no layout change into '%s' exists; report this",
                        model->layers[model->edges[edge].to].name);
    int point = point_of_edge(e, edge, backward);
    for (int s = 0; s < reshard.n_steps; s++) {
        struct ghp_instr *instr = emit(e, GHP_INSTR_RESHARD, point);
        if (instr == NULL) return GHP_NO_MEMORY();
        instr->layer = model->edges[edge].to;
        instr->edge = edge;
        instr->backward = backward;
        instr->step = reshard.steps[s];
        instr->comm = ghp_reshard_comm(instr->step.op);
        if (instr->comm != GHP_COMM_NONE)
            instr->ranks =
                ghp_seat_ranks(&e->seat, ghp_ranks_subgroup(e->seat.number, instr->step.degree));
        size_step(e, model->layers[model->edges[edge].from].out, instr);
    }
    return GHP_OK;
}

/* `dy` of the edge's producer += this edge's gradient. */
static enum ghp_status emit_addition(const struct emitter *e, int edge, struct ghp_layout dy,
                                     int point)
{
    const struct ghp_model *model = e->how->model;
    const struct ghp_layer *l = &model->layers[model->edges[edge].from];
    struct ghp_instr *instr = emit(e, GHP_INSTR_ACCUMULATE, point);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = model->edges[edge].from;
    instr->edge = edge;
    instr->backward = true;
    instr->local = (struct ghp_local){.n = ghp_layout_samples(dy, e->seat.extent),
                                      .c = ghp_layout_channels(dy, l->out.c),
                                      .h = l->out.h,
                                      .w = l->out.w};
    instr->bytes = ghp_local_in_elements(&instr->local) * e->how->element_bytes;
    return GHP_OK;
}

/* ---- transfers ---- */

/* Whether the edge brings a tensor from another stage, for itself and all later readers in its own. */
static bool carries(const struct ghp_lowering *how, int edge, int *from_stage, int *to_stage)
{
    const struct ghp_edge *e = &how->model->edges[edge];
    int carrier;
    *from_stage = ghp_stage_of(how->staging, e->from);
    *to_stage = ghp_stage_of(how->staging, e->to);
    if (*from_stage == *to_stage) return false;
    ghp_image_readers(how->model, how->staging, e->from, *to_stage, &carrier);
    return carrier == edge;
}

/* The transfer of the edge's tensor, or gradient. `producer` and `image`: layouts on both sides. */
static struct ghp_transfer transfer_of(const struct ghp_lowering *how, int edge, bool backward,
                                       struct ghp_layouts producer, struct ghp_layouts image)
{
    int from, to;
    carries(how, edge, &from, &to);
    return (struct ghp_transfer){
        .staging = how->staging,
        .whole = how->extent,
        .n_layers = how->model->n_layers,
        .from_stage = backward ? to : from,
        .to_stage = backward ? from : to,
        .from = backward ? image.dy : producer.y,
        .to = backward ? producer.dy : image.y,
        .shape = how->model->layers[how->model->edges[edge].from].out,
        .element_bytes = how->element_bytes,
    };
}

static enum ghp_status emit_transfer(const struct emitter *e, enum ghp_instr_kind kind, int edge,
                                     const struct ghp_transfer *transfer, int point)
{
    struct ghp_instr *instr = emit(e, kind, point);
    bool sends = kind == GHP_INSTR_SEND;
    if (instr == NULL) return GHP_NO_MEMORY();
    struct ghp_traffic traffic =
        sends ? ghp_transfer_sent(transfer, e->rank) : ghp_transfer_received(transfer, e->rank);
    const struct ghp_edge *at = &e->how->model->edges[edge];
    instr->stream = GHP_STREAM_TRANSFER;
    instr->backward = transfer->from_stage > transfer->to_stage;
    instr->layer = sends == instr->backward ? at->to : at->from; /* the one of this stage */
    instr->edge = edge;
    instr->transfer = *transfer;
    instr->bytes = traffic.bytes;
    instr->copy_bytes = traffic.piece_bytes;
    return GHP_OK;
}

/* Layouts of an edge's producer in its own stage, and of its image in the consumer's. */
static void sides_of(const struct emitter *e, int edge, struct ghp_layouts *producer,
                     struct ghp_layouts *image)
{
    const struct ghp_lowering *how = e->how;
    const struct ghp_edge *at = &how->model->edges[edge];
    int stage = ghp_stage_of(how->staging, at->to);
    struct ghp_seat reader = {.stage = stage,
                              .n_stages = ghp_staging_stages(how->staging),
                              .first_layer = how->staging->stage[stage].first_layer};
    *producer = ghp_split_layouts(e->splits[at->from]);
    *image = ghp_seat_layouts(how, &reader, e->splits, at->from);
}

static enum ghp_status emit_edge_transfer(const struct emitter *e, enum ghp_instr_kind kind,
                                          int edge, bool backward, int point)
{
    struct ghp_layouts producer, image;
    sides_of(e, edge, &producer, &image);
    struct ghp_transfer transfer = transfer_of(e->how, edge, backward, producer, image);
    return emit_transfer(e, kind, edge, &transfer, point);
}

/* Until the send or receive with that index is done. */
static enum ghp_status emit_wait(const struct emitter *e, int after, int point)
{
    struct ghp_instr *instr = emit(e, GHP_INSTR_WAIT, point);
    if (instr == NULL) return GHP_NO_MEMORY();
    const struct ghp_instr *what = &e->program->instrs[after];
    instr->layer = what->layer;
    instr->edge = what->edge;
    instr->micro = what->micro;
    instr->backward = what->backward;
    instr->after = after;
    return GHP_OK;
}

static enum ghp_status emit_arrival(const struct emitter *e, int edge, bool backward, int point)
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

/* Receives of a slot, posted at `point`: forward the images of this stage, backward the gradients of what it sent. */
static enum ghp_status emit_receives(struct emitter *e, struct ghp_slot slot, int point)
{
    int micro = e->micro, n = e->how->model->n_edges, from, to;
    enum ghp_status status = GHP_OK;
    if (e->seat.n_stages == 1) return GHP_OK;
    e->micro = slot.micro;
    for (int i = 0; i < n && status == GHP_OK; i++) {
        int edge = slot.backward ? n - 1 - i : i;
        if (!carries(e->how, edge, &from, &to)) continue;
        if ((slot.backward ? from : to) != e->seat.stage) continue;
        if (slot.backward && !ghp_edge_needs_gradient(e->how->model, edge)) continue;
        status = emit_edge_transfer(e, GHP_INSTR_RECEIVE, edge, slot.backward, point);
    }
    e->micro = micro;
    return status;
}

/* Slots after which a send is waited for: to a neighbour one, past stages as many as its receiver may be behind
 * (docs/stages.md 3). */
static int patience_of(const struct ghp_instr *send)
{
    int distance = abs(send->transfer.to_stage - send->transfer.from_stage);
    return distance > 2 ? distance - 1 : 1;
}

/* Waits at the end of slot `slot` for the sends whose time it is, in the last slot for all that are left. `begins`: first
 * instruction of each slot so far, and one past the last. */
static enum ghp_status emit_send_waits(const struct emitter *e, const int *begins, int slot,
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

/* ---- edges ---- */

/* `from`: the producer's layouts as this stage sees them. */
static enum ghp_status emit_edge_backward(const struct emitter *e, int edge,
                                          struct ghp_layouts from, struct ghp_split to)
{
    const struct ghp_model *model = e->how->model;
    if (!ghp_edge_needs_gradient(model, edge)) return GHP_OK;
    GHP_TRY(emit_reshard(e, edge, ghp_split_layouts(to).dx, from.dy, true));
    if (ghp_seat_first_gradient(e->how, &e->seat, model->edges[edge].from) == edge) return GHP_OK;
    return emit_addition(e, edge, from.dy, point_of_edge(e, edge, true));
}

static enum ghp_status emit_edge_forward(const struct emitter *e, int edge, struct ghp_layouts from,
                                         struct ghp_split to)
{
    return emit_reshard(e, edge, from.y, ghp_split_layouts(to).x, false);
}

/* ---- made again ---- */

static struct ghp_layouts layouts_in(const struct emitter *e, int layer)
{
    return ghp_seat_layouts(e->how, &e->seat, e->splits, layer);
}

static bool is_image(const struct emitter *e, int layer)
{
    return layer < e->seat.first_layer;
}

static enum ghp_status remake(const struct emitter *e, int layer)
{
    const struct ghp_layer *l = &e->how->model->layers[layer];
    if (e->remade[layer]) return GHP_OK;
    e->remade[layer] = true;
    for (int i = 0; i < l->n_inputs; i++) {
        int from = l->inputs[i];
        if (!is_image(e, from) && ghp_lower_remakes(e->how, from)) GHP_TRY(remake(e, from));
        GHP_TRY(emit_edge_forward(e, l->first_edge + i, layouts_in(e, from), e->splits[layer]));
    }
    return emit_layer_forward(e, layer, e->splits[layer]);
}

/* What the backward passes of a layer read and was not kept. */
static enum ghp_status remake_for(struct emitter *e, int layer)
{
    const struct ghp_layer *l = &e->how->model->layers[layer];
    struct ghp_local local = ghp_local_of(e->how->model, layer, e->splits[layer], e->seat.extent);
    bool reads = false, own;
    enum ghp_status status = GHP_OK;
    if (e->remade == NULL || !ghp_lower_needs_gradient(e->how, layer)) return GHP_OK;
    for (int pass = 0; pass < GHP_PASS_COUNT; pass++)
        if (pass != GHP_PASS_FORWARD && pass != GHP_PASS_STATS &&
            ghp_local_has_pass(&local, (enum ghp_pass)pass))
            reads = reads || ghp_pass_reads_input(l->op, (enum ghp_pass)pass);
    own = ghp_op_needs_output(l->op) || ghp_local_saved_bytes(&local, e->how->element_bytes) > 0;
    e->again_at = e->backward_base + ghp_point_backward(e->how->model, layer) - e->half;
    if (own && ghp_lower_remakes(e->how, layer)) status = remake(e, layer);
    for (int i = 0; reads && i < l->n_inputs && status == GHP_OK; i++) {
        int from = l->inputs[i];
        if (e->remade[layer] || is_image(e, from) || !ghp_lower_remakes(e->how, from)) continue;
        status = remake(e, from);
        if (status == GHP_OK)
            status = emit_edge_forward(e, l->first_edge + i, layouts_in(e, from), e->splits[layer]);
    }
    e->again_at = -1;
    return status;
}

/* ---- pieces and the whole ---- */

enum ghp_status ghp_lower_layer(const struct ghp_lowering *how, int layer, struct ghp_split split,
                                int rank, struct ghp_program *piece)
{
    struct emitter e = piece_emitter(how, rank, piece);
    GHP_TRY(emit_layer_forward(&e, layer, split));
    return how->forward_only ? GHP_OK : emit_layer_backward(&e, layer, split);
}

/* An edge across stages: a lone reader takes the tensor as it wants it, several from `batch`. */
static enum ghp_status lower_crossing(struct emitter *e, int edge, struct ghp_split from,
                                      struct ghp_split to)
{
    const struct ghp_lowering *how = e->how;
    const struct ghp_layout batch = {GHP_LAYOUT_BATCH, 1};
    struct ghp_layouts reader = ghp_split_layouts(to), image = {batch, batch, batch, batch};
    int a, b, carrier, rank = e->rank;
    bool brings = carries(how, edge, &a, &b), back = ghp_edge_needs_gradient(how->model, edge);
    struct ghp_transfer t;
    if (ghp_image_readers(how->model, how->staging, how->model->edges[edge].from, b, &carrier) == 1)
        image = (struct ghp_layouts){.x = batch, .y = reader.x, .dy = reader.dx, .dx = batch};
    if (brings) {
        t = transfer_of(how, edge, false, ghp_split_layouts(from), image);
        e->rank = ghp_stage_representative(how->staging, a, how->extent);
        GHP_TRY(emit_transfer(e, GHP_INSTR_SEND, edge, &t, point_of_edge(e, edge, false)));
        e->rank = rank;
    }
    GHP_TRY(emit_edge_forward(e, edge, image, to));
    if (how->forward_only || !back) return GHP_OK;
    GHP_TRY(emit_edge_backward(e, edge, image, to));
    if (!brings) return GHP_OK;
    t = transfer_of(how, edge, true, ghp_split_layouts(from), image);
    return emit_transfer(e, GHP_INSTR_SEND, edge, &t, point_of_edge(e, edge, true));
}

enum ghp_status ghp_lower_edge(const struct ghp_lowering *how, int edge, struct ghp_split from,
                               struct ghp_split to, int rank, struct ghp_program *piece)
{
    struct emitter e = piece_emitter(how, rank, piece);
    if (how->model->edges[edge].from < e.seat.first_layer)
        return lower_crossing(&e, edge, from, to);
    GHP_TRY(emit_edge_forward(&e, edge, ghp_split_layouts(from), to));
    return how->forward_only ? GHP_OK : emit_edge_backward(&e, edge, ghp_split_layouts(from), to);
}

/* All workers take part where there are stages: those without the loss add nothing. */
static enum ghp_status emit_metrics(const struct emitter *e, struct ghp_split split)
{
    struct ghp_ranks ranks = holders(e, split.degree);
    if (e->seat.n_stages > 1)
        ranks = (struct ghp_ranks){.count = e->how->extent.workers, .stride = 1};
    if (e->how->no_metrics || ranks.count == 1) return GHP_OK;
    struct ghp_instr *instr = emit(e, GHP_INSTR_METRIC_REDUCE, e->program->n_points - 1);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->stream = GHP_STREAM_COMM;
    instr->comm = GHP_COMM_ALL_REDUCE;
    instr->ranks = ranks;
    instr->bytes = GHP_METRIC_COUNT * (int64_t)sizeof(double);
    return GHP_OK;
}

/* Sends of a layer's output to the later stages that read it, or waits for (and adds) their gradients. */
static enum ghp_status emit_exports(const struct emitter *e, int layer, bool backward)
{
    const struct ghp_layer *l = &e->how->model->layers[layer];
    int from, to;
    if (e->seat.n_stages == 1 || (backward && !l->learns)) return GHP_OK;
    for (int i = 0; i < l->n_consumers; i++) {
        int edge = l->out_edges[backward ? l->n_consumers - 1 - i : i];
        if (!carries(e->how, edge, &from, &to)) continue;
        if (!backward) {
            GHP_TRY(emit_edge_transfer(e, GHP_INSTR_SEND, edge, false, point_of(e, layer, false)));
            continue;
        }
        GHP_TRY(emit_arrival(e, edge, true, point_of(e, layer, true)));
        if (ghp_seat_first_gradient(e->how, &e->seat, layer) == edge) continue;
        GHP_TRY(emit_addition(e, edge, ghp_split_layouts(e->splits[layer]).dy,
                              point_of(e, layer, true)));
    }
    return GHP_OK;
}

static enum ghp_status emit_forward_slot(const struct emitter *e)
{
    const struct ghp_model *model = e->how->model;
    int from, to;
    if (e->seat.n_stages > 1 && e->seat.end_layer == model->n_layers) GHP_TRY(emit_load_labels(e));
    for (int layer = e->seat.first_layer; layer < e->seat.end_layer; layer++) {
        const struct ghp_layer *l = &model->layers[layer];
        for (int i = 0; i < l->n_inputs; i++) {
            int edge = l->first_edge + i;
            if (carries(e->how, edge, &from, &to))
                GHP_TRY(emit_arrival(e, edge, false, point_of_edge(e, edge, false)));
            GHP_TRY(emit_edge_forward(e, edge, layouts_in(e, l->inputs[i]), e->splits[layer]));
        }
        GHP_TRY(emit_layer_forward(e, layer, e->splits[layer]));
        GHP_TRY(emit_exports(e, layer, false));
    }
    return GHP_OK;
}

static enum ghp_status emit_backward_slot(struct emitter *e)
{
    const struct ghp_model *model = e->how->model;
    int from, to;
    if (e->remade != NULL) memset(e->remade, 0, (size_t)model->n_layers * sizeof *e->remade);
    for (int layer = e->seat.end_layer - 1; layer >= e->seat.first_layer; layer--) {
        const struct ghp_layer *l = &model->layers[layer];
        GHP_TRY(emit_exports(e, layer, true));
        GHP_TRY(remake_for(e, layer));
        GHP_TRY(emit_layer_backward(e, layer, e->splits[layer]));
        for (int i = 0; i < l->n_inputs; i++) {
            int edge = l->first_edge + i;
            GHP_TRY(emit_edge_backward(e, edge, layouts_in(e, l->inputs[i]), e->splits[layer]));
            if (!carries(e->how, edge, &from, &to) || !ghp_edge_needs_gradient(model, edge))
                continue;
            GHP_TRY(
                emit_edge_transfer(e, GHP_INSTR_SEND, edge, true, point_of_edge(e, edge, true)));
        }
    }
    return GHP_OK;
}

static enum ghp_status emit_all(struct emitter *e)
{
    struct ghp_slot slots[2 * GHP_MAX_MICRO_BATCHES];
    int begins[2 * GHP_MAX_MICRO_BATCHES + 1];
    int n = ghp_stage_slots(e->how->staging, e->seat.stage, e->how->forward_only, slots);
    int u = ghp_staging_micro_batches(e->how->staging);
    for (int s = 0; s < n; s++) {
        int start = s * e->half;
        begins[s] = e->program->n_instrs;
        e->micro = slots[s].micro;
        e->first = e->micro == 0;
        e->last = e->micro == u - 1;
        e->forward_base = e->backward_base = start;
        if (s == 0) GHP_TRY(emit_receives(e, slots[0], start));
        if (s + 1 < n) GHP_TRY(emit_receives(e, slots[s + 1], start));
        GHP_TRY(slots[s].backward ? emit_backward_slot(e) : emit_forward_slot(e));
        begins[s + 1] = e->program->n_instrs;
        GHP_TRY(emit_send_waits(e, begins, s, s + 1 == n, start + e->half - 1));
    }
    e->micro = u - 1;
    return emit_metrics(e, e->splits[e->how->model->n_layers - 1]);
}

/* Where layers are made again, places in the list tell lifetimes apart that points cannot. */
static void renumber_points(struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        program->instrs[i].point = i;
    program->n_points = program->n_instrs;
}

static enum ghp_status lower_with(struct emitter *e, struct ghp_bucket_plan *buckets)
{
    const struct ghp_lowering *how = e->how;
    bool remakes = how->staging != NULL && how->staging->recompute != NULL && !how->forward_only;
    GHP_TRY(ghp_extent_check(e->seat.extent));
    GHP_TRY(ghp_bucket_plan_init(how, &e->seat, e->splits, buckets));
    if (remakes) {
        e->remade = ghp_alloc((size_t)how->model->n_layers, sizeof *e->remade);
        if (e->remade == NULL) return GHP_NO_MEMORY();
    }
    GHP_TRY(emit_all(e));
    if (remakes) renumber_points(e->program);
    GHP_TRY(ghp_link(how, e->splits, buckets, e->program));
    return ghp_program_place(e->program);
}

enum ghp_status ghp_lower(const struct ghp_lowering *how, const struct ghp_split *splits, int rank,
                          struct ghp_program *program)
{
    struct ghp_bucket_plan buckets = {0};
    struct emitter e;
    enum ghp_status status = GHP_OK;

    *program = (struct ghp_program){0};
    if (ghp_staging_trivial(how->staging)) status = ghp_extent_check(how->extent);
    if (status == GHP_OK) status = ghp_staging_check(how->staging, how->model, how->extent);
    if (status != GHP_OK) return status;
    e = piece_emitter(how, rank, program);
    e.splits = splits;
    e.buckets = &buckets;
    *program = (struct ghp_program){.rank = rank,
                                    .extent = how->extent,
                                    .seat = e.seat,
                                    .element_bytes = how->element_bytes,
                                    .n_points = ghp_staging_micro_batches(how->staging) *
                                                ghp_point_count(how->model)};
    status = lower_with(&e, &buckets);
    free(e.remade);
    ghp_bucket_plan_release(&buckets);
    if (status != GHP_OK) ghp_program_release(program);
    return status;
}

/* ---- all stages ---- */

/* A faster worker may have more samples than the one that its stage waits for: its arena alone. */
static enum ghp_status size_fullest(const struct ghp_lowering *how, const struct ghp_split *splits,
                                    int stage, struct ghp_programs *programs)
{
    const struct ghp_staging *s = how->staging;
    int rank = ghp_stage_fullest(s, stage, how->extent);
    struct ghp_program fullest = {0};

    if (s == NULL || s->shares == NULL || s->speeds == NULL ||
        s->shares[rank] == s->shares[programs->of[stage].rank])
        return GHP_OK;
    GHP_TRY(ghp_lower(how, splits, rank, &fullest));
    if (fullest.peak_bytes > programs->fullest_bytes) programs->fullest_bytes = fullest.peak_bytes;
    ghp_program_release(&fullest);
    return GHP_OK;
}

enum ghp_status ghp_lower_all(const struct ghp_lowering *how, const struct ghp_split *splits,
                              struct ghp_programs *programs)
{
    int n = ghp_staging_stages(how->staging);
    enum ghp_status status = GHP_OK;

    programs->n = 0;
    programs->fullest_bytes = 0;
    if (!ghp_staging_trivial(how->staging))
        GHP_TRY(ghp_staging_check(how->staging, how->model, how->extent));
    for (int i = 0; i < n && status == GHP_OK; i++) {
        int rank = ghp_stage_representative(how->staging, i, how->extent);

        status = ghp_lower(how, splits, rank, &programs->of[i]);
        if (status == GHP_OK) programs->n = i + 1;
        if (status == GHP_OK) status = size_fullest(how, splits, i, programs);
    }
    if (status != GHP_OK) ghp_programs_release(programs);
    return status;
}

void ghp_programs_release(struct ghp_programs *programs)
{
    if (programs == NULL) return;
    for (int i = 0; i < programs->n; i++)
        ghp_program_release(&programs->of[i]);
    programs->n = 0;
}

int64_t ghp_programs_peak_bytes(const struct ghp_programs *programs)
{
    int64_t most = programs->fullest_bytes;

    for (int i = 0; i < programs->n; i++)
        if (programs->of[i].peak_bytes > most) most = programs->of[i].peak_bytes;
    return most;
}

int64_t ghp_programs_sent_bytes(const struct ghp_programs *programs)
{
    int64_t most = 0, sent;

    for (int i = 0; i < programs->n; i++) {
        sent = ghp_program_sent_bytes(&programs->of[i]);
        if (sent > most) most = sent;
    }
    return most;
}
