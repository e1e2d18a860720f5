/* core/lower_link.c - gives a complete instruction list its operands, buffers, buckets, waits and lifetimes.
 *
 * Buffers are made on first use and live from the first to the last point that touches them. In-place operations do
 * not get buffers of their own: their output *is* their input's buffer, their dx is their dy. */
#include "core/lower_emit.h"
#include "core/precision.h"

#include <stdlib.h>
#include <string.h>

struct linker {
    const struct ghp_lowering *how;
    const struct ghp_split *splits;
    const struct ghp_bucket_plan *buckets;
    struct ghp_program *program;
    int *y; /* per layer: buffer of its output, -1 until made */
    int *x, *dx,
        *dxr; /* per edge: changed input, gradient as made, gradient after its layout change */
    int *weights, *gradients, *momenta; /* per layer, GHP_MAX_PARAMS each */
    int *states;                        /* per layer, GHP_MAX_STATES */
    int *saved;                         /* per layer */
    int *stats;                         /* per layer, 2: forward, backward */
    bool *x_changed, *dx_changed;       /* per edge: has a layout change */
    int labels, metrics, receive;
    int between; /* buffer between two steps of one layout change */
    int named;   /* layers from here on have names for their input gradients */
};

static int add_buffer(struct linker *k, struct ghp_buffer buffer)
{
    struct ghp_program *program = k->program;
    if (program->n_buffers == program->max_buffers) {
        int max = program->max_buffers > 0 ? 2 * program->max_buffers : 64;
        struct ghp_buffer *grown = realloc(program->buffers, (size_t)max * sizeof *grown);
        if (grown == NULL) return -1;
        program->buffers = grown;
        program->max_buffers = max;
    }
    int id = program->n_buffers++;
    buffer.bytes = ghp_align(buffer.bytes);
    buffer.first_point = buffer.persistent ? 0 : program->n_points;
    buffer.last_point = buffer.persistent ? program->n_points - 1 : -1;
    buffer.storage = id;
    program->buffers[id] = buffer;
    return id;
}

/* The buffer in *slot, made if it is not there. */
static enum ghp_status demand(struct linker *k, int *slot, struct ghp_buffer buffer)
{
    if (*slot < 0) *slot = add_buffer(k, buffer);
    return *slot < 0 ? GHP_NO_MEMORY() : GHP_OK;
}

static struct ghp_buffer describe(const struct linker *k, enum ghp_role role, int layer,
                                  int64_t elements)
{
    return (struct ghp_buffer){.role = role,
                               .layer = layer,
                               .edge = -1,
                               .slot = -1,
                               .elements = elements,
                               .bytes = elements * k->how->element_bytes};
}

/* Of a weight, its gradient, a momentum or a statistic. */
static struct ghp_buffer describe_parameter(const struct linker *k, enum ghp_role role, int layer,
                                            int64_t elements)
{
    struct ghp_buffer buffer = describe(k, role, layer, elements);
    buffer.bytes = elements * ghp_parameter_bytes(k->how->element_bytes);
    return buffer;
}

static struct ghp_buffer describe_bytes(enum ghp_role role, int layer, int64_t bytes)
{
    return (struct ghp_buffer){
        .role = role, .layer = layer, .edge = -1, .slot = -1, .elements = bytes, .bytes = bytes};
}

static int64_t tensor_elements(const struct linker *k, struct ghp_layout layout,
                               struct ghp_shape shape)
{
    return ghp_layout_samples(layout, k->how->extent) * ghp_layout_channels(layout, shape.c) *
           shape.h * shape.w;
}

/* ---- where tensors are ---- */

static int input_of(const struct linker *k, int edge)
{
    return k->x_changed[edge] ? k->x[edge] : k->y[k->how->model->edges[edge].from];
}

static int gradient_of_edge(const struct linker *k, int edge)
{
    return k->dx_changed[edge] ? k->dxr[edge] : k->dx[edge];
}

/* dy of a layer: the gradient of the consumer that comes first in backward order (others are added to it). */
static int output_gradient_of(const struct linker *k, int layer)
{
    int first = ghp_lower_first_gradient(k->how->model, layer);
    return first < 0 ? -1 : gradient_of_edge(k, first);
}

static bool may_overwrite_input(const struct linker *k, int layer)
{
    const struct ghp_layer *l = &k->how->model->layers[layer];
    return ghp_lower_overwrites_input(k->how->model, layer) ||
           (ghp_op_in_place(l) && k->x_changed[l->first_edge]);
}

static enum ghp_status make_output(struct linker *k, int layer)
{
    const struct ghp_layer *l = &k->how->model->layers[layer];
    if (k->y[layer] < 0 && may_overwrite_input(k, layer)) k->y[layer] = input_of(k, l->first_edge);
    return demand(k, &k->y[layer],
                  describe(k, GHP_ROLE_OUTPUT, layer,
                           tensor_elements(k, ghp_split_layouts(k->splits[layer]).y, l->out)));
}

/* dx of every in-edge that wants one; in-place operations and the first wanted input of an addition reuse dy. */
static enum ghp_status make_input_gradients(struct linker *k, int layer)
{
    const struct ghp_model *model = k->how->model;
    const struct ghp_layer *l = &model->layers[layer];
    bool reuse = ghp_op_in_place(l) || l->op == GHP_OP_ADD;
    for (int i = 0; i < l->n_inputs; i++) {
        int edge = l->first_edge + i;
        if (k->dx[edge] >= 0 || !ghp_lower_needs_gradient(k->how, l->inputs[i])) continue;
        if (reuse) {
            k->dx[edge] = output_gradient_of(k, layer);
            reuse = false;
            continue;
        }
        struct ghp_layout layout = ghp_split_layouts(k->splits[layer]).dx;
        struct ghp_buffer buffer =
            describe(k, GHP_ROLE_EDGE_GRADIENT, l->inputs[i],
                     tensor_elements(k, layout, model->layers[l->inputs[i]].out));
        buffer.edge = edge;
        GHP_TRY(demand(k, &k->dx[edge], buffer));
    }
    return GHP_OK;
}

/* Some operations hand gradients on without an instruction, so names are given layer by layer from the end. */
static enum ghp_status name_gradients_down_to(struct linker *k, int layer)
{
    while (k->named > layer) {
        k->named--;
        if (ghp_lower_needs_gradient(k->how, k->named)) GHP_TRY(make_input_gradients(k, k->named));
    }
    return GHP_OK;
}

/* ---- persistent buffers ---- */

static enum ghp_status demand_persistent(struct linker *k, int *slot, struct ghp_buffer buffer,
                                         int index)
{
    buffer.persistent = true;
    buffer.slot = index;
    return demand(k, slot, buffer);
}

static enum ghp_status make_parameters(struct linker *k, int layer)
{
    const struct ghp_layer *l = &k->how->model->layers[layer];
    struct ghp_local local = ghp_local_of(k->how->model, layer, k->splits[layer], k->how->extent);
    int64_t elements = ghp_param_local_elements(&local, l->n_params);
    for (int p = 0; p < l->n_params; p++) {
        int at = layer * GHP_MAX_PARAMS + p;
        GHP_TRY(demand_persistent(k, &k->weights[at],
                                  describe_parameter(k, GHP_ROLE_WEIGHT, layer, elements), p));
        if (!k->how->forward_only)
            GHP_TRY(demand_persistent(k, &k->momenta[at],
                                      describe_parameter(k, GHP_ROLE_MOMENTUM, layer, elements), p));
    }
    for (int s = 0; s < l->n_states; s++)
        GHP_TRY(demand_persistent(k, &k->states[layer * GHP_MAX_STATES + s],
                                  describe_parameter(k, GHP_ROLE_STATE, layer, local.c), s));
    return GHP_OK;
}

/* Bucket buffers, and each layer's gradients inside them in backward order. */
static enum ghp_status make_buckets(struct linker *k)
{
    struct ghp_program *program = k->program;
    const struct ghp_model *model = k->how->model;
    int n = k->buckets->n;
    program->buckets = ghp_alloc((size_t)n + 1, sizeof *program->buckets);
    if (program->buckets == NULL) return GHP_NO_MEMORY();
    program->n_buckets = program->max_buckets = n;
    for (int b = 0; b < n; b++) {
        const struct ghp_bucket_range *range = &k->buckets->ranges[b];
        struct ghp_buffer buffer =
            describe_bytes(GHP_ROLE_BUCKET, range->ready_layer, range->bytes);
        buffer.elements = range->bytes / ghp_parameter_bytes(k->how->element_bytes);
        int id = -1;
        GHP_TRY(demand_persistent(k, &id, buffer, b));
        struct ghp_ranks alone = {.first = program->rank, .count = 1, .stride = 1};
        program->buckets[b] = (struct ghp_bucket){
            .degree = range->degree,
            .bytes = range->bytes,
            .buffer = id,
            .ready_point = ghp_point_backward(model, range->ready_layer),
            .ranks = range->degree > 0
                         ? ghp_ranks_replica(program->rank, range->degree, k->how->extent.workers)
                         : alone};
    }
    int64_t *filled = ghp_alloc((size_t)n + 1, sizeof *filled);
    if (filled == NULL) return GHP_NO_MEMORY();
    enum ghp_status status = GHP_OK;
    for (int layer = model->n_layers - 1; layer >= 0 && status == GHP_OK; layer--) {
        const struct ghp_layer *l = &model->layers[layer];
        struct ghp_local local = ghp_local_of(model, layer, k->splits[layer], k->how->extent);
        int bucket = k->buckets->of_layer[layer];
        for (int p = 0; p < l->n_params && status == GHP_OK; p++) {
            int *slot = &k->gradients[layer * GHP_MAX_PARAMS + p];
            status = demand_persistent(k, slot,
                                       describe_parameter(
                                           k, GHP_ROLE_WEIGHT_GRADIENT, layer,
                                           ghp_param_local_elements(&local, l->n_params)),
                                       p);
            if (status != GHP_OK) break;
            program->buffers[*slot].storage = program->buckets[bucket].buffer;
            program->buffers[*slot].storage_offset = filled[bucket];
            filled[bucket] += program->buffers[*slot].bytes;
        }
    }
    free(filled);
    return status;
}

/* ---- operands ---- */

static enum ghp_status scratch_for(struct linker *k, struct ghp_instr *instr, int64_t bytes,
                                   int *operand)
{
    if (bytes <= 0) return GHP_OK;
    int id = -1;
    struct ghp_buffer buffer = describe_bytes(GHP_ROLE_SCRATCH, instr->layer, bytes);
    buffer.edge = instr->edge;
    GHP_TRY(demand(k, &id, buffer));
    *operand = id;
    return GHP_OK;
}

static enum ghp_status link_norm(struct linker *k, struct ghp_instr *instr)
{
    struct ghp_operands *at = &instr->at;
    if (!k->how->forward_only) { /* evaluation runs on running statistics */
        int *slot = &k->stats[2 * instr->layer + (instr->backward ? 1 : 0)];
        GHP_TRY(demand(k, slot,
                       describe_bytes(GHP_ROLE_STATS, instr->layer,
                                      2 * instr->local.c * (int64_t)sizeof(double))));
        at->stats = *slot;
    }
    for (int s = 0; s < GHP_MAX_STATES; s++)
        at->state[s] = instr->backward ? -1 : k->states[instr->layer * GHP_MAX_STATES + s];
    return GHP_OK;
}

static enum ghp_status link_forward(struct linker *k, struct ghp_instr *instr)
{
    const struct ghp_layer *l = &k->how->model->layers[instr->layer];
    struct ghp_operands *at = &instr->at;
    for (int i = 0; i < l->n_inputs; i++)
        at->x[i] = input_of(k, l->first_edge + i);
    if (instr->pass == GHP_PASS_STATS) return GHP_OK;
    GHP_TRY(make_output(k, instr->layer));
    at->y = k->y[instr->layer];
    for (int p = 0; p < l->n_params; p++)
        at->w[p] = k->weights[instr->layer * GHP_MAX_PARAMS + p];
    if (l->op == GHP_OP_SOFTMAX_CE) {
        at->labels = k->labels;
        at->metrics = k->metrics;
    }
    return GHP_OK;
}

static enum ghp_status link_backward(struct linker *k, struct ghp_instr *instr)
{
    const struct ghp_layer *l = &k->how->model->layers[instr->layer];
    struct ghp_operands *at = &instr->at;
    at->dy = l->op == GHP_OP_SOFTMAX_CE ? -1 : output_gradient_of(k, instr->layer);
    for (int i = 0; ghp_pass_reads_input(l->op, instr->pass) && i < l->n_inputs; i++)
        at->x[i] = input_of(k, l->first_edge + i);
    if (instr->pass == GHP_PASS_BACKWARD_WEIGHT) {
        if (l->op == GHP_OP_BATCH_NORM) at->dy = -1; /* its gradients are in the sums */
        for (int p = 0; p < l->n_params; p++)
            at->dw[p] = k->gradients[instr->layer * GHP_MAX_PARAMS + p];
    }
    if (instr->pass != GHP_PASS_BACKWARD_DATA) return GHP_OK;
    for (int i = 0; i < l->n_inputs; i++)
        at->dx[i] = k->dx[l->first_edge + i];
    for (int p = 0; p < l->n_params; p++)
        at->w[p] = k->weights[instr->layer * GHP_MAX_PARAMS + p];
    if (ghp_op_needs_output(l->op)) at->y = k->y[instr->layer];
    if (l->op == GHP_OP_SOFTMAX_CE) at->labels = k->labels;
    return GHP_OK;
}

static enum ghp_status link_compute(struct linker *k, struct ghp_instr *instr)
{
    const struct ghp_local *local = &instr->local;
    GHP_TRY(instr->backward ? link_backward(k, instr) : link_forward(k, instr));
    if (local->op == GHP_OP_BATCH_NORM) GHP_TRY(link_norm(k, instr));
    int64_t saved = ghp_local_saved_bytes(local, k->how->element_bytes);
    bool uses_saved = instr->pass == GHP_PASS_FORWARD || instr->pass == GHP_PASS_BACKWARD_DATA ||
                      instr->pass == GHP_PASS_BACKWARD_STATS;
    if (saved > 0 && uses_saved) {
        GHP_TRY(demand(k, &k->saved[instr->layer],
                       describe_bytes(GHP_ROLE_SAVED, instr->layer, saved)));
        instr->at.saved = k->saved[instr->layer];
    }
    int64_t scratch = 0;
    if (k->how->scratch.bytes != NULL)
        GHP_TRY(k->how->scratch.bytes(k->how->scratch.context, local, instr->pass, &scratch));
    return scratch_for(k, instr, scratch, &instr->at.scratch);
}

static int64_t layout_elements_of_step(const struct linker *k, const struct ghp_instr *instr)
{
    struct ghp_shape shape = {instr->local.c, instr->local.h, instr->local.w};
    return tensor_elements(k, instr->step.to, shape);
}

/* Scratch through which a step packs or unpacks, and receives. */
static enum ghp_status link_step_scratch(struct linker *k, struct ghp_instr *instr)
{
    switch (instr->step.op) {
    case GHP_RESHARD_GATHER_CHANNEL:
    case GHP_RESHARD_BATCH_TO_CHANNEL:
    case GHP_RESHARD_CHANNEL_TO_BATCH:
        return scratch_for(k, instr, instr->bytes, &instr->at.scratch);
    case GHP_RESHARD_SUM_TO_CHANNEL:
        GHP_TRY(scratch_for(k, instr, instr->bytes, &instr->at.scratch));
        return scratch_for(k, instr, ghp_receive_bytes(instr->bytes, instr->ranks),
                           &instr->at.saved);
    case GHP_RESHARD_SUM_TO_BATCH:
    case GHP_RESHARD_SUM_TO_FULL:
        return scratch_for(k, instr, ghp_receive_bytes(instr->bytes, instr->ranks),
                           &instr->at.saved);
    default: return GHP_OK;
    }
}

static enum ghp_status link_reshard(struct linker *k, struct ghp_instr *instr, bool first,
                                    bool last)
{
    int edge = instr->edge;
    int source = instr->backward ? k->dx[edge] : k->y[k->how->model->edges[edge].from];
    int *result = instr->backward ? &k->dxr[edge] : &k->x[edge];
    enum ghp_role role = instr->backward ? GHP_ROLE_EDGE_GRADIENT_OUT : GHP_ROLE_EDGE_INPUT;
    instr->at.x[0] = first ? source : k->between;
    if (!last) {
        k->between = -1;
        result = &k->between;
        role = GHP_ROLE_SCRATCH;
    }
    struct ghp_buffer buffer =
        describe(k, role, k->how->model->edges[edge].from, layout_elements_of_step(k, instr));
    buffer.edge = edge;
    GHP_TRY(demand(k, result, buffer));
    instr->at.y = *result;
    return link_step_scratch(k, instr);
}

static enum ghp_status link_load(struct linker *k, struct ghp_instr *instr)
{
    const struct ghp_model *model = k->how->model;
    GHP_TRY(make_output(k, 0));
    struct ghp_layout loss = ghp_split_layouts(k->splits[model->n_layers - 1]).x;
    GHP_TRY(demand(
        k, &k->labels,
        describe_bytes(GHP_ROLE_LABELS, model->n_layers - 1,
                       ghp_layout_samples(loss, k->how->extent) * (int64_t)sizeof(int32_t))));
    instr->at.y = k->y[0];
    instr->at.labels = k->labels;
    return GHP_OK;
}

static enum ghp_status link_update(struct linker *k, struct ghp_instr *instr)
{
    const struct ghp_layer *l = &k->how->model->layers[instr->layer];
    for (int p = 0; p < l->n_params; p++) {
        int at = instr->layer * GHP_MAX_PARAMS + p;
        instr->at.w[p] = k->weights[at];
        instr->at.dw[p] = k->gradients[at];
        instr->at.momentum[p] = k->momenta[at];
    }
    instr->bucket = k->buckets->of_layer[instr->layer];
    return GHP_OK;
}

static enum ghp_status link_instr(struct linker *k, int index)
{
    struct ghp_program *program = k->program;
    struct ghp_instr *instr = &program->instrs[index];
    if (instr->backward && instr->stream == GHP_STREAM_COMPUTE)
        GHP_TRY(name_gradients_down_to(k, instr->edge < 0 ? instr->layer
                                                          : k->how->model->edges[instr->edge].to));
    switch (instr->kind) {
    case GHP_INSTR_LOAD: return link_load(k, instr);
    case GHP_INSTR_COMPUTE: return link_compute(k, instr);
    case GHP_INSTR_ACCUMULATE:
        instr->at.dy = output_gradient_of(k, instr->layer);
        instr->at.x[0] = gradient_of_edge(k, instr->edge);
        return GHP_OK;
    case GHP_INSTR_RESHARD: {
        const struct ghp_instr *before = index > 0 ? instr - 1 : NULL;
        const struct ghp_instr *after = index + 1 < program->n_instrs ? instr + 1 : NULL;
        bool first = before == NULL || before->kind != GHP_INSTR_RESHARD ||
                     before->edge != instr->edge || before->backward != instr->backward;
        bool last = after == NULL || after->kind != GHP_INSTR_RESHARD ||
                    after->edge != instr->edge || after->backward != instr->backward;
        return link_reshard(k, instr, first, last);
    }
    case GHP_INSTR_STAT_REDUCE:
        instr->at.stats = k->stats[2 * instr->layer + (instr->backward ? 1 : 0)];
        return scratch_for(k, instr, ghp_receive_bytes(instr->bytes, instr->ranks),
                           &instr->at.scratch);
    case GHP_INSTR_ALL_REDUCE:
        instr->at.y = program->buckets[instr->bucket].buffer;
        instr->at.scratch = k->receive;
        return GHP_OK;
    case GHP_INSTR_METRIC_REDUCE:
        instr->at.metrics = k->metrics;
        instr->at.scratch = k->receive;
        return GHP_OK;
    case GHP_INSTR_UPDATE: return link_update(k, instr);
    case GHP_INSTR_COUNT: break;
    }
    return GHP_OK;
}

/* ---- lifetimes and waits ---- */

static void touch(struct ghp_program *program, int buffer, int point)
{
    if (buffer < 0) return;
    while (program->buffers[buffer].storage != buffer)
        buffer = program->buffers[buffer].storage;
    struct ghp_buffer *b = &program->buffers[buffer];
    if (b->persistent) return;
    if (point < b->first_point) b->first_point = point;
    if (point > b->last_point) b->last_point = point;
}

/* ghp_operands holds nothing but buffer ids, so it is walked as an array of them. */
static void touch_all(struct ghp_program *program)
{
    _Static_assert(sizeof(struct ghp_operands) % sizeof(int) == 0, "operands are ints");
    for (int i = 0; i < program->n_instrs; i++) {
        int ids[sizeof(struct ghp_operands) / sizeof(int)];
        memcpy(ids, &program->instrs[i].at, sizeof ids);
        for (size_t j = 0; j < sizeof ids / sizeof ids[0]; j++)
            touch(program, ids[j], program->instrs[i].point);
    }
}

static void set_waits(struct ghp_program *program, int loss_layer)
{
    for (int i = 0; i < program->n_instrs; i++) {
        struct ghp_instr *comm = &program->instrs[i];
        if (comm->stream != GHP_STREAM_COMM) continue;
        for (int j = 0; j < program->n_instrs; j++) {
            struct ghp_instr *waits = &program->instrs[j];
            bool update = waits->kind == GHP_INSTR_UPDATE && comm->kind == GHP_INSTR_ALL_REDUCE &&
                          waits->bucket == comm->bucket;
            bool metrics = comm->kind == GHP_INSTR_METRIC_REDUCE &&
                           waits->kind == GHP_INSTR_COMPUTE && waits->pass == GHP_PASS_FORWARD &&
                           waits->layer == loss_layer;
            if (update || metrics) waits->wait = i;
        }
    }
}

/* ---- the whole ---- */

static void note_changes(struct linker *k)
{
    for (int i = 0; i < k->program->n_instrs; i++) {
        const struct ghp_instr *instr = &k->program->instrs[i];
        if (instr->kind == GHP_INSTR_RESHARD)
            (instr->backward ? k->dx_changed : k->x_changed)[instr->edge] = true;
    }
}

/* One block of ids for every table of the linker, all -1. */
static int *carve_tables(struct linker *k)
{
    size_t layers = (size_t)k->how->model->n_layers, edges = (size_t)k->how->model->n_edges;
    size_t n = layers * (1 + 3 * GHP_MAX_PARAMS + GHP_MAX_STATES + 1 + 2) + 3 * edges;
    int *block = ghp_alloc(n, sizeof *block);
    if (block == NULL) return NULL;
    memset(block, 0xff, n * sizeof *block);
    int *at = block;
    k->y = at, at += layers;
    k->weights = at, at += layers * GHP_MAX_PARAMS;
    k->gradients = at, at += layers * GHP_MAX_PARAMS;
    k->momenta = at, at += layers * GHP_MAX_PARAMS;
    k->states = at, at += layers * GHP_MAX_STATES;
    k->saved = at, at += layers;
    k->stats = at, at += 2 * layers;
    k->x = at, at += edges;
    k->dx = at, at += edges;
    k->dxr = at;
    return block;
}

static enum ghp_status make_shared(struct linker *k)
{
    int64_t receive = 0;
    for (int i = 0; i < k->program->n_instrs; i++) {
        const struct ghp_instr *instr = &k->program->instrs[i];
        if (instr->stream == GHP_STREAM_COMM &&
            ghp_receive_bytes(instr->bytes, instr->ranks) > receive)
            receive = ghp_receive_bytes(instr->bytes, instr->ranks);
    }
    if (receive > 0)
        GHP_TRY(demand_persistent(k, &k->receive, describe_bytes(GHP_ROLE_COMM, -1, receive), -1));
    GHP_TRY(demand_persistent(
        k, &k->metrics,
        describe_bytes(GHP_ROLE_METRICS, -1, GHP_METRIC_COUNT * (int64_t)sizeof(double)), -1));
    for (int layer = 0; layer < k->how->model->n_layers; layer++)
        GHP_TRY(make_parameters(k, layer));
    return k->how->forward_only ? GHP_OK : make_buckets(k);
}

enum ghp_status ghp_link(const struct ghp_lowering *how, const struct ghp_split *splits,
                         const struct ghp_bucket_plan *buckets, struct ghp_program *program)
{
    struct linker k = {.how = how,
                       .splits = splits,
                       .buckets = buckets,
                       .program = program,
                       .labels = -1,
                       .metrics = -1,
                       .receive = -1,
                       .between = -1,
                       .named = how->model->n_layers};
    enum ghp_status status = GHP_OK;
    int *tables = carve_tables(&k);
    k.x_changed = ghp_alloc((size_t)how->model->n_edges + 1, sizeof *k.x_changed);
    k.dx_changed = ghp_alloc((size_t)how->model->n_edges + 1, sizeof *k.dx_changed);
    if (tables == NULL || k.x_changed == NULL || k.dx_changed == NULL) {
        status = GHP_NO_MEMORY();
        goto done;
    }
    note_changes(&k);
    GHP_TRY_GOTO(status, make_shared(&k), done);
    for (int i = 0; i < program->n_instrs; i++) {
        GHP_TRY_GOTO(status, link_instr(&k, i), done);
    }
    touch_all(program);
    set_waits(program, how->model->n_layers - 1);
done:
    free(tables);
    free(k.x_changed);
    free(k.dx_changed);
    return status;
}
