/* core/program/lower/layer.c - the instructions of one layer under its split: load, update, statistics, passes,
 * reductions. */
#include "core/model/precision.h"
#include "core/program/lower/layer.h"
#include "core/program/lower/points.h"
#include "core/program/lower/scaling.h"
#include "core/program/ring.h"

/* What a plan says of a layer holds wherever the tensor lies in whole blocks, whatever its layout. */
static struct ghp_nchw16c nchw16c_of(const struct ghp_emitter *e, const struct ghp_layer *l,
                                     const struct ghp_local *local)
{
    const bool *nchw16c = e->lowering->nchw16c;
    if (nchw16c == NULL) return (struct ghp_nchw16c){0};
    return (struct ghp_nchw16c){
        .requested = true,
        .x = l->n_inputs > 0 && nchw16c[l->inputs[0]] && ghp_whole_blocks(local->c),
        .y = nchw16c[l - e->lowering->model->layers] && ghp_whole_blocks(local->k)};
}

static enum ghp_status emit_compute(const struct ghp_emitter *e, int layer, struct ghp_split split,
                                    enum ghp_pass pass)
{
    const struct ghp_local local =
        ghp_local_of(e->lowering->model, layer, split, e->placement.problem);
    bool backward = ghp_pass_is_backward(pass);
    struct ghp_instr *instr =
        ghp_emitter_add(e, GHP_INSTR_COMPUTE, ghp_emitter_point(e, layer, backward));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = backward;
    instr->pass = pass;
    instr->local = local;
    instr->layouts = ghp_split_layouts(split);
    if (split.kind == GHP_SPLIT_ROWS)
        instr->first_row = e->placement.number % split.tp_size * local.vocabulary;
    instr->adds_weight = ghp_lower_adds_weight_gradient(e->lowering, layer);
    instr->nchw16c = nchw16c_of(e, &e->lowering->model->layers[layer], &local);
    instr->sharding = ghp_emitter_sharding(e, layer, split);
    if (ghp_op_of(local.op)->has_batch_statistics) {
        bool own = local.norm.local_stats || ghp_lowering_differs(e->lowering);
        int64_t samples = own                          ? local.n
                          : local.norm.ghost_batch > 0 ? local.norm.ghost_batch
                                                       : e->placement.micro_batch;
        instr->stat_count = samples * local.h * local.w;
    }
    return GHP_OK;
}

/* The ranks that share the statistics: all that hold other samples, or those that hold the same ghost batch. For a loss
 * it is the subgroup, whose workers have parts of the same rows. */
static struct ghp_ranks stat_ranks(const struct ghp_emitter *e, const struct ghp_local *local,
                                   int tp_size)
{
    int number = e->placement.number, q = 1;
    if (local->parts > 0)
        return ghp_placement_ranks(&e->placement, ghp_ranks_subgroup(number, tp_size));
    if (local->norm.local_stats) return ghp_emitter_replica_group(e, e->placement.problem.workers);
    if (local->norm.ghost_batch == 0) return ghp_emitter_replica_group(e, tp_size);
    if (local->n < local->norm.ghost_batch) q = (int)(local->norm.ghost_batch / local->n);
    return ghp_placement_ranks(
        &e->placement,
        (struct ghp_ranks){.first = number / tp_size / q * q * tp_size + number % tp_size,
                           .count = q,
                           .stride = tp_size});
}

/* The sum of a pass's statistics over the ranks that share them. */
static enum ghp_status emit_stat_reduce(const struct ghp_emitter *e, int layer,
                                        struct ghp_split split, bool backward)
{
    struct ghp_local local = ghp_local_of(e->lowering->model, layer, split, e->placement.problem);
    struct ghp_ranks ranks = stat_ranks(e, &local, split.tp_size);
    if (local.norm.local_stats || ranks.count == 1 || ghp_lowering_differs(e->lowering))
        return GHP_OK;
    struct ghp_instr *instr =
        ghp_emitter_add(e, GHP_INSTR_STAT_REDUCE, ghp_emitter_point(e, layer, backward));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = backward;
    instr->local = local;
    instr->ranks = ranks;
    instr->bytes = ghp_local_stats_bytes(&local) / ghp_local_repeat(&local);
    return GHP_OK;
}

static enum ghp_status emit_stats(const struct ghp_emitter *e, int layer, struct ghp_split split,
                                  bool backward)
{
    return emit_compute(e, layer, split, backward ? GHP_PASS_BACKWARD_STATS : GHP_PASS_STATS);
}

static enum ghp_status emit_load(const struct ghp_emitter *e, struct ghp_split split,
                                 const struct ghp_local *local)
{
    struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_LOAD, ghp_emitter_point(e, 0, false));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = 0;
    instr->local = *local;
    instr->layouts = ghp_split_layouts(split);
    int64_t samples = ghp_layout_samples(ghp_split_layouts(split).y, e->placement.problem);
    int64_t labels = e->placement.n_stages == 1
                         ? samples * ghp_model_labels(e->lowering->model) * (int64_t)sizeof(int32_t)
                         : 0;
    struct ghp_shape out = e->lowering->model->layers[0].out;
    instr->bytes =
        ghp_local_out_elements(local) * ghp_shape_element_bytes(out, e->lowering->element_bytes) +
        labels;
    return GHP_OK;
}

enum ghp_status ghp_emit_labels(const struct ghp_emitter *e)
{
    int loss = e->lowering->model->n_layers - 1;
    struct ghp_instr *instr = ghp_emitter_add(e, GHP_INSTR_LOAD, e->forward_base);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = loss;
    instr->layouts = ghp_split_layouts(e->splits[loss]);
    instr->bytes = ghp_labels_bytes(e->lowering->model, e->splits[loss], e->placement.problem);
    return GHP_OK;
}

static enum ghp_status check_split(const struct ghp_emitter *e, int layer, struct ghp_split split)
{
    const struct ghp_layer *l = &e->lowering->model->layers[layer];
    GHP_TRY(ghp_split_check(l, split, e->placement.problem));
    GHP_TRY(ghp_stage_check_sharding(e->lowering->model, e->lowering->staging, layer, split));
    if (ghp_stage_takes_tp_size(e->lowering->staging, e->placement.stage, e->lowering->problem,
                                split.tp_size))
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' is split over %d workers of stage %d, whose shares differ among "
                    "them; use a TP size that divides the stage's grain",
                    l->name, split.tp_size, e->placement.stage);
}

enum ghp_status ghp_emit_layer_update(const struct ghp_emitter *e, int layer,
                                      struct ghp_split split, int point)
{
    int held = ghp_lower_changed(e->lowering, layer);
    struct ghp_local local;
    struct ghp_instr *instr;
    if (held < 0) return GHP_OK;
    local = ghp_local_of(e->lowering->model, held,
                         held == layer ? split : ghp_split_of_owner(split), e->placement.problem);
    instr = ghp_emitter_add_update(e, held,
                                   e->lowering->model->layers[held].fixed
                                       ? 0
                                       : ghp_local_weight_elements(&local) *
                                             ghp_parameter_bytes(e->lowering->element_bytes),
                                   point);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->local = local;
    return GHP_OK;
}

enum ghp_status ghp_emit_whole_update(const struct ghp_emitter *e, int layer,
                                      struct ghp_split split)
{
    return ghp_emit_layer_update(e, layer, split, ghp_emitter_point(e, layer, false));
}

/* ---- attentions in blocks (program/ring.h) ---- */

static struct ghp_instr *add_block(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                   const struct ghp_instr *block)
{
    struct ghp_instr *instr = ghp_emitter_add(e, kind, block->point);

    if (instr == NULL) return NULL;
    instr->layer = block->layer;
    instr->backward = block->backward;
    instr->local = block->local;
    instr->layouts = block->layouts;
    instr->blocks = block->blocks;
    instr->block = block->block;
    return instr;
}

/* Another worker's block lies wholly before the own positions, or is left out: no part of it is hidden. */
static enum ghp_status emit_block(const struct ghp_emitter *e, const struct ghp_instr *block)
{
    struct ghp_instr *instr = add_block(e, GHP_INSTR_COMPUTE, block);

    if (instr == NULL) return GHP_NO_MEMORY();
    instr->pass = block->pass;
    instr->copy_bytes = ghp_ring_block_bytes(instr, e->lowering->element_bytes);
    if (block->block > 0) instr->local.heads.causal = false;
    return GHP_OK;
}

/* Brings the block; backward with the sums of its gradients, which alone return at last. */
static enum ghp_status emit_shift(const struct ghp_emitter *e, const struct ghp_instr *block)
{
    struct ghp_instr *instr = add_block(e, GHP_INSTR_SHIFT, block);
    bool returns = block->block == block->blocks;
    int64_t both = ghp_ring_tensor_bytes(block, GHP_RING_KEYS, e->lowering->element_bytes) +
                   ghp_ring_tensor_bytes(block, GHP_RING_VALUES, e->lowering->element_bytes);

    if (instr == NULL) return GHP_NO_MEMORY();
    instr->ranks =
        ghp_placement_ranks(&e->placement, ghp_ranks_subgroup(e->placement.number, block->blocks));
    instr->bytes = block->backward && !returns ? 2 * both : both;
    return GHP_OK;
}

/* One pass of an attention whose keys and values come in blocks: its forward pass or its data gradients. */
static enum ghp_status emit_ring(const struct ghp_emitter *e, int layer, struct ghp_split split,
                                 enum ghp_pass pass)
{
    bool backward = ghp_pass_is_backward(pass);
    struct ghp_instr block = {
        .layer = layer,
        .point = ghp_emitter_point(e, layer, backward),
        .backward = backward,
        .pass = pass,
        .local = ghp_local_of(e->lowering->model, layer, split, e->placement.problem),
        .layouts = ghp_split_layouts(split),
        .blocks = split.tp_size};

    GHP_TRY(emit_block(e, &block));
    for (block.block = 1; block.block < block.blocks; block.block++) {
        GHP_TRY(emit_shift(e, &block));
        GHP_TRY(emit_block(e, &block));
    }
    return backward ? emit_shift(e, &block) : GHP_OK;
}

/* ---- passes ---- */

enum ghp_status ghp_emit_layer_forward(const struct ghp_emitter *e, int layer,
                                       struct ghp_split split)
{
    const struct ghp_layer *l = &e->lowering->model->layers[layer];
    const struct ghp_sync_ops *sync = ghp_emitter_sync(e, layer, split);
    GHP_TRY(check_split(e, layer, split));
    struct ghp_local local = ghp_local_of(e->lowering->model, layer, split, e->placement.problem);
    if (ghp_op_of(l->op)->is_input) return emit_load(e, split, &local);
    if (!e->lowering->forward_only && e->first && e->recompute_at < 0)
        GHP_TRY((sync->emit_before != NULL ? sync->emit_before : ghp_emit_whole_update)(e, layer,
                                                                                        split));
    if (ghp_local_has_pass(&local, GHP_PASS_STATS) &&
        (local.parts > 0 || !e->lowering->forward_only)) {
        GHP_TRY(emit_stats(e, layer, split, false));
        GHP_TRY(emit_stat_reduce(e, layer, split, false));
    }
    if (split.kind == GHP_SPLIT_RING) return emit_ring(e, layer, split, GHP_PASS_FORWARD);
    return emit_compute(e, layer, split, GHP_PASS_FORWARD);
}

static enum ghp_status emit_sum_of(const struct ghp_emitter *e, enum ghp_instr_kind kind, int layer,
                                   const struct ghp_bucket_range *range, int bucket,
                                   struct ghp_ranks ranks)
{
    struct ghp_instr *instr =
        ghp_emitter_add(e, kind,
                        ghp_placement_owns(&e->placement, layer) ? ghp_emitter_point(e, layer, true)
                                                                 : e->program->n_points - 1);
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = true;
    instr->bucket = bucket;
    instr->ranks = ranks;
    instr->bytes = kind == GHP_INSTR_SHARD_REDUCE ? range->shard_bytes : range->bytes;
    instr->sharding = range->sharding;
    if (kind != GHP_INSTR_ALL_REDUCE || !e->lowering->method.reduces_bf16) return GHP_OK;
    instr->in_bf16 = true;
    instr->bytes = range->bytes / ghp_parameter_bytes(e->lowering->element_bytes) * 2;
    instr->copy_bytes = instr->bytes + range->bytes;
    return GHP_OK;
}

static enum ghp_status emit_reduction(const struct ghp_emitter *e, int layer,
                                      struct ghp_bucket_range range, int bucket)
{
    struct ghp_ranks ranks = ghp_bucket_ranks(e->lowering, &e->placement, &range), copies;
    if (range.tp_size == 0 || ranks.count == 1) return GHP_OK;
    if (range.shards == 0)
        return emit_sum_of(e, GHP_INSTR_ALL_REDUCE, layer, &range, bucket, ranks);
    GHP_TRY(emit_sum_of(e, GHP_INSTR_REDUCE_SCATTER, layer, &range, bucket, ranks));
    copies = ghp_bucket_copies(&e->placement, &range);
    return copies.count > 1 ? emit_sum_of(e, GHP_INSTR_SHARD_REDUCE, layer, &range, bucket, copies)
                            : GHP_OK;
}

/* The reductions whose last gradient the layer has made: into sums that all replicas get, or of each one's optimizer
 * shard. */
static enum ghp_status emit_reductions(const struct ghp_emitter *e, int layer,
                                       struct ghp_split split)
{
    int bucket;
    if (e->buckets == NULL)
        return emit_reduction(e, layer, ghp_emitter_range(e, layer, split, &bucket), -1);
    for (int b = 0; b < e->buckets->n; b++)
        if (e->buckets->ranges[b].ready_layer == layer &&
            (e->last || ghp_sharding_reduces_each(e->buckets->ranges[b].sharding)))
            GHP_TRY(emit_reduction(e, layer, e->buckets->ranges[b], b));
    return GHP_OK;
}

enum ghp_status ghp_emit_partner_reductions(const struct ghp_emitter *e)
{
    for (int b = 0; b < e->buckets->n; b++) {
        int layer = e->buckets->ranges[b].ready_layer;
        if (!ghp_placement_owns(&e->placement, layer))
            GHP_TRY(emit_reduction(e, layer, e->buckets->ranges[b], b));
    }
    return GHP_OK;
}

/* The weight gradient of a further micro-batch, or of a further layer with the parameters, is added to the sum, unless
 * the pass itself does so. A piece is of all micro-batches. */
static enum ghp_status emit_sum(const struct ghp_emitter *e, int layer, struct ghp_split split,
                                const struct ghp_local *local)
{
    bool first =
        ghp_staging_micro_batches(e->lowering->staging) == 1 || (e->splits != NULL && e->first);
    if (!ghp_lower_makes_summand(e->lowering, layer, first, ghp_emitter_sharding(e, layer, split)))
        return GHP_OK;
    struct ghp_instr *instr =
        ghp_emitter_add(e, GHP_INSTR_ACCUMULATE, ghp_emitter_point(e, layer, true));
    if (instr == NULL) return GHP_NO_MEMORY();
    instr->layer = layer;
    instr->backward = true;
    instr->pass = GHP_PASS_BACKWARD_WEIGHT;
    instr->local = *local;
    instr->bytes =
        ghp_local_weight_elements(local) * ghp_parameter_bytes(e->lowering->element_bytes);
    return GHP_OK;
}

/* Whether an in-edge wants this layer's data gradient; an addition has nothing to do for those it hands its own on
 * to. */
static bool makes_gradient(const struct ghp_lowering *lowering, int layer)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    bool makes = false;
    for (int i = 0; i < l->n_inputs; i++)
        makes = makes || (ghp_lower_needs_gradient(lowering, l->inputs[i]) &&
                          (!ghp_op_of(l->op)->hands_gradient_on ||
                           !ghp_lower_gradient_alias(lowering, layer, i)));
    return makes;
}

/* The weight gradients of a micro-batch, and what follows from them; none of a layer that is fixed. */
static enum ghp_status emit_weights(const struct ghp_emitter *e, int layer, struct ghp_split split,
                                    const struct ghp_local *local)
{
    if (!ghp_layer_trains(e->lowering->model, layer)) return GHP_OK;
    GHP_TRY(emit_compute(e, layer, split, GHP_PASS_BACKWARD_WEIGHT));
    GHP_TRY(ghp_emit_batch_norms(e, layer, split, local));
    return emit_sum(e, layer, split, local);
}

static enum ghp_status emit_ready(const struct ghp_emitter *e, int layer, struct ghp_split split)
{
    const struct ghp_sync_ops *sync = ghp_emitter_sync(e, layer, split);
    if (sync->reduces) GHP_TRY(emit_reductions(e, layer, split));
    return sync->emit_ready != NULL ? sync->emit_ready(e, layer, split) : GHP_OK;
}

/* A piece is all of its layer. */
static bool is_deferred(const struct ghp_emitter *e, int layer)
{
    return e->splits != NULL && ghp_lower_defers_weights(e->lowering, layer);
}

enum ghp_status ghp_emit_layer_deferred(const struct ghp_emitter *e, int layer,
                                        struct ghp_split split)
{
    const struct ghp_layer *l = &e->lowering->model->layers[layer];
    if (!ghp_op_has_pass(l->op, GHP_PASS_BACKWARD_WEIGHT) ||
        !ghp_lower_needs_gradient(e->lowering, layer))
        return GHP_OK;
    struct ghp_local local = ghp_local_of(e->lowering->model, layer, split, e->placement.problem);
    if (is_deferred(e, layer)) GHP_TRY(emit_weights(e, layer, split, &local));
    return emit_ready(e, layer, split);
}

/* Emits the gather before the backward pass, for a piece whose weights are gathered for each pass. */
static enum ghp_status emit_backward_gather(const struct ghp_emitter *e, int layer,
                                            struct ghp_split split)
{
    int owner = ghp_model_owner(e->lowering->model, layer), bucket;
    struct ghp_bucket_range range;
    struct ghp_instr *gather;
    if (e->buckets != NULL || ghp_emitter_sharding(e, layer, split) != GHP_SHARDING_PASS ||
        !makes_gradient(e->lowering, layer) ||
        (ghp_op_uses(e->lowering->model->layers[layer].op, GHP_PASS_BACKWARD_DATA) & GHP_AT_W) == 0)
        return GHP_OK;
    range =
        ghp_emitter_range(e, owner, owner == layer ? split : ghp_split_of_owner(split), &bucket);
    gather = ghp_emitter_add_gather(e, owner, bucket, &range, ghp_emitter_point(e, layer, true));
    if (gather == NULL) return GHP_NO_MEMORY();
    gather->backward = true;
    return GHP_OK;
}

enum ghp_status ghp_emit_layer_backward(const struct ghp_emitter *e, int layer,
                                        struct ghp_split split)
{
    const struct ghp_layer *l = &e->lowering->model->layers[layer];
    if (ghp_op_of(l->op)->is_input || !ghp_lower_needs_gradient(e->lowering, layer)) return GHP_OK;
    struct ghp_local local = ghp_local_of(e->lowering->model, layer, split, e->placement.problem);
    bool statistics = ghp_op_has_pass(l->op, GHP_PASS_BACKWARD_STATS);
    GHP_TRY(emit_backward_gather(e, layer, split));
    bool own_sums = ghp_lowering_has_stats_delta(
        e->lowering, l); /* its weight gradients are of its own samples */
    if (statistics) GHP_TRY(emit_stats(e, layer, split, true));
    if (statistics && !own_sums) GHP_TRY(emit_stat_reduce(e, layer, split, true));
    if (ghp_op_has_pass(l->op, GHP_PASS_BACKWARD_WEIGHT)) {
        if (!is_deferred(e, layer)) GHP_TRY(emit_weights(e, layer, split, &local));
        if (e->splits == NULL || !ghp_staging_defers_weights(e->lowering->staging))
            GHP_TRY(emit_ready(e, layer, split));
    }
    if (own_sums) GHP_TRY(emit_stat_reduce(e, layer, split, true));
    if (!makes_gradient(e->lowering, layer) || !ghp_op_has_pass(l->op, GHP_PASS_BACKWARD_DATA))
        return GHP_OK;
    if (split.kind == GHP_SPLIT_RING) return emit_ring(e, layer, split, GHP_PASS_BACKWARD_DATA);
    return emit_compute(e, layer, split, GHP_PASS_BACKWARD_DATA);
}
