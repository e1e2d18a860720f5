/* core/program/buffer_assignment.c - gives a complete instruction list its operands, buffers, buckets, waits and
 * lifetimes.
 *
 * Buffers are made on first use and live from the first to the last point that touches them. In-place operations do
 * not get buffers of their own: their output *is* their input's buffer, their dx is their dy. */
#include "core/program/buffer_assignment_private.h"

#include "core/model/precision.h"

#include <string.h>

/* ---- operands ---- */

static enum ghp_status scratch_for(struct ghp_buffer_assignment *k, struct ghp_instr *instr,
                                   int64_t bytes, int *operand)
{
    if (bytes <= 0) return GHP_OK;
    int id = -1;
    struct ghp_buffer buffer = ghp_describe_bytes(GHP_BUFFER_SCRATCH, instr->layer, bytes);
    buffer.edge = instr->edge;
    GHP_TRY(ghp_buffer_assignment_demand(k, &id, buffer));
    *operand = id;
    return GHP_OK;
}

static void step_scratch(const struct ghp_instr *instr, struct ghp_instr_scratch *scratch)
{
    switch (instr->step.op) {
    case GHP_RESHARD_GATHER_CHANNEL:
    case GHP_RESHARD_BATCH_TO_CHANNEL:
    case GHP_RESHARD_CHANNEL_TO_BATCH: scratch->work_bytes = instr->bytes; break;
    case GHP_RESHARD_SUM_TO_CHANNEL: scratch->work_bytes = instr->bytes; /* fall through */
    case GHP_RESHARD_SUM_TO_BATCH:
    case GHP_RESHARD_SUM_TO_FULL:
        scratch->receive_bytes = ghp_receive_bytes(instr->bytes, instr->ranks.count);
        break;
    default: break;
    }
}

enum ghp_status ghp_lower_scratch(const struct ghp_lowering *how, const struct ghp_instr *instr,
                                  struct ghp_instr_scratch *scratch)
{
    *scratch = (struct ghp_instr_scratch){0};
    if (instr->kind == GHP_INSTR_RESHARD) step_scratch(instr, scratch);
    if (instr->kind == GHP_INSTR_STAT_REDUCE || instr->kind == GHP_INSTR_NORM_REDUCE)
        scratch->work_bytes = ghp_receive_bytes(instr->bytes, instr->ranks.count);
    if (instr->kind == GHP_INSTR_NORM)
        scratch->work_bytes = GHP_NORM_PARTS * (int64_t)sizeof(double);
    if (instr->kind != GHP_INSTR_COMPUTE) return GHP_OK;
    if (how->scratch.bytes != NULL)
        GHP_TRY(how->scratch.bytes(how->scratch.context, &instr->local, instr->pass,
                                   &scratch->work_bytes));
    scratch->work_bytes += ghp_instr_sums_bytes(instr);
    return GHP_OK;
}

static enum ghp_status assign_scratch(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    struct ghp_instr_scratch scratch;
    GHP_TRY(ghp_lower_scratch(k->how, instr, &scratch));
    GHP_TRY(scratch_for(k, instr, scratch.work_bytes, &instr->at.scratch));
    if (scratch.receive_bytes == 0) return GHP_OK; /* `saved` may be a pass's own */
    return scratch_for(k, instr, scratch.receive_bytes, &instr->at.saved);
}

static enum ghp_status assign_norm(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    struct ghp_operands *at = &instr->at;
    bool stats_deltas = ghp_layer_has_stats_delta(&k->how->model->layers[instr->layer]) &&
                        instr->pass == GHP_PASS_FORWARD && !k->how->forward_only;
    if (!k->how->forward_only) { /* evaluation runs on running statistics */
        int *slot = &k->now->stats[2 * instr->layer + (instr->backward ? 1 : 0)];
        GHP_TRY(
            ghp_buffer_assignment_demand(k, slot,
                                         ghp_describe_bytes(GHP_BUFFER_STATS, instr->layer,
                                                            ghp_local_stats_bytes(&instr->local))));
        at->stats = *slot;
    }
    for (int s = 0; s < GHP_MAX_STATES; s++) {
        at->state[s] = instr->backward ? -1 : k->states[instr->layer * GHP_MAX_STATES + s];
        if (stats_deltas) at->stats_delta[s] = k->stats_deltas[instr->layer * GHP_MAX_STATES + s];
    }
    return GHP_OK;
}

static enum ghp_status assign_forward(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_layer *l = &k->how->model->layers[instr->layer];
    struct ghp_operands *at = &instr->at;
    int owner = ghp_model_owner(k->how->model, instr->layer);
    int n_params = k->how->model->layers[owner].n_params;
    unsigned uses = ghp_op_uses(l->op, instr->pass);
    for (int i = 0; i < l->n_inputs; i++)
        at->x[i] = ghp_buffer_assignment_input(k, l->first_edge + i);
    if ((uses & GHP_AT_Y) == 0) return GHP_OK;
    GHP_TRY(ghp_buffer_assignment_make_output(k, instr->layer));
    at->y = k->recompute ? k->now->recompute_y[instr->layer] : k->now->y[instr->layer];
    for (int p = 0; p < n_params; p++)
        at->w[p] = k->weights[owner * GHP_MAX_PARAMS + p];
    if (uses & GHP_AT_LABELS) at->labels = k->now->labels;
    if (uses & GHP_AT_METRICS) at->metrics = k->metrics;
    return GHP_OK;
}

/* A layer's weight gradients go where they are reduced; of further micro-batches beside it, to be added. */
static enum ghp_status assign_weight_gradients(struct ghp_buffer_assignment *k,
                                               struct ghp_instr *instr)
{
    int owner = ghp_model_owner(k->how->model, instr->layer);
    for (int p = 0; p < k->how->model->layers[owner].n_params; p++) {
        int own = k->gradients[owner * GHP_MAX_PARAMS + p];
        if (instr->micro > 0) {
            int64_t elements = k->program->buffers[own].elements;
            own = -1;
            GHP_TRY(
                ghp_buffer_assignment_demand(k, &own,
                                             ghp_buffer_assignment_describe_parameter(
                                                 k, GHP_BUFFER_SCRATCH, instr->layer, elements)));
            k->partial[p] = own;
        }
        instr->at.dw[p] = own;
    }
    return GHP_OK;
}

static enum ghp_status assign_backward(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_layer *l = &k->how->model->layers[instr->layer];
    struct ghp_operands *at = &instr->at;
    int owner = ghp_model_owner(k->how->model, instr->layer);
    int n_params = k->how->model->layers[owner].n_params;
    unsigned uses = ghp_op_uses(l->op, instr->pass);
    if (uses & GHP_AT_DY) at->dy = ghp_buffer_assignment_output_gradient(k, instr->layer);
    for (int i = 0; i < l->n_inputs; i++) {
        if (uses & GHP_AT_X) at->x[i] = ghp_buffer_assignment_input(k, l->first_edge + i);
        if (uses & GHP_AT_DX) at->dx[i] = k->now->dx[l->first_edge + i];
    }
    for (int p = 0; (uses & GHP_AT_W) && p < n_params; p++)
        at->w[p] = k->weights[owner * GHP_MAX_PARAMS + p];
    if (uses & GHP_AT_Y) at->y = ghp_buffer_assignment_output(k, instr->layer);
    if (uses & GHP_AT_LABELS) at->labels = k->now->labels;
    return uses & GHP_AT_DW ? assign_weight_gradients(k, instr) : GHP_OK;
}

/* What a pass keeps for later passes, beside its tensors. */
static enum ghp_status assign_saved(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    int64_t saved = ghp_local_saved_bytes(&instr->local, k->how->element_bytes);
    bool uses_saved = (ghp_op_uses(instr->local.op, instr->pass) & GHP_AT_SAVED) != 0;
    struct ghp_assigned_tensors *t = k->now;
    int *slot = k->recompute ? &t->recompute_saved[instr->layer] : &t->saved[instr->layer];
    if (saved <= 0 || !uses_saved) return GHP_OK;
    if (instr->backward && t->recompute_saved[instr->layer] >= 0)
        slot = &t->recompute_saved[instr->layer];
    GHP_TRY(ghp_buffer_assignment_demand(
        k, slot, ghp_describe_bytes(GHP_BUFFER_SAVED, instr->layer, saved)));
    instr->at.saved = *slot;
    return GHP_OK;
}

static enum ghp_status assign_compute(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_local *local = &instr->local;
    GHP_TRY(instr->backward ? assign_backward(k, instr) : assign_forward(k, instr));
    if (ghp_op_of(local->op)->has_batch_statistics) GHP_TRY(assign_norm(k, instr));
    GHP_TRY(assign_saved(k, instr));
    return assign_scratch(k, instr);
}

static enum ghp_status assign_reshard(struct ghp_buffer_assignment *k, struct ghp_instr *instr,
                                      bool first, bool last)
{
    int edge = instr->edge;
    struct ghp_assigned_tensors *t = k->now;
    int source = instr->backward ? t->dx[edge]
                                 : ghp_buffer_assignment_output(k, k->how->model->edges[edge].from);
    int *result = instr->backward ? &t->dxr[edge]
                  : k->recompute  ? &t->recompute_x[edge]
                                  : &t->x[edge];
    enum ghp_buffer_kind buffer_kind =
        instr->backward ? GHP_BUFFER_EDGE_GRADIENT_OUT : GHP_BUFFER_EDGE_INPUT;
    instr->at.x[0] = first ? source : k->between;
    if (!last) {
        k->between = -1;
        result = &k->between;
        buffer_kind = GHP_BUFFER_SCRATCH;
    }
    struct ghp_buffer buffer = ghp_buffer_assignment_tensor(
        k, buffer_kind, k->how->model->edges[edge].from, instr->step.to);
    buffer.edge = edge;
    GHP_TRY(ghp_buffer_assignment_demand(k, result, buffer));
    instr->at.y = *result;
    return assign_scratch(k, instr);
}

/* Samples in the first stage, labels in the last. */
static enum ghp_status assign_load(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    int loss = k->how->model->n_layers - 1;
    if (instr->layer == 0) {
        GHP_TRY(ghp_buffer_assignment_make_output(k, 0));
        instr->at.y = k->now->y[0];
        instr->at.scratch = k->prefetch;
    }
    if (!ghp_buffer_assignment_owns(k, loss)) return GHP_OK;
    struct ghp_layout layout = ghp_split_layouts(k->splits[loss]).x;
    GHP_TRY(ghp_buffer_assignment_demand(
        k, &k->now->labels,
        ghp_describe_bytes(GHP_BUFFER_LABELS, loss,
                           ghp_layout_samples(layout, k->placement.problem) *
                               ghp_model_labels(k->how->model) * (int64_t)sizeof(int32_t))));
    instr->at.labels = k->now->labels;
    return GHP_OK;
}

static enum ghp_status assign_update(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_layer *l = &k->how->model->layers[instr->layer];
    int b = k->buckets->of_layer[instr->layer];
    const struct ghp_bucket *bucket = &k->program->buckets[b];
    instr->bucket = b;
    instr->at.x[0] = k->squares;
    if (bucket->strip_bytes > 0) {
        instr->at.w[0] = bucket->weight_strip;
        instr->at.dw[0] = bucket->gradient_strip;
        for (int m = 0; m < instr->optimizer->n_moments; m++)
            instr->at.moment[m][0] = bucket->moment[m];
        return GHP_OK;
    }
    for (int p = 0; p < l->n_params; p++) {
        int at = instr->layer * GHP_MAX_PARAMS + p;
        instr->at.w[p] = k->weights[at];
        instr->at.dw[p] = k->gradients[at];
        for (int m = 0; m < instr->optimizer->n_moments; m++)
            instr->at.moment[m][p] = k->moments[m][at];
    }
    for (int s = 0; ghp_layer_has_stats_delta(l) && s < l->n_states; s++) {
        instr->at.state[s] = k->states[instr->layer * GHP_MAX_STATES + s];
        instr->at.stats_delta[s] = k->stats_deltas[instr->layer * GHP_MAX_STATES + s];
    }
    return GHP_OK;
}

/* It reads the gradients, which live always, where they lie. */
static enum ghp_status assign_norm_of_all(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_program *program = k->program;
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];
        if (b->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT) continue;
        struct ghp_norm_share share =
            ghp_norm_share_of(program, &k->how->model->layers[b->layer], k->splits[b->layer], i);
        instr->bytes += (share.end - share.first) * ghp_parameter_bytes(program->element_bytes);
    }
    instr->at.y = k->squares;
    return assign_scratch(k, instr);
}

/* A gradient into an output's, or (without an edge) a micro-batch's weight gradients into the sum. */
static enum ghp_status assign_accumulate(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    int n = k->how->model->layers[instr->layer].n_params;
    if (instr->edge >= 0) {
        instr->at.dy = ghp_buffer_assignment_output_gradient(k, instr->layer);
        instr->at.x[0] = ghp_buffer_assignment_edge_gradient(k, instr->edge);
        return GHP_OK;
    }
    for (int p = 0; p < n; p++) {
        instr->at.dw[p] = k->gradients[instr->layer * GHP_MAX_PARAMS + p];
        instr->at.x[p] = k->partial[p];
    }
    return GHP_OK;
}

static enum ghp_status assign_send(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    int layer = k->how->model->edges[instr->edge].from;
    instr->at.x[0] = instr->backward ? ghp_buffer_assignment_output_gradient(k, layer)
                                     : ghp_buffer_assignment_output(k, layer);
    return scratch_for(k, instr, instr->copy_bytes, &instr->at.scratch);
}

/* Into the remote activation of a tensor, or the gradient of one that was sent. */
static enum ghp_status assign_receive(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    int layer = k->how->model->edges[instr->edge].from;
    if (instr->backward) {
        struct ghp_buffer buffer = ghp_buffer_assignment_tensor(k, GHP_BUFFER_EDGE_GRADIENT_OUT,
                                                                layer, instr->transfer.to);
        buffer.edge = instr->edge;
        GHP_TRY(ghp_buffer_assignment_demand(k, &k->now->dxr[instr->edge], buffer));
        instr->at.y = k->now->dxr[instr->edge];
    } else {
        GHP_TRY(ghp_buffer_assignment_demand(
            k, &k->now->y[layer],
            ghp_buffer_assignment_tensor(k, GHP_BUFFER_OUTPUT, layer, instr->transfer.to)));
        instr->at.y = k->now->y[layer];
    }
    return scratch_for(k, instr, instr->copy_bytes, &instr->at.scratch);
}

/* What a transfer touches lives until it is waited for. */
static void assign_wait(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_instr *what = &k->program->instrs[instr->after];
    if (what->stream != GHP_STREAM_TRANSFER) return; /* weights live always */
    instr->at.x[0] = what->at.x[0];
    instr->at.y = what->at.y;
    instr->at.scratch = what->at.scratch;
}

/* The layer down to which gradients have to have names, at an instruction of the backward part. */
static int named_layer(const struct ghp_buffer_assignment *k, const struct ghp_instr *instr)
{
    return instr->edge < 0 ? instr->layer : k->how->model->edges[instr->edge].to;
}

static enum ghp_status assign_instr(struct ghp_buffer_assignment *k, int index)
{
    struct ghp_program *program = k->program;
    struct ghp_instr *instr = &program->instrs[index];
    k->now = &k->micro[instr->micro];
    k->recompute = instr->recompute;
    if (instr->backward && instr->stream != GHP_STREAM_COMM)
        GHP_TRY(ghp_buffer_assignment_gradients(k, named_layer(k, instr)));
    switch (instr->kind) {
    case GHP_INSTR_LOAD: return assign_load(k, instr);
    case GHP_INSTR_COMPUTE: return assign_compute(k, instr);
    case GHP_INSTR_ACCUMULATE: return assign_accumulate(k, instr);
    case GHP_INSTR_RESHARD: {
        const struct ghp_instr *before = index > 0 ? instr - 1 : NULL;
        const struct ghp_instr *after = index + 1 < program->n_instrs ? instr + 1 : NULL;
        bool first = before == NULL || before->kind != GHP_INSTR_RESHARD ||
                     before->edge != instr->edge || before->backward != instr->backward;
        bool last = after == NULL || after->kind != GHP_INSTR_RESHARD ||
                    after->edge != instr->edge || after->backward != instr->backward;
        return assign_reshard(k, instr, first, last);
    }
    case GHP_INSTR_STAT_REDUCE:
        instr->at.stats = k->now->stats[2 * instr->layer + (instr->backward ? 1 : 0)];
        return assign_scratch(k, instr);
    case GHP_INSTR_REDUCE_SCATTER:
        instr->at.x[0] = program->buckets[instr->bucket].buffer;
        instr->at.y = program->buckets[instr->bucket].gradient_strip;
        instr->at.scratch = k->receive;
        return GHP_OK;
    case GHP_INSTR_ALL_GATHER:
        instr->at.x[0] = program->buckets[instr->bucket].weight_strip;
        instr->at.y = program->buckets[instr->bucket].weights;
        return GHP_OK;
    case GHP_INSTR_ALL_REDUCE:
        instr->at.y = program->buckets[instr->bucket].buffer;
        instr->at.scratch = k->receive;
        return GHP_OK;
    case GHP_INSTR_METRIC_REDUCE:
        instr->at.metrics = k->metrics;
        instr->at.scratch = k->receive;
        return GHP_OK;
    case GHP_INSTR_UPDATE: return assign_update(k, instr);
    case GHP_INSTR_NORM: return assign_norm_of_all(k, instr);
    case GHP_INSTR_NORM_REDUCE: instr->at.y = k->squares; return assign_scratch(k, instr);
    case GHP_INSTR_SEND: return assign_send(k, instr);
    case GHP_INSTR_RECEIVE: return assign_receive(k, instr);
    case GHP_INSTR_WAIT: assign_wait(k, instr); return GHP_OK;
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

/* Updates wait for their bucket. The metrics of a step are taken where the next one's loss is about to add to them; in
 * stages without the loss at the end of the next step, where nobody has to wait for it. */
static void set_waits(struct ghp_program *program, int loss_layer)
{
    bool has_loss = program->placement.end_layer > loss_layer;
    int end = program->n_instrs - 1;
    while (end > 0 && program->instrs[end].stream != GHP_STREAM_COMPUTE)
        end--;
    for (int i = 0; i < program->n_instrs; i++) {
        struct ghp_instr *comm = &program->instrs[i];
        if (comm->stream != GHP_STREAM_COMM) continue;
        for (int j = 0; j < program->n_instrs; j++) {
            struct ghp_instr *waits = &program->instrs[j];
            bool update = waits->kind == GHP_INSTR_UPDATE && ghp_instr_reduces(comm) &&
                          waits->bucket == comm->bucket;
            bool loss = waits->kind == GHP_INSTR_COMPUTE && waits->pass == GHP_PASS_FORWARD &&
                        waits->layer == loss_layer && waits->micro == 0;
            bool metrics = comm->kind == GHP_INSTR_METRIC_REDUCE && (has_loss ? loss : j == end);
            if (update || metrics) waits->wait = i;
        }
    }
}

/* ---- the whole ---- */

enum ghp_status ghp_buffers_assign(const struct ghp_lowering *how, const struct ghp_split *splits,
                                   const struct ghp_bucket_plan *buckets,
                                   struct ghp_program *program)
{
    struct ghp_buffer_assignment k;
    enum ghp_status status = GHP_OK;

    GHP_TRY(ghp_buffer_assignment_open(how, splits, buckets, program, &k));
    for (int i = 0; i < program->n_instrs && status == GHP_OK; i++)
        status = assign_instr(&k, i);
    ghp_buffer_assignment_close(&k);
    if (status != GHP_OK) return status;
    touch_all(program);
    set_waits(program, how->model->n_layers - 1);
    return GHP_OK;
}
