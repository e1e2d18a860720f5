/* core/program/lower/buffer_assignment_private.c - see buffer_assignment_private.h. */
#include "core/base/array.h"
#include "core/model/precision.h"
#include "core/program/lower/buffer_assignment_private.h"
#include "core/program/lower/points.h"

#include <stdlib.h>
#include <string.h>

static int add_buffer(struct ghp_buffer_assignment *k, struct ghp_buffer buffer)
{
    struct ghp_program *program = k->program;
    struct ghp_buffer *grown = ghp_array_grow(program->buffers, program->n_buffers,
                                              &program->max_buffers, sizeof *program->buffers);
    if (grown == NULL) return -1;
    program->buffers = grown;
    int id = program->n_buffers++;
    buffer.bytes = ghp_align(buffer.bytes);
    buffer.first_point = buffer.persistent ? 0 : program->n_points;
    buffer.last_point = buffer.persistent ? program->n_points - 1 : -1;
    buffer.storage = id;
    program->buffers[id] = buffer;
    return id;
}

enum ghp_status ghp_buffer_assignment_demand(struct ghp_buffer_assignment *k, int *slot,
                                             struct ghp_buffer buffer)
{
    if (*slot < 0) *slot = add_buffer(k, buffer);
    return *slot < 0 ? GHP_NO_MEMORY() : GHP_OK;
}

/* Elements that this worker holds of a tensor, of which one sample has `shape`. */
static int64_t elements_of(const struct ghp_buffer_assignment *k, struct ghp_layout layout,
                           struct ghp_shape shape)
{
    return ghp_layout_samples(layout, k->placement.problem) *
           ghp_layout_channels(layout, ghp_shape_columns(shape)) *
           ghp_layout_positions(layout, shape.h) * shape.w;
}

static struct ghp_buffer describe(const struct ghp_buffer_assignment *k,
                                  enum ghp_buffer_kind buffer_kind, int layer, int64_t elements)
{
    return (struct ghp_buffer){.buffer_kind = buffer_kind,
                               .layer = layer,
                               .edge = -1,
                               .slot = -1,
                               .elements = elements,
                               .bytes = elements * k->lowering->element_bytes};
}

struct ghp_buffer ghp_buffer_assignment_tensor(const struct ghp_buffer_assignment *k,
                                               enum ghp_buffer_kind buffer_kind, int layer,
                                               struct ghp_layout layout)
{
    const struct ghp_shape shape = k->lowering->model->layers[layer].out;
    struct ghp_buffer buffer = describe(k, buffer_kind, layer, elements_of(k, layout, shape));
    buffer.bytes = buffer.elements * ghp_shape_element_bytes(shape, k->lowering->element_bytes);
    return buffer;
}

/* A buffer for a weight, its gradient, a moment or a statistic. */
struct ghp_buffer ghp_buffer_assignment_describe_parameter(const struct ghp_buffer_assignment *k,
                                                           enum ghp_buffer_kind buffer_kind,
                                                           int layer, int64_t elements)
{
    struct ghp_buffer buffer = describe(k, buffer_kind, layer, elements);
    buffer.bytes = elements * ghp_parameter_bytes(k->lowering->element_bytes);
    return buffer;
}

struct ghp_buffer ghp_describe_bytes(enum ghp_buffer_kind buffer_kind, int layer, int64_t bytes)
{
    return (struct ghp_buffer){.buffer_kind = buffer_kind,
                               .layer = layer,
                               .edge = -1,
                               .slot = -1,
                               .elements = bytes,
                               .bytes = bytes};
}

static struct ghp_local local_of(const struct ghp_buffer_assignment *k, int layer)
{
    return ghp_local_of(k->lowering->model, layer, k->splits[layer], k->placement.problem);
}

static bool owns(const struct ghp_buffer_assignment *k, int layer)
{
    return ghp_placement_owns(&k->placement, layer);
}

/* ---- where tensors are ---- */

/* As recomputed if it is, else as made first. */
static int latest(const int *first, const int *second, int index)
{
    return second[index] >= 0 ? second[index] : first[index];
}

int ghp_buffer_assignment_output(const struct ghp_buffer_assignment *k, int layer)
{
    return latest(k->now->y, k->now->recompute_y, layer);
}

int ghp_buffer_assignment_input(const struct ghp_buffer_assignment *k, int edge)
{
    return k->x_changed[edge]
               ? latest(k->now->x, k->now->recompute_x, edge)
               : ghp_buffer_assignment_output(k, k->lowering->model->edges[edge].from);
}

int ghp_buffer_assignment_edge_gradient(const struct ghp_buffer_assignment *k, int edge)
{
    return k->dx_changed[edge] ? k->now->dxr[edge] : k->now->dx[edge];
}

int ghp_buffer_assignment_output_gradient(const struct ghp_buffer_assignment *k, int layer)
{
    int first = ghp_placement_first_gradient(k->lowering, &k->placement, layer);
    return first < 0 ? -1 : ghp_buffer_assignment_edge_gradient(k, first);
}

enum ghp_status ghp_buffer_assignment_make_output(struct ghp_buffer_assignment *k, int layer)
{
    const struct ghp_layer *l = &k->lowering->model->layers[layer];
    int *slot = k->recompute ? &k->now->recompute_y[layer] : &k->now->y[layer];
    bool changed = l->n_inputs > 0 && k->x_changed[l->first_edge];
    if (*slot < 0 && ghp_lower_overwrites_input(k->lowering->model, layer, changed))
        *slot = ghp_buffer_assignment_input(k, l->first_edge);
    return ghp_buffer_assignment_demand(
        k, slot,
        ghp_buffer_assignment_tensor(k, GHP_BUFFER_OUTPUT, layer,
                                     ghp_split_layouts(k->splits[layer]).y));
}

/* dx of every in-edge that wants one. */
static enum ghp_status make_input_gradients(struct ghp_buffer_assignment *k, int layer)
{
    const struct ghp_model *model = k->lowering->model;
    const struct ghp_layer *l = &model->layers[layer];
    for (int i = 0; i < l->n_inputs; i++) {
        int edge = l->first_edge + i;
        if (k->now->dx[edge] >= 0 || !ghp_lower_needs_gradient(k->lowering, l->inputs[i])) continue;
        if (ghp_lower_gradient_alias(k->lowering, layer, i)) {
            k->now->dx[edge] = ghp_op_of(l->op)->is_loss
                                   ? ghp_buffer_assignment_output(k, layer)
                                   : ghp_buffer_assignment_output_gradient(k, layer);
            continue;
        }
        struct ghp_layout layout = ghp_split_layouts_at(l, i, k->splits[layer]).dx;
        struct ghp_buffer buffer =
            ghp_buffer_assignment_tensor(k, GHP_BUFFER_EDGE_GRADIENT, l->inputs[i], layout);
        buffer.edge = edge;
        GHP_TRY(ghp_buffer_assignment_demand(k, &k->now->dx[edge], buffer));
    }
    return GHP_OK;
}

enum ghp_status ghp_buffer_assignment_gradients(struct ghp_buffer_assignment *k, int layer)
{
    struct ghp_assigned_tensors *t = k->now;
    while (t->named > layer) {
        t->named--;
        if (owns(k, t->named) && ghp_lower_needs_gradient(k->lowering, t->named))
            GHP_TRY(make_input_gradients(k, t->named));
    }
    return GHP_OK;
}

/* ---- persistent buffers ---- */

static enum ghp_status demand_persistent(struct ghp_buffer_assignment *k, int *slot,
                                         struct ghp_buffer buffer, int index)
{
    buffer.persistent = true;
    buffer.slot = index;
    return ghp_buffer_assignment_demand(k, slot, buffer);
}

/* The bucket that the layer's weights lie in; NULL: none. */
static const struct ghp_bucket_range *bucket_of(const struct ghp_buffer_assignment *k, int layer)
{
    int b = k->lowering->forward_only ? -1 : k->buckets->of_layer[layer];
    return b >= 0 && k->buckets->ranges[b].holds_weights ? &k->buckets->ranges[b] : NULL;
}

/* What the layer's weights are sharded by. */
static const struct ghp_bucket_range *sharded_of(const struct ghp_buffer_assignment *k, int layer)
{
    int b = k->buckets->of_layer[layer];
    return b >= 0 && ghp_sharding_gathers(k->buckets->ranges[b].sharding) ? &k->buckets->ranges[b]
                                                                          : NULL;
}

static enum ghp_status make_weight_shard(struct ghp_buffer_assignment *k, int layer,
                                         int64_t shard_bytes)
{
    struct ghp_buffer shard = ghp_describe_bytes(GHP_BUFFER_WEIGHT_SHARD, layer, shard_bytes);
    shard.elements = shard_bytes / ghp_parameter_bytes(k->lowering->element_bytes);
    return demand_persistent(k, &k->weight_shard[layer], shard, -1);
}

static enum ghp_status make_parameters(struct ghp_buffer_assignment *k, int layer)
{
    const struct ghp_layer *l = &k->lowering->model->layers[layer];
    struct ghp_local local = local_of(k, layer);
    int n_moments = k->lowering->forward_only || l->fixed ? 0 : k->program->optimizer->n_moments;
    const struct ghp_bucket_range *bucket = bucket_of(k, layer);
    bool shard =
        bucket != NULL && !l->fixed &&
        (bucket->shard_bytes > 0 || (bucket->server_shard_bytes > 0 && !bucket->updated_here));
    bool averages = ghp_lowering_averages(k->lowering) && !k->lowering->forward_only;
    const struct ghp_bucket_range *sharded = sharded_of(k, layer);
    if (sharded != NULL) GHP_TRY(make_weight_shard(k, layer, sharded->shard_bytes));
    for (int p = 0; p < l->n_params && !shard && sharded == NULL; p++) {
        int at = layer * GHP_MAX_PARAMS + p;
        int64_t elements = ghp_local_param_elements(&local, p);
        if (bucket == NULL || l->fixed)
            GHP_TRY(demand_persistent(
                k, &k->weights[at],
                ghp_buffer_assignment_describe_parameter(k, GHP_BUFFER_WEIGHT, layer, elements),
                p));
        if (ghp_lower_has_bf16(k->lowering, layer, p))
            GHP_TRY(demand_persistent(k, &k->bf16[at],
                                      describe(k, GHP_BUFFER_BF16_WEIGHT, layer, elements), p));
        for (int m = 0; m < n_moments; m++)
            GHP_TRY(demand_persistent(
                k, &k->moments[m][at],
                ghp_buffer_assignment_describe_parameter(k, ghp_moment_kind(m), layer, elements),
                p));
    }
    for (int s = 0; s < l->n_states && !(averages && l->n_params > 0); s++)
        GHP_TRY(demand_persistent(
            k, &k->states[layer * GHP_MAX_STATES + s],
            ghp_buffer_assignment_describe_parameter(k, GHP_BUFFER_STATE, layer, local.c), s));
    return GHP_OK;
}

/* A part of a storage. */
static enum ghp_status carve_at(struct ghp_buffer_assignment *k, int *slot,
                                struct ghp_buffer buffer, int storage, int64_t offset)
{
    GHP_TRY(demand_persistent(k, slot, buffer, buffer.slot));
    k->program->buffers[*slot].storage = storage;
    k->program->buffers[*slot].storage_offset = offset;
    k->program->buffers[*slot].persistent = k->program->buffers[storage].persistent;
    return GHP_OK;
}

/* Takes a part of the layer's bucket, after what it holds so far. */
static enum ghp_status carve(struct ghp_buffer_assignment *k, int *slot, struct ghp_buffer buffer,
                             int index, int64_t *filled)
{
    int bucket = k->buckets->of_layer[buffer.layer];
    buffer.slot = index;
    GHP_TRY(carve_at(k, slot, buffer, k->program->buckets[bucket].buffer, filled[bucket]));
    filled[bucket] += k->program->buffers[*slot].bytes;
    return GHP_OK;
}

/* A layer's gradients, its weights at the same places if they have a bucket, and what moves its statistics, or
 * (if they are averaged) these. */
static enum ghp_status carve_layer(struct ghp_buffer_assignment *k, int layer, int64_t *filled)
{
    const struct ghp_layer *l = &k->lowering->model->layers[layer];
    struct ghp_local local = local_of(k, layer);
    int bucket = k->buckets->of_layer[layer];
    for (int p = 0; p < l->n_params && !l->fixed; p++) {
        int64_t elements = ghp_local_param_elements(&local, p);
        struct ghp_buffer weight =
            ghp_buffer_assignment_describe_parameter(k, GHP_BUFFER_WEIGHT, layer, elements);
        weight.slot = p;
        if (bucket_of(k, layer) != NULL)
            GHP_TRY(carve_at(k, &k->weights[layer * GHP_MAX_PARAMS + p], weight,
                             k->program->buckets[bucket].weights, filled[bucket]));
        GHP_TRY(carve(k, &k->gradients[layer * GHP_MAX_PARAMS + p],
                      ghp_buffer_assignment_describe_parameter(k, GHP_BUFFER_WEIGHT_GRADIENT, layer,
                                                               elements),
                      p, filled));
    }
    for (int s = 0; ghp_lowering_has_stats_delta(k->lowering, l) && s < l->n_states; s++)
        GHP_TRY(carve(
            k, &k->stats_deltas[layer * GHP_MAX_STATES + s],
            ghp_buffer_assignment_describe_parameter(k, GHP_BUFFER_STATS_DELTA, layer, local.c), s,
            filled));
    for (int s = 0; ghp_lowering_averages(k->lowering) && s < l->n_states; s++) {
        int *state = &k->states[layer * GHP_MAX_STATES + s];
        struct ghp_buffer buffer =
            ghp_buffer_assignment_describe_parameter(k, GHP_BUFFER_STATE, layer, local.c);
        buffer.slot = s;
        GHP_TRY(carve_at(k, state, buffer, k->program->buckets[bucket].weights, filled[bucket]));
        filled[bucket] += k->program->buffers[*state].bytes;
    }
    return GHP_OK;
}

/* Weights in a bucket of their own. */
static enum ghp_status make_weights(struct ghp_buffer_assignment *k, int b)
{
    struct ghp_bucket *bucket = &k->program->buckets[b];
    struct ghp_buffer whole = ghp_describe_bytes(GHP_BUFFER_WEIGHT_BUCKET,
                                                 k->buckets->ranges[b].ready_layer, bucket->bytes);
    whole.elements = bucket->bytes / ghp_parameter_bytes(k->lowering->element_bytes);
    return demand_persistent(k, &bucket->weights, whole, b);
}

/* This worker's optimizer shards of weights and gradients, and moments for its optimizer shard. */
static enum ghp_status make_shards(struct ghp_buffer_assignment *k, int b)
{
    struct ghp_bucket *bucket = &k->program->buckets[b];
    int layer = k->buckets->ranges[b].ready_layer;
    int64_t element_bytes = ghp_parameter_bytes(k->lowering->element_bytes);
    int64_t offset = k->placement.number / bucket->tp_size % bucket->shards * bucket->shard_bytes;
    struct ghp_buffer shard =
        ghp_describe_bytes(GHP_BUFFER_OPTIMIZER_SHARD, layer, bucket->shard_bytes);
    shard.elements = bucket->shard_bytes / element_bytes;
    bucket->shard_offset = offset;
    bucket->weight_shard = k->weight_shard[layer];
    if (bucket->weights >= 0)
        GHP_TRY(carve_at(k, &bucket->weight_shard, shard, bucket->weights, offset));
    if (bucket->sharding == GHP_SHARDING_NONE)
        GHP_TRY(carve_at(k, &bucket->gradient_shard, shard, bucket->buffer, offset));
    else
        GHP_TRY(demand_persistent(k, &bucket->gradient_shard, shard, -1));
    for (int m = 0; m < k->program->optimizer->n_moments; m++) {
        struct ghp_buffer moment = shard;
        moment.buffer_kind = ghp_moment_kind(m);
        GHP_TRY(demand_persistent(k, &bucket->moment[m], moment, -1));
    }
    return GHP_OK;
}

/* Bucket buffers, and each layer's gradients inside them in backward order. */
static enum ghp_status make_buckets(struct ghp_buffer_assignment *k)
{
    struct ghp_program *program = k->program;
    const struct ghp_model *model = k->lowering->model;
    int n = k->buckets->n;
    program->buckets = ghp_alloc((size_t)n + 1, sizeof *program->buckets);
    if (program->buckets == NULL) return GHP_NO_MEMORY();
    program->n_buckets = n;
    for (int b = 0; b < n; b++) {
        const struct ghp_bucket_range *range = &k->buckets->ranges[b];
        struct ghp_buffer buffer =
            ghp_describe_bytes(GHP_BUFFER_BUCKET, range->ready_layer, range->bytes);
        buffer.elements = range->bytes / ghp_parameter_bytes(k->lowering->element_bytes);
        int id = -1;
        buffer.slot = b;
        buffer.persistent = range->sharding == GHP_SHARDING_NONE;
        GHP_TRY(ghp_buffer_assignment_demand(k, &id, buffer));
        k->bucket_now[b] = id;
        program->buckets[b] =
            (struct ghp_bucket){.tp_size = range->tp_size,
                                .bytes = range->bytes,
                                .shard_bytes = range->shard_bytes,
                                .shards = range->shards,
                                .server_shard_bytes = range->server_shard_bytes,
                                .updated_here = range->updated_here,
                                .buffer = id,
                                .weights = -1,
                                .weight_shard = -1,
                                .gradient_shard = -1,
                                .moment = {-1, -1},
                                .sharding = range->sharding,
                                .ranks = ghp_bucket_ranks(k->lowering, &k->placement, range)};
        if (range->holds_weights) GHP_TRY(make_weights(k, b));
        if (range->shard_bytes > 0) GHP_TRY(make_shards(k, b));
    }
    int64_t *filled = ghp_alloc((size_t)n + 1, sizeof *filled);
    if (filled == NULL) return GHP_NO_MEMORY();
    enum ghp_status status = GHP_OK;
    for (int layer = model->n_layers - 1; layer >= 0 && status == GHP_OK; layer--) {
        int held = ghp_lower_changed(k->lowering, layer);
        if (held >= 0 && owns(k, layer)) status = carve_layer(k, held, filled);
    }
    free(filled);
    return status;
}

/* ---- sharded parameters ---- */

enum ghp_status ghp_buffer_assignment_carve_gathered(struct ghp_buffer_assignment *k,
                                                     const struct ghp_instr *gather)
{
    struct ghp_local local = local_of(k, gather->layer);
    int64_t offset = 0;

    for (int p = 0; p < k->lowering->model->layers[gather->layer].n_params; p++) {
        int *weight = &k->weights[gather->layer * GHP_MAX_PARAMS + p];
        struct ghp_buffer part = ghp_buffer_assignment_describe_parameter(
            k, GHP_BUFFER_WEIGHT, gather->layer, ghp_local_param_elements(&local, p));

        part.slot = p;
        *weight = -1;
        GHP_TRY(carve_at(k, weight, part, gather->at.y, offset));
        offset += k->program->buffers[*weight].bytes;
    }
    return GHP_OK;
}

/* Another buffer with the parts of a bucket. */
static enum ghp_status renew(struct ghp_buffer_assignment *k, int b)
{
    const struct ghp_bucket *bucket = &k->program->buckets[b];
    struct ghp_buffer part = k->program->buffers[bucket->gradient_shard];
    int n = k->program->n_buffers;

    k->bucket_now[b] = k->part_now[b] = -1;
    GHP_TRY(ghp_buffer_assignment_demand(
        k, &k->bucket_now[b],
        ghp_describe_bytes(GHP_BUFFER_SCRATCH, k->buckets->ranges[b].ready_layer, bucket->bytes)));
    part.buffer_kind = GHP_BUFFER_SCRATCH;
    GHP_TRY(carve_at(k, &k->part_now[b], part, k->bucket_now[b], bucket->shard_offset));
    for (int i = 0; i < n; i++) {
        struct ghp_buffer gradient = k->program->buffers[i];

        if (gradient.buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT ||
            gradient.storage != bucket->buffer)
            continue;
        gradient.buffer_kind = GHP_BUFFER_SCRATCH;
        int *now = &k->gradients[gradient.layer * GHP_MAX_PARAMS + gradient.slot];
        *now = -1;
        GHP_TRY(carve_at(k, now, gradient, k->bucket_now[b], gradient.storage_offset));
    }
    return GHP_OK;
}

enum ghp_status ghp_buffer_assignment_renew(struct ghp_buffer_assignment *k,
                                            const struct ghp_instr *instr)
{
    int b = k->buckets->of_layer[ghp_model_owner(k->lowering->model, instr->layer)];

    if (!instr->backward || k->lowering->forward_only || k->micro_now[b] == instr->micro)
        return GHP_OK;
    k->micro_now[b] = instr->micro;
    return renew(k, b);
}

/* ---- opening and closing ---- */

static void note_changes(struct ghp_buffer_assignment *k)
{
    for (int i = 0; i < k->program->n_instrs; i++) {
        const struct ghp_instr *instr = &k->program->instrs[i];
        if (instr->kind == GHP_INSTR_RESHARD)
            (instr->backward ? k->dx_changed : k->x_changed)[instr->edge] = true;
        if (instr->kind == GHP_INSTR_RECEIVE && instr->backward) k->dx_changed[instr->edge] = true;
    }
}

/* One block of ids for every table of the buffer assignment, all -1. */
static int *carve_tables(struct ghp_buffer_assignment *k, int micro_batches)
{
    size_t layers = (size_t)k->lowering->model->n_layers,
           edges = (size_t)k->lowering->model->n_edges;
    size_t shared = layers * ((3 + GHP_MAX_MOMENTS) * GHP_MAX_PARAMS + 2 * GHP_MAX_STATES + 4);
    size_t each = layers * 6 + 4 * edges, n = shared + (size_t)micro_batches * each;
    int *block = ghp_alloc(n, sizeof *block);
    if (block == NULL) return NULL;
    memset(block, 0xff, n * sizeof *block);
    int *at = block;
    k->weights = at, at += layers * GHP_MAX_PARAMS;
    k->bf16 = at, at += layers * GHP_MAX_PARAMS;
    k->gradients = at, at += layers * GHP_MAX_PARAMS;
    for (int m = 0; m < GHP_MAX_MOMENTS; m++)
        k->moments[m] = at, at += layers * GHP_MAX_PARAMS;
    k->states = at, at += layers * GHP_MAX_STATES;
    k->stats_deltas = at, at += layers * GHP_MAX_STATES;
    k->weight_shard = at, at += layers;
    k->bucket_now = at, at += layers;
    k->part_now = at, at += layers;
    k->micro_now = at, at += layers;
    for (size_t b = 0; b < layers; b++)
        k->micro_now[b] = 0;
    for (int t = 0; t < micro_batches; t++) {
        struct ghp_assigned_tensors *m = &k->micro[t];
        m->y = at, at += layers;
        m->recompute_y = at, at += layers;
        m->saved = at, at += layers;
        m->recompute_saved = at, at += layers;
        m->stats = at, at += 2 * layers;
        m->x = at, at += edges;
        m->recompute_x = at, at += edges;
        m->dx = at, at += edges;
        m->dxr = at, at += edges;
        m->labels = -1;
        m->named = ghp_placement_end(&k->placement);
    }
    return block;
}

static enum ghp_status make_squares(struct ghp_buffer_assignment *k)
{
    bool by_tensor = k->program->rates != NULL;
    int64_t n = ghp_norm_sums(k->lowering->model, k->program->rates) + by_tensor;

    if (!ghp_method_clips(&k->lowering->method) && !by_tensor) return GHP_OK;
    return demand_persistent(
        k, &k->squares, ghp_describe_bytes(GHP_BUFFER_SQUARES, -1, n * (int64_t)sizeof(double)),
        -1);
}

/* Makes the copies of all weights that a MIX needs, one after the other. */
static enum ghp_status make_copies(struct ghp_buffer_assignment *k)
{
    for (int i = 0; i < k->program->n_instrs; i++) {
        const struct ghp_instr *mix = &k->program->instrs[i];
        int copies = ghp_lowering_sync(k->lowering)->mixing != NULL
                         ? ghp_lowering_sync(k->lowering)->mixing->copies
                         : 0;

        if (mix->kind == GHP_INSTR_MIX && copies > 0)
            GHP_TRY(demand_persistent(
                k, &k->copies, ghp_describe_bytes(GHP_BUFFER_COPIES, -1, copies * mix->bytes), -1));
    }
    return GHP_OK;
}

static enum ghp_status make_shared(struct ghp_buffer_assignment *k)
{
    int64_t receive = 0, metrics = GHP_METRIC_COUNT * (int64_t)sizeof(double);
    for (int i = 0; i < k->program->n_instrs; i++) {
        const struct ghp_instr *instr = &k->program->instrs[i];
        if (instr->kind == GHP_INSTR_METRIC_REDUCE && instr->period > 1) metrics += instr->bytes;
        if (ghp_kind_of(instr)->scratch == GHP_LASTING_RECEIVE &&
            ghp_instr_receive_bytes(instr) > receive)
            receive = ghp_instr_receive_bytes(instr);
    }
    if (receive > 0)
        GHP_TRY(demand_persistent(k, &k->receive, ghp_describe_bytes(GHP_BUFFER_COMM, -1, receive),
                                  -1));
    GHP_TRY(
        demand_persistent(k, &k->metrics, ghp_describe_bytes(GHP_BUFFER_METRICS, -1, metrics), -1));
    GHP_TRY(make_copies(k));
    if (!k->lowering->forward_only) GHP_TRY(make_squares(k));
    if (k->lowering->prefetch && !k->lowering->forward_only && owns(k, 0)) {
        struct ghp_layout layout = ghp_split_layouts(k->splits[0]).y;
        GHP_TRY(demand_persistent(
            k, &k->prefetch, ghp_buffer_assignment_tensor(k, GHP_BUFFER_PREFETCH, 0, layout), -1));
    }
    for (int layer = 0; layer < k->lowering->model->n_layers; layer++) {
        if (!owns(k, layer)) continue;
        int held = ghp_lower_held(k->lowering, layer);
        GHP_TRY(make_parameters(k, held >= 0 ? held : layer));
    }
    return k->lowering->forward_only ? GHP_OK : make_buckets(k);
}

enum ghp_status ghp_buffer_assignment_open(const struct ghp_lowering *lowering,
                                           const struct ghp_split *splits,
                                           const struct ghp_bucket_plan *buckets,
                                           struct ghp_program *program,
                                           struct ghp_buffer_assignment *k)
{
    int micro_batches = ghp_staging_micro_batches(lowering->staging);
    enum ghp_status status = GHP_OK;

    *k = (struct ghp_buffer_assignment){.lowering = lowering,
                                        .splits = splits,
                                        .buckets = buckets,
                                        .program = program,
                                        .placement = program->placement,
                                        .metrics = -1,
                                        .squares = -1,
                                        .receive = -1,
                                        .copies = -1,
                                        .prefetch = -1,
                                        .gathered = -1,
                                        .between = -1,
                                        .ring = -1};
    k->micro = ghp_alloc((size_t)micro_batches, sizeof *k->micro);
    if (k->micro != NULL) k->tables = carve_tables(k, micro_batches);
    k->x_changed = ghp_alloc((size_t)lowering->model->n_edges + 1, sizeof *k->x_changed);
    k->dx_changed = ghp_alloc((size_t)lowering->model->n_edges + 1, sizeof *k->dx_changed);
    if (k->tables == NULL || k->x_changed == NULL || k->dx_changed == NULL) {
        status = GHP_NO_MEMORY();
    } else {
        note_changes(k);
        status = make_shared(k);
    }
    if (status != GHP_OK) ghp_buffer_assignment_close(k);
    return status;
}

void ghp_buffer_assignment_close(struct ghp_buffer_assignment *k)
{
    free(k->tables);
    free(k->micro);
    free(k->x_changed);
    free(k->dx_changed);
    *k = (struct ghp_buffer_assignment){0};
}
