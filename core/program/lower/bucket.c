/* core/program/lower/bucket.c - gradients that are reduced together: their bytes, and which layers share a bucket. */
#include "core/model/precision.h"
#include "core/program/lower/bucket.h"
#include "core/program/lower/flow.h"
#include "core/program/lower/points.h"

#include <stdlib.h>
#include <string.h>

int64_t ghp_lower_gradient_bytes(const struct ghp_lowering *lowering, int layer,
                                 struct ghp_split split)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    struct ghp_local local = ghp_local_of(lowering->model, layer, split, lowering->problem);
    bool states = ghp_lowering_reduces_states(lowering, l);
    int bytes = lowering->reduced_bytes > 0 ? lowering->reduced_bytes
                                            : ghp_parameter_bytes(lowering->element_bytes);
    int64_t sum = (states ? l->n_states : 0) * ghp_align(local.c * bytes);
    for (int p = 0; p < l->n_params && !l->fixed; p++)
        sum += ghp_align(ghp_local_param_elements(&local, p) * bytes);
    return sum;
}

static bool has_dim(enum ghp_op op, enum ghp_dim dim)
{
    const struct ghp_op_param *params = ghp_op_of(op)->params;
    for (int p = 0; p < ghp_op_params(op); p++)
        for (int d = 0; d < GHP_MAX_DIMS; d++)
            if (params[p].dims[d] == dim) return true;
    return false;
}

int ghp_layer_reduce_tp_size(const struct ghp_lowering *lowering, int layer, struct ghp_split split)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    bool global = ghp_op_of(l->op)->has_batch_statistics && !l->norm.local_stats &&
                  l->norm.ghost_batch == 0 && !ghp_lowering_differs(lowering);
    if (!ghp_lowering_changes(lowering, layer) || global) return 0;
    if (split.kind == GHP_SPLIT_CHANNEL && has_dim(l->op, GHP_DIM_HEAD)) return 1;
    return has_dim(l->op, GHP_DIM_POSITION) ? split.tp_size : ghp_split_sharers(split);
}

int ghp_lower_held(const struct ghp_lowering *lowering, int layer)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    if (l->n_params > 0) return layer;
    return l->tied > 0 ? ghp_stage_partner(lowering->model, lowering->staging, layer) : -1;
}

bool ghp_lowering_changes(const struct ghp_lowering *lowering, int layer)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    return l->n_params > 0 && (!l->fixed || ghp_lowering_reduces_states(lowering, l));
}

int ghp_lower_changed(const struct ghp_lowering *lowering, int layer)
{
    int held = ghp_lower_held(lowering, layer);
    return held >= 0 && ghp_lowering_changes(lowering, held) ? held : -1;
}

static bool reads_bf16(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    if (l->op == GHP_OP_BIAS) return model->layers[l->inputs[0]].op == GHP_OP_LINEAR;
    return ghp_op_multiplies_weights(l->op);
}

bool ghp_lower_has_bf16(const struct ghp_lowering *lowering, int layer, int p)
{
    const struct ghp_model *model = lowering->model;
    bool kept = lowering->bf16_weights && !lowering->forward_only &&
                !ghp_lowering_differs(lowering) && !ghp_lowering_sync(lowering)->serves;
    if (!kept || p > 0) return false;
    if (reads_bf16(model, layer)) return true;
    for (int v = layer + 1; model->layers[layer].shared && v < model->n_layers; v++)
        if (ghp_model_owner(model, v) == layer && reads_bf16(model, v)) return true;
    return false;
}

bool ghp_lower_gathers_bf16(const struct ghp_lowering *lowering, int layer)
{
    const struct ghp_model *model = lowering->model;
    bool all = lowering->element_bytes == 2 && lowering->reduced_bytes == 0;
    int end = model->layers[layer].shared ? model->n_layers : layer + 1;
    for (int v = layer; all && v < end; v++)
        if (ghp_model_owner(model, v) == layer)
            all = ghp_op_multiplies_weights(model->layers[v].op) ||
                  ghp_op_of(model->layers[v].op)->takes_ids;
    return all;
}

int64_t ghp_lower_bf16_bytes(const struct ghp_lowering *lowering, int layer,
                             const struct ghp_local *local)
{
    int64_t sum = 0;
    for (int p = 0; p < lowering->model->layers[layer].n_params; p++)
        if (ghp_lower_has_bf16(lowering, layer, p))
            sum += ghp_align(ghp_local_param_elements(local, p) * lowering->element_bytes);
    return sum;
}

bool ghp_lower_has_sharer_after(const struct ghp_lowering *lowering, int layer)
{
    const struct ghp_model *model = lowering->model;
    const struct ghp_layer *l = &model->layers[layer];
    if ((l->tied == 0 && !l->shared) || ghp_stage_partner(model, lowering->staging, layer) >= 0)
        return false;
    for (int v = layer + 1; v < model->n_layers; v++)
        if (ghp_model_owner(model, v) == ghp_model_owner(model, layer)) return true;
    return false;
}

bool ghp_lower_adds_weight_gradient(const struct ghp_lowering *lowering, int layer)
{
    return ghp_op_of(lowering->model->layers[layer].op)->takes_ids &&
           ghp_lower_has_sharer_after(lowering, layer);
}

bool ghp_lower_makes_summand(const struct ghp_lowering *lowering, int layer, bool first_micro,
                             enum ghp_param_sharding sharding)
{
    bool further = !first_micro || ghp_lower_has_sharer_after(lowering, layer);
    return further && !ghp_sharding_reduces_each(sharding) &&
           !ghp_lower_adds_weight_gradient(lowering, layer);
}

struct ghp_ranks ghp_bucket_ranks(const struct ghp_lowering *lowering,
                                  const struct ghp_placement *placement,
                                  const struct ghp_bucket_range *range)
{
    int workers = placement->problem.workers,
        tp_size = range->tp_size > 0 ? range->tp_size : workers;
    if (range->partner >= 0) {
        const int stages[2] = {ghp_stage_of(lowering->staging, range->ready_layer),
                               ghp_stage_of(lowering->staging, range->partner)};
        return ghp_stage_partner_ranks(lowering->staging, placement, stages, tp_size);
    }
    if (range->shards > 0)
        return ghp_placement_ranks(placement,
                                   ghp_ranks_shards(placement->number, tp_size, range->shards));
    return ghp_placement_ranks(placement, ghp_ranks_replica(placement->number, tp_size, workers));
}

struct ghp_ranks ghp_bucket_copies(const struct ghp_placement *placement,
                                   const struct ghp_bucket_range *range)
{
    return ghp_placement_ranks(placement,
                               ghp_ranks_copies(placement->number, range->tp_size, range->shards,
                                                placement->problem.workers));
}

/* The number of replicas, each of `tp_size` workers, among which a bucket is divided: all, unless a smaller part of
 * them lies in a group of the method's. */
static int shards_of(const struct ghp_method *method, int tp_size, int replicas)
{
    int shards = method->shard_within % tp_size == 0 ? method->shard_within / tp_size : 0;

    return shards > 1 && replicas % shards == 0 ? shards : replicas;
}

/* Adds the gradients of the layer that comes next in backward order. */
static void add_layer(const struct ghp_lowering *lowering, int workers, int layer, int64_t bytes,
                      struct ghp_bucket_range *range)
{
    const struct ghp_sync_ops *sync = ghp_lowering_sync(lowering);
    int replicas = range->tp_size > 0 ? workers / range->tp_size : 1;
    range->ready_layer = layer;
    range->gradient_bytes += bytes;
    range->bytes = range->gradient_bytes;
    range->partner = ghp_stage_partner(lowering->model, lowering->staging, layer);
    if (sync->serves && range->tp_size > 0) {
        int servers = lowering->method.sync.servers;
        range->server_shard_bytes = ghp_align((range->gradient_bytes + servers - 1) / servers);
        range->bytes = range->server_shard_bytes * servers;
        range->holds_weights = true;
        range->updated_here = sync->mixing != NULL && sync->mixing->updates;
        return;
    }
    range->holds_weights = sync->mixing != NULL;
    if (replicas < 2 || range->partner >= 0) {
        range->sharding = GHP_SHARDING_NONE;
        return;
    }
    if ((range->sharding != GHP_SHARDING_NONE || sync->shards) &&
        !ghp_layer_has_stats_delta(&lowering->model->layers[layer])) {
        range->shards = shards_of(&lowering->method, range->tp_size, replicas);
        range->shard_bytes = ghp_align((range->gradient_bytes + range->shards - 1) / range->shards);
        range->bytes = range->shard_bytes * range->shards;
    }
    if (range->shard_bytes == 0) range->sharding = GHP_SHARDING_NONE;
    range->holds_weights = (range->shard_bytes > 0 && !ghp_sharding_gathers(range->sharding)) ||
                           sync->replicas || sync->mixing != NULL;
}

struct ghp_bucket_range ghp_bucket_alone(const struct ghp_lowering *lowering, int workers,
                                         int layer, struct ghp_split split)
{
    struct ghp_bucket_range own = {.tp_size = ghp_layer_reduce_tp_size(lowering, layer, split),
                                   .partner = -1,
                                   .sharding = split.sharding};

    if (ghp_lowering_changes(lowering, layer))
        add_layer(lowering, workers, layer, ghp_lower_gradient_bytes(lowering, layer, split), &own);
    return own;
}

void ghp_bucket_plan_release(struct ghp_bucket_plan *plan)
{
    free(plan->of_layer);
    free(plan->ranges);
    memset(plan, 0, sizeof *plan);
}

enum ghp_status ghp_bucket_plan_init(const struct ghp_lowering *lowering,
                                     const struct ghp_placement *placement,
                                     const struct ghp_split *splits, struct ghp_bucket_plan *plan)
{
    int n_layers = lowering->model->n_layers;
    bool mixes = ghp_lowering_sync(lowering)->mixing != NULL; /* in one message */
    *plan = (struct ghp_bucket_plan){0};
    plan->of_layer = ghp_alloc((size_t)n_layers, sizeof *plan->of_layer);
    plan->ranges = ghp_alloc((size_t)n_layers, sizeof *plan->ranges);
    if (plan->of_layer == NULL || plan->ranges == NULL) {
        ghp_bucket_plan_release(plan);
        return GHP_NO_MEMORY();
    }
    for (int layer = 0; layer < n_layers; layer++)
        plan->of_layer[layer] = -1;
    for (int layer = n_layers - 1; layer >= 0; layer--) {
        int held = ghp_lower_changed(lowering, layer);
        if (held < 0 || !ghp_placement_owns(placement, layer)) continue;
        int tp_size = ghp_layer_reduce_tp_size(lowering, held, splits[held]);
        int64_t bytes = ghp_lower_gradient_bytes(lowering, held, splits[held]);
        int open = plan->n, workers = placement->problem.workers;
        struct ghp_bucket_range own = {.tp_size = tp_size, .sharding = splits[held].sharding};
        add_layer(lowering, workers, held, bytes, &own);
        for (int b = 0; b < plan->n; b++)
            if (plan->ranges[b].tp_size == tp_size && tp_size > 0 && own.partner < 0 &&
                plan->ranges[b].sharding == own.sharding && !ghp_sharding_gathers(own.sharding) &&
                plan->ranges[b].partner < 0 &&
                ghp_chunk_of(lowering->staging, plan->ranges[b].ready_layer) ==
                    ghp_chunk_of(lowering->staging, held) &&
                (plan->ranges[b].gradient_bytes < lowering->method.bucket_bytes || mixes) &&
                (plan->ranges[b].shard_bytes > 0) == (own.shard_bytes > 0))
                open = b;
        plan->of_layer[held] = open;
        if (open < plan->n)
            add_layer(lowering, workers, held, bytes, &plan->ranges[open]);
        else
            plan->ranges[plan->n++] = own;
    }
    return GHP_OK;
}
