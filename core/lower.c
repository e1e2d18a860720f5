/* core/lower.c - emits the instructions of layers and edges in point order.
 *
 * Forward, per layer: in-edge layout changes, then UPDATE (of the previous step), then the layer. Backward, per layer:
 * statistics, weight gradient, reductions that became ready, data gradient, then in-edge layout changes. */
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
    return l->n_params *
           ghp_align(ghp_param_local_elements(&local, l->n_params) *
                     ghp_parameter_bytes(how->element_bytes));
}

int ghp_layer_reduce_degree(const struct ghp_layer *layer, struct ghp_split split)
{
    if (layer->n_params == 0 || (layer->op == GHP_OP_BATCH_NORM && !layer->norm.local_stats))
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

enum ghp_status ghp_bucket_plan_init(const struct ghp_lowering *how, const struct ghp_split *splits,
                                     struct ghp_bucket_plan *plan)
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
        if (l->n_params == 0) continue;
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
    *instr = (struct ghp_instr){
        .kind = kind, .point = point, .layer = -1, .edge = -1, .bucket = -1, .wait = -1};
    instr->ranks = (struct ghp_ranks){.first = rank, .count = 1, .stride = 1};
    memset(&instr->at, 0xff, sizeof instr->at); /* every operand -1 */
    return instr;
}

struct emitter {
    const struct ghp_lowering *how;
    const struct ghp_bucket_plan *buckets; /* NULL: a piece, whose bucket is its own layer */
    struct ghp_program *program;
    int rank;
};

static enum ghp_status emit_compute(const struct emitter *e, int layer,
                                    const struct ghp_local *local, enum ghp_pass pass)
{
    bool backward = pass == GHP_PASS_BACKWARD_DATA || pass == GHP_PASS_BACKWARD_WEIGHT ||
                    pass == GHP_PASS_BACKWARD_STATS;
    const struct ghp_model *model = e->how->model;
    int point = backward ? ghp_point_backward(model, layer) : ghp_point_forward(model, layer);
    struct ghp_instr *instr = ghp_emit(e->program, GHP_INSTR_COMPUTE, point, e->rank);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = backward;
    instr->pass = pass;
    instr->local = *local;
    if (local->op == GHP_OP_BATCH_NORM) {
        int64_t samples = local->norm.local_stats ? local->n : e->how->extent.global_batch;
        instr->stat_count = samples * local->h * local->w;
    }
    return GHP_OK;
}

/* Statistics of a batch_norm pass and their sum over the ranks that hold other samples. */
static enum ghp_status emit_stats(const struct emitter *e, int layer, struct ghp_split split,
                                  bool backward)
{
    struct ghp_local local = ghp_local_of(e->how->model, layer, split, e->how->extent);
    GHP_TRY(emit_compute(e, layer, &local, backward ? GHP_PASS_BACKWARD_STATS : GHP_PASS_STATS));
    struct ghp_ranks ranks = ghp_ranks_replica(e->rank, split.degree, e->how->extent.workers);
    if (local.norm.local_stats || ranks.count == 1) return GHP_OK;
    int point = e->program->instrs[e->program->n_instrs - 1].point;
    struct ghp_instr *instr = ghp_emit(e->program, GHP_INSTR_STAT_REDUCE, point, e->rank);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = backward;
    instr->local = local;
    instr->comm = GHP_COMM_ALL_REDUCE;
    instr->ranks = ranks;
    instr->bytes = 2 * local.c * (int64_t)sizeof(double);
    return GHP_OK;
}

static enum ghp_status emit_load(const struct emitter *e, struct ghp_split split,
                                 const struct ghp_local *local)
{
    struct ghp_instr *instr =
        ghp_emit(e->program, GHP_INSTR_LOAD, ghp_point_forward(e->how->model, 0), e->rank);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = 0;
    instr->local = *local;
    int64_t samples = ghp_layout_samples(ghp_split_layouts(split).y, e->how->extent);
    instr->bytes =
        ghp_local_out_elements(local) * e->how->element_bytes + samples * (int64_t)sizeof(int32_t);
    return GHP_OK;
}

static enum ghp_status emit_layer_forward(const struct emitter *e, int layer,
                                          struct ghp_split split)
{
    const struct ghp_layer *l = &e->how->model->layers[layer];
    GHP_TRY(ghp_split_check(l, split, e->how->extent));
    struct ghp_local local = ghp_local_of(e->how->model, layer, split, e->how->extent);
    if (l->op == GHP_OP_INPUT) return emit_load(e, split, &local);
    if (l->n_params > 0 && !e->how->forward_only) {
        struct ghp_instr *instr = ghp_emit(e->program, GHP_INSTR_UPDATE,
                                           ghp_point_forward(e->how->model, layer), e->rank);
        if (instr == NULL) return GHP_NO_MEMORY();
        instr->layer = layer;
        instr->local = local;
        instr->bytes =
            2 * ghp_local_weight_elements(&local) * ghp_parameter_bytes(e->how->element_bytes);
    }
    if (l->op == GHP_OP_BATCH_NORM && !e->how->forward_only)
        GHP_TRY(emit_stats(e, layer, split, false));
    return emit_compute(e, layer, &local, GHP_PASS_FORWARD);
}

static enum ghp_status emit_reduction(const struct emitter *e, int layer,
                                      struct ghp_bucket_range range, int bucket)
{
    struct ghp_ranks ranks =
        ghp_ranks_replica(e->rank, range.degree > 0 ? range.degree : 1, e->how->extent.workers);
    if (range.degree == 0 || ranks.count == 1) return GHP_OK;
    struct ghp_instr *instr = ghp_emit(e->program, GHP_INSTR_ALL_REDUCE,
                                       ghp_point_backward(e->how->model, layer), e->rank);
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
    struct ghp_local local = ghp_local_of(e->how->model, layer, split, e->how->extent);
    if (l->op == GHP_OP_BATCH_NORM) GHP_TRY(emit_stats(e, layer, split, true));
    if (ghp_local_has_pass(&local, GHP_PASS_BACKWARD_WEIGHT)) {
        GHP_TRY(emit_compute(e, layer, &local, GHP_PASS_BACKWARD_WEIGHT));
        GHP_TRY(emit_reductions(e, layer, split));
    }
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
static void size_step(const struct ghp_lowering *how, struct ghp_shape shape,
                      struct ghp_instr *instr)
{
    const struct ghp_reshard_step *step = &instr->step;
    struct ghp_layout widest = {GHP_LAYOUT_FULL, step->degree};
    int64_t samples = ghp_layout_samples(widest, how->extent);
    int64_t whole = samples * ghp_shape_elements(shape) * how->element_bytes;
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
    int point =
        backward ? ghp_point_backward_edge(model, edge) : ghp_point_forward_edge(model, edge);
    for (int s = 0; s < reshard.n_steps; s++) {
        struct ghp_instr *instr = ghp_emit(e->program, GHP_INSTR_RESHARD, point, e->rank);
        if (instr == NULL) return GHP_NO_MEMORY();
        instr->layer = model->edges[edge].to;
        instr->edge = edge;
        instr->backward = backward;
        instr->step = reshard.steps[s];
        instr->comm = ghp_reshard_comm(instr->step.op);
        if (instr->comm != GHP_COMM_NONE)
            instr->ranks = ghp_ranks_subgroup(e->rank, instr->step.degree);
        size_step(e->how, model->layers[model->edges[edge].from].out, instr);
    }
    return GHP_OK;
}

static enum ghp_status emit_edge_backward(const struct emitter *e, int edge, struct ghp_split from,
                                          struct ghp_split to)
{
    const struct ghp_model *model = e->how->model;
    if (!ghp_edge_needs_gradient(model, edge)) return GHP_OK;
    GHP_TRY(emit_reshard(e, edge, ghp_split_layouts(to).dx, ghp_split_layouts(from).dy, true));
    if (ghp_lower_first_gradient(model, model->edges[edge].from) == edge) return GHP_OK;
    struct ghp_instr *instr =
        ghp_emit(e->program, GHP_INSTR_ACCUMULATE, ghp_point_backward_edge(model, edge), e->rank);
    if (instr == NULL) return GHP_NO_MEMORY();
    const struct ghp_layer *l = &model->layers[model->edges[edge].from];
    struct ghp_layout layout = ghp_split_layouts(from).dy;
    instr->layer = model->edges[edge].from;
    instr->edge = edge;
    instr->backward = true;
    instr->local = (struct ghp_local){.n = ghp_layout_samples(layout, e->how->extent),
                                      .c = ghp_layout_channels(layout, l->out.c),
                                      .h = l->out.h,
                                      .w = l->out.w};
    instr->bytes = ghp_local_in_elements(&instr->local) * e->how->element_bytes;
    return GHP_OK;
}

static enum ghp_status emit_edge_forward(const struct emitter *e, int edge, struct ghp_split from,
                                         struct ghp_split to)
{
    return emit_reshard(e, edge, ghp_split_layouts(from).y, ghp_split_layouts(to).x, false);
}

/* ---- pieces and the whole ---- */

enum ghp_status ghp_lower_layer(const struct ghp_lowering *how, int layer, struct ghp_split split,
                                int rank, struct ghp_program *piece)
{
    struct emitter e = {.how = how, .program = piece, .rank = rank};
    GHP_TRY(emit_layer_forward(&e, layer, split));
    return how->forward_only ? GHP_OK : emit_layer_backward(&e, layer, split);
}

enum ghp_status ghp_lower_edge(const struct ghp_lowering *how, int edge, struct ghp_split from,
                               struct ghp_split to, int rank, struct ghp_program *piece)
{
    struct emitter e = {.how = how, .program = piece, .rank = rank};
    GHP_TRY(emit_edge_forward(&e, edge, from, to));
    return how->forward_only ? GHP_OK : emit_edge_backward(&e, edge, from, to);
}

static enum ghp_status emit_metrics(const struct emitter *e, struct ghp_split split)
{
    const struct ghp_model *model = e->how->model;
    struct ghp_ranks ranks = ghp_ranks_replica(e->rank, split.degree, e->how->extent.workers);
    if (e->how->no_metrics || ranks.count == 1) return GHP_OK;
    struct ghp_instr *instr =
        ghp_emit(e->program, GHP_INSTR_METRIC_REDUCE, ghp_point_count(model) - 1, e->rank);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->stream = GHP_STREAM_COMM;
    instr->comm = GHP_COMM_ALL_REDUCE;
    instr->ranks = ranks;
    instr->bytes = GHP_METRIC_COUNT * (int64_t)sizeof(double);
    return GHP_OK;
}

static enum ghp_status emit_all(const struct emitter *e, const struct ghp_split *splits)
{
    const struct ghp_model *model = e->how->model;
    for (int layer = 0; layer < model->n_layers; layer++) {
        const struct ghp_layer *l = &model->layers[layer];
        for (int i = 0; i < l->n_inputs; i++)
            GHP_TRY(emit_edge_forward(e, l->first_edge + i, splits[l->inputs[i]], splits[layer]));
        GHP_TRY(emit_layer_forward(e, layer, splits[layer]));
    }
    for (int layer = model->n_layers - 1; layer >= 0 && !e->how->forward_only; layer--) {
        const struct ghp_layer *l = &model->layers[layer];
        GHP_TRY(emit_layer_backward(e, layer, splits[layer]));
        for (int i = 0; i < l->n_inputs; i++)
            GHP_TRY(emit_edge_backward(e, l->first_edge + i, splits[l->inputs[i]], splits[layer]));
    }
    return emit_metrics(e, splits[model->n_layers - 1]);
}

enum ghp_status ghp_lower(const struct ghp_lowering *how, const struct ghp_split *splits, int rank,
                          struct ghp_program *program)
{
    *program = (struct ghp_program){.rank = rank,
                                    .extent = how->extent,
                                    .element_bytes = how->element_bytes,
                                    .n_points = ghp_point_count(how->model)};
    enum ghp_status status = ghp_extent_check(how->extent);
    struct ghp_bucket_plan buckets = {0};
    struct emitter e = {.how = how, .buckets = &buckets, .program = program, .rank = rank};
    if (status != GHP_OK) return status;
    GHP_TRY_GOTO(status, ghp_bucket_plan_init(how, splits, &buckets), done);
    GHP_TRY_GOTO(status, emit_all(&e, splits), done);
    GHP_TRY_GOTO(status, ghp_link(how, splits, &buckets, program), done);
    GHP_TRY_GOTO(status, ghp_program_place(program), done);
done:
    ghp_bucket_plan_release(&buckets);
    if (status != GHP_OK) ghp_program_release(program);
    return status;
}
