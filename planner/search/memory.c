/* planner/search/memory.c - spans of memory.h, piece by piece: from what the pieces' instructions access
 * (core/program/liveness.h), and the scratch that they need (ghp_lower_scratch). */
#include "planner/search/memory_private.h"

#include "core/program/fuse.h"
#include "core/program/lower/bucket.h"
#include "core/program/lower/buffer_assignment.h"
#include "core/program/lower/flow.h"
#include "core/program/lower/points.h"
#include "core/program/ring.h"

#include <stdlib.h>

static int64_t tensor_bytes(const struct ghp_memory_maker *m, struct ghp_layout layout,
                            struct ghp_shape shape)
{
    return ghp_layout_samples(layout, m->in->problem[m->stage]) *
           ghp_layout_channels(layout, ghp_shape_columns(shape)) *
           ghp_layout_positions(layout, shape.h) * shape.w *
           ghp_shape_element_bytes(shape, m->in->lowering->element_bytes);
}

/* ---- lives ---- */

static bool wanted(const struct ghp_memory_maker *m, int v)
{
    return ghp_lower_needs_gradient(m->in->lowering, v);
}

static struct ghp_life *life_of(struct ghp_memory_maker *m, struct ghp_access access)
{
    switch (access.tensor) {
    case GHP_TENSOR_OUTPUT: return &m->lives.output[access.of];
    case GHP_TENSOR_GRADIENT: return &m->lives.gradient[access.of];
    case GHP_TENSOR_INPUT: return &m->lives.input[access.of];
    case GHP_TENSOR_LABELS: return &m->lives.labels;
    default: return NULL; /* of one choice: tensors_alone */
    }
}

static enum ghp_status learn_layer(struct ghp_memory_maker *m, int v)
{
    struct ghp_accesses accesses;

    m->piece.n_instrs = 0;
    GHP_TRY(ghp_lower_layer(m->in->lowering, v, m->in->choices[m->in->first_choice[v]],
                            m->in->rank[m->in->stage[v]], &m->piece));
    for (int k = 0; k < m->piece.n_instrs; k++) {
        ghp_instr_accesses(m->in->lowering, &m->piece, k, &accesses);
        for (int i = 0; i < accesses.n; i++) {
            struct ghp_life *life = life_of(m, accesses.access[i]);

            if (life != NULL) ghp_life_extend(life, m->piece.instrs[k].point);
        }
    }
    if (wanted(m, v) && !ghp_op_of(m->model->layers[v].op)->is_input) /* or it is handed on there */
        ghp_life_extend(&m->lives.gradient[v], ghp_point_backward(m->model, v));
    return GHP_OK;
}

/* The last point at which the consumer of an edge reads the tensor, as the producer left it or after it changed its
 * layout. */
static int last_read(const struct ghp_memory_maker *m, int e, bool changed)
{
    if (ghp_lower_overwrites_input(m->model, m->model->edges[e].to, changed))
        return m->lives.input[e].first - 1; /* from there on it is the consumer's output */
    return m->lives.input[e].last;
}

/* The out-edge that could keep a layer's output longest, and how long the output lives whatever the others do. */
static int keeper_of(const struct ghp_memory_maker *m, int v, int *at_least)
{
    const struct ghp_layer *layer = &m->model->layers[v];
    int keeper = -1;

    *at_least = m->lives.output[v].last;
    for (int i = 0; i < layer->n_consumers; i++) {
        int e = layer->out_edges[i];

        if (keeper < 0 || last_read(m, e, false) > last_read(m, keeper, false)) keeper = e;
        if (layer->n_consumers > 1 && ghp_point_forward_edge(m->model, e) > *at_least)
            *at_least = ghp_point_forward_edge(m->model, e);
    }
    return keeper;
}

/* ---- layers ---- */

/* The gather of the layer's bucket, or its pull, as it is alone; NULL: its updates are whole. */
static const struct ghp_instr *instr_of(const struct ghp_memory_maker *m, enum ghp_instr_kind kind)
{
    for (int k = 0; k < m->piece.n_instrs; k++)
        if (m->piece.instrs[k].kind == kind) return &m->piece.instrs[k];
    return NULL;
}

/* The points at which the piece gathers weights, or computes with them. */
static struct ghp_life gathered_life(const struct ghp_memory_maker *m, bool backward)
{
    struct ghp_life life = GHP_LIFE_NONE;

    for (int k = 0; k < m->piece.n_instrs; k++) {
        const struct ghp_instr *instr = &m->piece.instrs[k];
        bool reads = instr->kind == GHP_INSTR_COMPUTE &&
                     (ghp_op_uses(instr->local.op, instr->pass) & GHP_AT_W) != 0;

        if (reads && instr->backward == backward) ghp_life_extend(&life, instr->point);
    }
    return life;
}

static enum ghp_status add_gathered(struct ghp_memory_maker *m, struct ghp_spans *spans,
                                    int64_t bytes)
{
    for (int backward = 0; backward < 2; backward++) {
        struct ghp_life life = gathered_life(m, backward == 1);

        GHP_TRY(ghp_memory_span(m, spans, bytes, life.first, life.last));
    }
    return GHP_OK;
}

/* The same of weights that are kept from the forward to the backward pass, once however many micro-batches: of the
 * layer's own stage alone. */
static enum ghp_status add_kept(struct ghp_memory_maker *m, struct ghp_spans *spans, int64_t bytes)
{
    struct ghp_life first = gathered_life(m, false), last = gathered_life(m, true);

    if (last.last < 0 || m->in->n_stages > 1) return add_gathered(m, spans, bytes);
    return ghp_memory_span(m, spans, bytes, first.first, last.last);
}

/* Adds the spans of sharded gradients, and of weights that are gathered: what lasts, and what is whole at the layer's
 * own passes. It is whole for longer, from a heavy layer to the next. That is left out, so this is a bound from
 * below. */
static enum ghp_status sharded_spans(struct ghp_memory_maker *m, enum ghp_param_sharding sharding,
                                     int64_t all)
{
    const struct ghp_instr *reduce = instr_of(m, GHP_INSTR_REDUCE_SCATTER);
    struct ghp_spans *spans = &m->in->layer_spans;
    int moments =
        ghp_optimizer_at(ghp_optimizer_index(m->in->lowering->method.optimizer))->n_moments;
    int64_t shard, whole;

    if (reduce == NULL) return ghp_memory_lasting(m, spans, (2 + moments) * all);
    whole = m->in->alone ? reduce->bytes : all;
    shard = whole / reduce->ranks.count / GHP_ALIGN_BYTES * GHP_ALIGN_BYTES;
    GHP_TRY(ghp_memory_lasting(m, spans, (1 + moments) * shard));
    GHP_TRY(ghp_memory_span(m, spans, whole, reduce->point, reduce->point));
    if (!ghp_sharding_gathers(sharding)) return ghp_memory_lasting(m, spans, whole);
    GHP_TRY(ghp_memory_lasting(m, spans, shard));
    return sharding == GHP_SHARDING_PASS ? add_gathered(m, spans, whole)
                                         : add_kept(m, spans, whole);
}

/* Weights, their gradients and moments. With optimizer shards: both buckets padded, and moments for one optimizer
 * shard; inside a larger bucket padding is left out, a bound from below. Servers have the moments of what is theirs. */
static enum ghp_status parameter_spans(struct ghp_memory_maker *m, enum ghp_param_sharding sharding,
                                       int64_t all)
{
    struct ghp_spans *spans = &m->in->layer_spans;
    const struct ghp_instr *gather = instr_of(m, GHP_INSTR_ALL_GATHER),
                           *pull = instr_of(m, GHP_INSTR_PULL);
    int moments =
        ghp_optimizer_at(ghp_optimizer_index(m->in->lowering->method.optimizer))->n_moments;

    if (sharding != GHP_SHARDING_NONE) return sharded_spans(m, sharding, all);
    if (pull != NULL) return ghp_memory_lasting(m, spans, 2 * (m->in->alone ? pull->bytes : all));
    if (gather == NULL) return ghp_memory_lasting(m, spans, (2 + moments) * all);
    if (m->in->alone)
        return ghp_memory_lasting(
            m, spans, 2 * gather->bytes + moments * (gather->bytes / gather->ranks.count));
    return ghp_memory_lasting(
        m, spans,
        2 * all + moments * (all / gather->ranks.count / GHP_ALIGN_BYTES * GHP_ALIGN_BYTES));
}

static enum ghp_status persistent_spans(struct ghp_memory_maker *m, int v,
                                        enum ghp_param_sharding sharding,
                                        const struct ghp_local *local)
{
    const struct ghp_layer *layer = &m->model->layers[v];
    struct ghp_spans *spans = &m->in->layer_spans;
    int bytes = ghp_parameter_bytes(m->in->lowering->element_bytes);

    if (layer->n_params > 0 || ghp_stage_partner(m->model, m->in->lowering->staging, v) >= 0) {
        const struct ghp_layer *owner = &m->model->layers[ghp_model_owner(m->model, v)];
        int64_t sum = 0;

        for (int p = 0; p < owner->n_params; p++) /* a tied layer's parts are its owner's */
            sum += ghp_align(ghp_local_param_elements(local, p) * bytes);
        GHP_TRY(owner->fixed ? ghp_memory_lasting(m, spans, sum)
                             : parameter_spans(m, sharding, sum));
        if (instr_of(m, GHP_INSTR_REDUCE_SCATTER) == NULL)
            GHP_TRY(ghp_memory_lasting(
                m, spans,
                ghp_lower_bf16_bytes(m->in->lowering, ghp_model_owner(m->model, v), local)));
    }
    if (layer->n_states > 0)
        GHP_TRY(ghp_memory_lasting(m, spans,
                                   (ghp_lowering_has_stats_delta(m->in->lowering, layer) ? 2 : 1) *
                                       layer->n_states * ghp_align(local->c * bytes)));
    if (v == m->in->route[m->stage].first_layer)
        GHP_TRY(ghp_memory_lasting(m, spans, GHP_METRIC_COUNT * (int64_t)sizeof(double)));
    return GHP_OK;
}

/* What an instruction has at its own point alone. */
static enum ghp_status instr_spans(struct ghp_memory_maker *m, const struct ghp_instr *instr,
                                   struct ghp_spans *spans)
{
    struct ghp_instr_scratch scratch;

    GHP_TRY(ghp_lower_scratch(m->in->lowering, instr, &scratch));
    GHP_TRY(ghp_memory_span(m, spans, scratch.work_bytes, instr->point, instr->point));
    if (instr->kind == GHP_INSTR_COMPUTE && instr->blocks > 0 && instr->block == 0)
        GHP_TRY(ghp_memory_span(m, spans, ghp_ring_bytes(instr, m->in->lowering->element_bytes),
                                instr->point, instr->point));
    return ghp_memory_span(m, spans, scratch.receive_bytes, instr->point, instr->point);
}

/* The receive segment that the layer's reduction asks for, or the metrics' for the last layer. */
static int64_t segment_of(const struct ghp_memory_maker *m, int v, struct ghp_split split)
{
    struct ghp_ranks ranks =
        ghp_ranks_replica(0, ghp_split_sharers(split), m->in->lowering->problem.workers);

    if (m->in->n_stages > 1) ranks.count = m->in->lowering->problem.workers; /* of all stages */

    for (int k = 0; k < m->piece.n_instrs; k++)
        if (ghp_instr_reduces(&m->piece.instrs[k]) && !ghp_instr_is_served(&m->piece.instrs[k]))
            return ghp_instr_receive_bytes(&m->piece.instrs[k]);
    if (v < m->in->route[m->stage].end_layer - 1 || ranks.count == 1) return 0;
    return ghp_receive_bytes(GHP_METRIC_COUNT * (int64_t)sizeof(double), ranks.count);
}

/* Bytes of a tensor of the layer's that one choice alone decides; 0: of others. */
static int64_t bytes_alone(const struct ghp_local *local, struct ghp_access access,
                           int element_bytes, bool deferred)
{
    switch (access.tensor) {
    case GHP_TENSOR_SAVED: return ghp_local_saved_bytes(local, element_bytes);
    case GHP_TENSOR_STATS:
    case GHP_TENSOR_BACKWARD_STATS: return ghp_local_stats_bytes(local);
    case GHP_TENSOR_SUMMAND:
        return deferred ? 0
                        : ghp_align(ghp_local_param_elements(local, access.slot) *
                                    ghp_parameter_bytes(element_bytes));
    default: return 0;
    }
}

/* What no other piece accesses. */
static enum ghp_status tensors_alone(struct ghp_memory_maker *m, const struct ghp_local *local)
{
    struct ghp_spans *spans = &m->in->layer_spans;
    struct ghp_accesses accesses;
    struct {
        struct ghp_life life;
        int64_t bytes;
    } of[GHP_TENSOR_COUNT][GHP_MAX_PARAMS];

    for (int t = 0; t < GHP_TENSOR_COUNT; t++)
        for (int slot = 0; slot < GHP_MAX_PARAMS; slot++)
            of[t][slot].bytes = 0, of[t][slot].life = GHP_LIFE_NONE;
    for (int k = 0; k < m->piece.n_instrs; k++) {
        ghp_instr_accesses(m->in->lowering, &m->piece, k, &accesses);
        for (int i = 0; i < accesses.n; i++) {
            struct ghp_access access = accesses.access[i];

            of[access.tensor][access.slot].bytes =
                bytes_alone(local, access, m->in->lowering->element_bytes,
                            ghp_lower_defers_weights(m->in->lowering, access.of));
            ghp_life_extend(&of[access.tensor][access.slot].life, m->piece.instrs[k].point);
        }
    }
    for (int t = 0; t < GHP_TENSOR_COUNT; t++)
        for (int slot = 0; slot < GHP_MAX_PARAMS; slot++)
            GHP_TRY(ghp_memory_span(m, spans, of[t][slot].bytes, of[t][slot].life.first,
                                    of[t][slot].life.last));
    return GHP_OK;
}

static enum ghp_status layer_choice_spans(struct ghp_memory_maker *m, int v, int flat)
{
    const struct ghp_layer *layer = &m->model->layers[v];
    struct ghp_split split = m->in->choices[flat];
    struct ghp_local local = ghp_local_of(m->model, v, split, m->in->problem[m->stage]);
    struct ghp_spans *spans = &m->in->layer_spans;
    int lives;

    m->piece.n_instrs = 0;
    GHP_TRY(ghp_lower_layer(m->in->lowering, v, split, m->in->rank[m->stage], &m->piece));
    GHP_TRY(persistent_spans(m, v, split.sharding, &local));
    if (ghp_op_of(layer->op)->is_input && m->in->lowering->prefetch)
        GHP_TRY(
            ghp_memory_lasting(m, spans, tensor_bytes(m, ghp_split_layouts(split).y, layer->out)));
    keeper_of(m, v, &lives);
    GHP_TRY(ghp_memory_span(m, spans, tensor_bytes(m, ghp_split_layouts(split).y, layer->out),
                            m->lives.output[v].first, lives));
    for (int k = 0; k < m->piece.n_instrs;
         k++) /* what is deferred has its scratch at another time */
        if (!m->piece.instrs[k].backward || !ghp_lower_defers_weights(m->in->lowering, v))
            GHP_TRY(instr_spans(m, &m->piece.instrs[k], spans));
    m->in->receive_bytes[flat] = segment_of(m, v, split);
    GHP_TRY(tensors_alone(m, &local));
    if (v < m->in->n_layers - 1) return GHP_OK;
    return ghp_memory_span(m, spans, ghp_labels_bytes(m->model, split, m->in->problem[m->stage]),
                           m->in->n_stages > 1 ? ghp_memory_stretch_of(m).forward
                                               : m->lives.labels.first,
                           m->lives.labels.last);
}

/* ---- edges ---- */

/* Buffers of one step of a reshard: what it receives through, and what it leaves to the next one. */
static enum ghp_status step_spans(struct ghp_memory_maker *m, int index, struct ghp_spans *spans)
{
    const struct ghp_instr *instr = &m->piece.instrs[index];
    struct ghp_shape shape = m->model->layers[m->model->edges[instr->edge].from].out;
    struct ghp_accesses accesses;
    int p = instr->point;

    ghp_instr_accesses(m->in->lowering, &m->piece, index, &accesses);
    for (int i = 0; i < accesses.n; i++)
        if (accesses.access[i].tensor == GHP_TENSOR_BETWEEN && accesses.access[i].writes)
            GHP_TRY(ghp_memory_span(m, spans, tensor_bytes(m, instr->step.to, shape), p, p));
    return instr_spans(m, instr, spans);
}

/* The convolution before a batch norm may leave sums where the norm saves its statistics: that place lives from then. */
static enum ghp_status sums_span(struct ghp_memory_maker *m, int e, int to_flat)
{
    const struct ghp_lowering *lowering = m->in->lowering;
    int conv = m->model->edges[e].from, norm = m->model->edges[e].to;
    struct ghp_local local =
        ghp_local_of(m->model, norm, m->in->choices[to_flat], m->in->problem[m->stage]);

    if (ghp_fuse_summed(m->model, norm) != conv || ghp_lower_recomputes(lowering, conv) ||
        ghp_lower_recomputes(lowering, norm) || !ghp_local_has_pass(&local, GHP_PASS_STATS))
        return GHP_OK;
    return ghp_memory_span(m, &m->in->edge_spans,
                           ghp_local_saved_bytes(&local, lowering->element_bytes),
                           ghp_point_forward(m->model, conv), ghp_point_forward_edge(m->model, e));
}

static enum ghp_status forward_spans(struct ghp_memory_maker *m, int e, int from_flat, int to_flat,
                                     bool changed)
{
    const struct ghp_edge *edge = &m->model->edges[e];
    const struct ghp_layer *from = &m->model->layers[edge->from];
    struct ghp_spans *spans = &m->in->edge_spans;
    int lives, at = ghp_point_forward_edge(m->model, e), keeper = keeper_of(m, edge->from, &lives);

    if (keeper == e)
        GHP_TRY(ghp_memory_span(
            m, spans, tensor_bytes(m, ghp_split_layouts(m->in->choices[from_flat]).y, from->out),
            lives + 1, changed ? at : last_read(m, e, false)));
    if (!changed) return sums_span(m, e, to_flat);
    return ghp_memory_span(
        m, spans,
        tensor_bytes(m, ghp_edge_layouts(m->model, e, m->in->choices[to_flat]).x, from->out), at,
        last_read(m, e, true));
}

/* Whether the consumer's gradient for this edge is its own output gradient's buffer. */
static bool takes_over(const struct ghp_memory_maker *m, int e)
{
    const struct ghp_edge *edge = &m->model->edges[e];

    return ghp_lower_gradient_alias(m->in->lowering, edge->to, edge->slot);
}

/* The last point at which a gradient is read that does not change its layout. */
static int last_gradient_read(const struct ghp_memory_maker *m, int e)
{
    int from = m->model->edges[e].from;

    return ghp_lower_first_gradient(m->model, from) == e ? m->lives.gradient[from].last
                                                         : ghp_point_backward_edge(m->model, e);
}

/* Whether another edge that shares the consumer's gradient could keep it longer; through consumers that hand their own
 * on, it is also the gradient of theirs. */
static bool is_outlived(const struct ghp_memory_maker *m, int e)
{
    for (int at = e; at >= 0 && takes_over(m, at);
         at = ghp_lower_first_gradient(m->model, m->model->edges[at].to)) {
        const struct ghp_layer *to = &m->model->layers[m->model->edges[at].to];

        for (int i = 0; i < to->n_inputs; i++) {
            int other = to->first_edge + i;

            if (other != at && takes_over(m, other) &&
                last_gradient_read(m, other) > last_gradient_read(m, e))
                return true;
        }
    }
    return false;
}

static enum ghp_status backward_spans(struct ghp_memory_maker *m, int e, int from_flat, int to_flat,
                                      bool changed)
{
    const struct ghp_edge *edge = &m->model->edges[e];
    struct ghp_shape shape = m->model->layers[edge->from].out;
    struct ghp_spans *spans = &m->in->edge_spans;
    int at = ghp_point_backward_edge(m->model, e);
    int first = ghp_point_backward(m->model, edge->to) + (takes_over(m, e) ? 1 : 0);
    int last = last_gradient_read(m, e);
    int64_t made =
        tensor_bytes(m, ghp_edge_layouts(m->model, e, m->in->choices[to_flat]).dx, shape);

    if (!wanted(m, edge->from)) return GHP_OK;
    if (ghp_op_of(m->model->layers[edge->from].op)->is_input)
        last = ghp_point_backward(m->model, edge->to);
    if (!m->outlived[e]) GHP_TRY(ghp_memory_span(m, spans, made, first, changed ? at : last));
    if (!changed) return GHP_OK;
    return ghp_memory_span(m, spans,
                           tensor_bytes(m, ghp_split_layouts(m->in->choices[from_flat]).dy, shape),
                           at, last);
}

/* An edge to another stage: the reader's image and its gradient, and on the other side the gradient that arrives.
 * Images of several readers, reshards, buffers on the way, and what goes to another chunk of the same stage are left
 * out: a bound from below. */
static enum ghp_status p2p_transfer_spans(struct ghp_memory_maker *m, int e, int from_flat,
                                          int to_flat)
{
    const struct ghp_edge *edge = &m->model->edges[e];
    struct ghp_shape shape = m->model->layers[edge->from].out;
    struct ghp_layouts reader = ghp_edge_layouts(m->model, e, m->in->choices[to_flat]);
    int at = ghp_point_forward_edge(m->model, e), carrier;
    int last = last_read(m, e, false);
    struct ghp_spans *spans = &m->in->edge_spans;

    if (m->in->stage[edge->from] % m->in->n_owners == m->stage % m->in->n_owners ||
        ghp_remote_activation_readers(m->model, m->in->lowering->staging, edge->from,
                                      m->stage % m->in->n_owners, &carrier) != 1)
        return GHP_OK;
    GHP_TRY(ghp_memory_span(m, spans, tensor_bytes(m, reader.x, shape), at, last));
    if (!wanted(m, edge->from) || ghp_op_of(m->model->layers[edge->from].op)->is_input)
        return GHP_OK;
    GHP_TRY(ghp_memory_span(m, spans, tensor_bytes(m, reader.dx, shape),
                            ghp_point_backward(m->model, edge->to) + (takes_over(m, e) ? 1 : 0),
                            ghp_point_backward_edge(m->model, e)));
    m->stage = m->in->stage[edge->from];
    at = ghp_point_backward(m->model, edge->from);
    return ghp_memory_span(
        m, spans, tensor_bytes(m, ghp_split_layouts(m->in->choices[from_flat]).dy, shape), at, at);
}

static enum ghp_status pair_spans(struct ghp_memory_maker *m, int e, int from_flat, int to_flat)
{
    bool changed[2] = {false, false};

    m->piece.n_instrs = 0;
    m->stage = m->in->stage[m->model->edges[e].to];
    if (m->in->stage[m->model->edges[e].from] != m->stage)
        return p2p_transfer_spans(m, e, from_flat, to_flat);
    GHP_TRY(ghp_lower_edge(m->in->lowering, e, m->in->choices[from_flat], m->in->choices[to_flat],
                           m->in->rank[m->stage], &m->piece));
    for (int k = 0; k < m->piece.n_instrs; k++) {
        const struct ghp_instr *instr = &m->piece.instrs[k];

        if (instr->kind != GHP_INSTR_RESHARD) continue;
        changed[instr->backward] = true;
        GHP_TRY(step_spans(m, k, &m->in->edge_spans));
    }
    GHP_TRY(forward_spans(m, e, from_flat, to_flat, changed[0]));
    return backward_spans(m, e, from_flat, to_flat, changed[1]);
}

/* ---- the whole ---- */

static enum ghp_status all_spans(struct ghp_memory_maker *m)
{
    struct ghp_instance *in = m->in;

    for (int v = 0; v < in->n_layers; v++)
        GHP_TRY(learn_layer(m, v));
    for (int e = 0; e < in->n_edges; e++)
        m->outlived[e] = is_outlived(m, e);
    for (int v = 0; v < in->n_layers; v++)
        for (int flat = in->first_choice[v]; flat < in->first_choice[v + 1]; flat++) {
            in->layer_spans.first[flat] = in->layer_spans.n;
            m->stage = in->stage[v];
            GHP_TRY(layer_choice_spans(m, v, flat));
        }
    in->layer_spans.first[in->first_choice[in->n_layers]] = in->layer_spans.n;
    for (int e = 0; e < in->n_edges; e++) {
        int from = in->edges[e].from, to = in->edges[e].to, pair = in->first_pair[e];

        for (int a = 0; a < in->n_classes[from]; a++)
            for (int b = 0; b < in->n_classes[to]; b++) {
                in->edge_spans.first[pair++] = in->edge_spans.n;
                GHP_TRY(pair_spans(m, e, ghp_instance_of_class(in, from, a),
                                   ghp_instance_of_class(in, to, b)));
            }
    }
    in->edge_spans.first[in->first_pair[in->n_edges]] = in->edge_spans.n;
    return GHP_OK;
}

enum ghp_status ghp_memory_init(struct ghp_instance *in)
{
    struct ghp_memory_maker m = {
        .in = in, .model = in->lowering->model, .lives.labels = GHP_LIFE_NONE};
    int n = 2 * in->n_layers + in->n_edges;
    enum ghp_status status = GHP_OK;

    if (in->has_memory) return GHP_OK;
    m.lives.output = ghp_alloc((size_t)n, sizeof *m.lives.output);
    m.outlived = ghp_alloc((size_t)in->n_edges + 1, sizeof *m.outlived);
    in->layer_spans.first =
        ghp_alloc((size_t)in->first_choice[in->n_layers] + 1, sizeof *in->layer_spans.first);
    in->edge_spans.first =
        ghp_alloc((size_t)in->first_pair[in->n_edges] + 1, sizeof *in->edge_spans.first);
    in->receive_bytes =
        ghp_alloc((size_t)in->first_choice[in->n_layers], sizeof *in->receive_bytes);
    if (m.lives.output == NULL || m.outlived == NULL || in->layer_spans.first == NULL ||
        in->edge_spans.first == NULL || in->receive_bytes == NULL)
        status = GHP_NO_MEMORY();
    for (int i = 0; status == GHP_OK && i < n; i++)
        m.lives.output[i] = GHP_LIFE_NONE;
    m.lives.gradient = m.lives.output + in->n_layers;
    m.lives.input = m.lives.gradient + in->n_layers;
    if (status == GHP_OK) status = all_spans(&m);
    in->has_memory = status == GHP_OK;
    ghp_program_release(&m.piece);
    free(m.lives.output);
    free(m.outlived);
    return status;
}
