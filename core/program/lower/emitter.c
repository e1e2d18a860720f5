/* core/program/lower/emitter.c - see emitter.h. */
#include "core/base/array.h"
#include "core/model/precision.h"
#include "core/program/lower/emitter.h"
#include "core/program/lower/points.h"

#include <string.h>

static struct ghp_instr *append(struct ghp_program *program, enum ghp_instr_kind kind, int point,
                                int rank)
{
    struct ghp_instr *grown = ghp_array_grow(program->instrs, program->n_instrs,
                                             &program->max_instrs, sizeof *program->instrs);
    if (grown == NULL) return NULL;
    program->instrs = grown;
    struct ghp_instr *instr = &program->instrs[program->n_instrs++];
    *instr = (struct ghp_instr){.kind = kind,
                                .stream = ghp_kinds[kind]->stream,
                                .comm = ghp_kinds[kind]->comm,
                                .point = point,
                                .layer = -1,
                                .edge = -1,
                                .bucket = -1,
                                .wait = -1,
                                .after = -1};
    instr->ranks = (struct ghp_ranks){.first = rank, .count = 1, .stride = 1};
    memset(&instr->at, 0xff, sizeof instr->at); /* every operand -1 */
    memset(&instr->fusion, 0xff, sizeof instr->fusion);
    return instr;
}

struct ghp_emitter ghp_emitter_of(const struct ghp_lowering *lowering, int rank,
                                  struct ghp_program *piece)
{
    int half = lowering->model->n_layers + lowering->model->n_edges;
    return (struct ghp_emitter){
        .lowering = lowering,
        .program = piece,
        .rank = rank,
        .placement =
            ghp_placement_of(lowering->staging, lowering->model->n_layers, lowering->problem, rank),
        .half = half,
        .backward_base = half,
        .first = true,
        .last = true,
        .recompute_at = -1};
}

int ghp_emitter_point(const struct ghp_emitter *e, int layer, bool backward)
{
    const struct ghp_model *model = e->lowering->model;
    if (e->recompute_at >= 0) return e->recompute_at;
    return backward ? e->backward_base + ghp_point_backward(model, layer) - e->half
                    : e->forward_base + ghp_point_forward(model, layer);
}

int ghp_emitter_edge_point(const struct ghp_emitter *e, int edge, bool backward)
{
    const struct ghp_model *model = e->lowering->model;
    if (e->recompute_at >= 0) return e->recompute_at;
    return backward ? e->backward_base + ghp_point_backward_edge(model, edge) - e->half
                    : e->forward_base + ghp_point_forward_edge(model, edge);
}

struct ghp_instr *ghp_emitter_add(const struct ghp_emitter *e, enum ghp_instr_kind kind, int point)
{
    struct ghp_instr *instr = append(e->program, kind, point, e->rank);
    if (instr == NULL) return NULL;
    instr->micro = e->micro;
    instr->recompute = e->recompute_at >= 0;
    return instr;
}

struct ghp_instr *ghp_emitter_add_update(const struct ghp_emitter *e, int layer, int64_t bytes,
                                         int point)
{
    struct ghp_instr *update = ghp_emitter_add(e, GHP_INSTR_UPDATE, point);
    if (update == NULL) return NULL;
    update->layer = layer;
    update->optimizer = ghp_lowering_optimizer(e->lowering);
    update->bytes = ghp_optimizer_written(update->optimizer, bytes);
    return update;
}

struct ghp_bucket_range ghp_emitter_range(const struct ghp_emitter *e, int layer,
                                          struct ghp_split split, int *bucket)
{
    *bucket = e->buckets != NULL && e->lowering->model->layers[layer].n_params > 0
                  ? e->buckets->of_layer[layer]
                  : -1;
    if (*bucket >= 0) return e->buckets->ranges[*bucket];
    return ghp_bucket_alone(e->lowering, e->placement.problem.workers, layer, split);
}

struct ghp_instr *ghp_emitter_add_exchange(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                           int bucket, struct ghp_bucket_range range, int point)
{
    struct ghp_instr *exchange = ghp_emitter_add(e, kind, point);

    if (exchange == NULL) return NULL;
    exchange->layer = range.ready_layer;
    exchange->backward = kind == GHP_INSTR_PUSH;
    exchange->bucket = bucket;
    exchange->bytes = range.bytes;
    exchange->servers = e->lowering->method.sync.servers;
    exchange->ranks = (struct ghp_ranks){.count = e->lowering->problem.workers, .stride = 1};
    return exchange;
}

enum ghp_status ghp_emit_bucket_wait(const struct ghp_emitter *e, int layer,
                                     enum ghp_instr_kind kind, int bucket)
{
    struct ghp_instr *wait = ghp_emitter_add(e, GHP_INSTR_WAIT, ghp_emitter_point(e, layer, false));
    int i = 0;

    if (wait == NULL) return GHP_NO_MEMORY();
    while (e->program->instrs[i].kind != kind || e->program->instrs[i].bucket != bucket)
        i++;
    wait->layer = layer;
    wait->after = i;
    return GHP_OK;
}

struct ghp_ranks ghp_emitter_replica_group(const struct ghp_emitter *e, int tp_size)
{
    return ghp_placement_ranks(&e->placement, ghp_ranks_replica(e->placement.number, tp_size,
                                                                e->placement.problem.workers));
}

static struct ghp_mix_terms mix_of(struct ghp_sync sync)
{
    const struct ghp_sync_ops *ops = ghp_sync_ops_of(sync);

    if (ops->mixing == NULL) return (struct ghp_mix_terms){0};
    return (struct ghp_mix_terms){.scheme = ops->name,
                                  .argument = sync.argument,
                                  .chance = (double)sync.argument / GHP_SYNC_SURE,
                                  .other = sync.other,
                                  .groups = sync.groups,
                                  .leader_period =
                                      sync.groups > 0 ? ghp_sync_leader_period(sync) : 0,
                                  .graph = sync.graph};
}

struct ghp_program ghp_emitter_program(const struct ghp_emitter *e, const struct ghp_split *splits)
{
    const struct ghp_lowering *lowering = e->lowering;
    const struct ghp_method *method = &lowering->method;

    return (struct ghp_program){
        .method = *method,
        .splits = splits,
        .staging = lowering->staging,
        .model = lowering->model,
        .rank = e->rank,
        .problem = lowering->problem,
        .placement = e->placement,
        .element_bytes = lowering->element_bytes,
        .optimizer = ghp_lowering_optimizer(lowering),
        .rates = method->scaling != NULL ? method->scaling->rule : NULL,
        .micro_batches = ghp_staging_micro_batches(lowering->staging),
        .replicas = ghp_sync_replicas(method->sync, lowering->problem.workers),
        .is_recordable = method->sync.servers == 0 &&
                         ghp_sync_replicas(method->sync, lowering->problem.workers) == 1,
        .servers = method->sync.servers,
        .mixing = ghp_lowering_sync(lowering)->mixing,
        .mix = mix_of(method->sync),
        .n_points = 1};
}

enum ghp_param_sharding ghp_emitter_sharding(const struct ghp_emitter *e, int layer,
                                             struct ghp_split split)
{
    const struct ghp_model *model = e->lowering->model;
    int owner = ghp_model_owner(model, layer), bucket;

    if (model->layers[owner].n_params == 0 ||
        ghp_stage_partner(model, e->lowering->staging, layer) >= 0)
        return GHP_SHARDING_NONE;
    return ghp_emitter_range(e, owner, owner == layer ? split : ghp_split_of_owner(split), &bucket)
        .sharding;
}

const struct ghp_sync_ops *ghp_emitter_sync(const struct ghp_emitter *e, int layer,
                                            struct ghp_split split)
{
    enum ghp_param_sharding sharding = ghp_emitter_sharding(e, layer, split);

    if (ghp_sharding_gathers(sharding)) return e->gathers;
    return sharding == GHP_SHARDING_NONE ? ghp_lowering_sync(e->lowering) : e->shards;
}

struct ghp_instr *ghp_emitter_add_gather(const struct ghp_emitter *e, int layer, int bucket,
                                         const struct ghp_bucket_range *range, int point)
{
    struct ghp_instr *gather = ghp_emitter_add(e, GHP_INSTR_GATHER, point);

    if (gather == NULL) return NULL;
    gather->layer = layer;
    gather->bucket = bucket;
    gather->ranks = ghp_bucket_ranks(e->lowering, &e->placement, range);
    gather->bytes = range->bytes;
    gather->sharding = range->sharding;
    if (!ghp_lower_gathers_bf16(e->lowering, layer)) return gather;
    gather->in_bf16 = true;
    gather->bytes = range->bytes / ghp_parameter_bytes(e->lowering->element_bytes) * 2;
    gather->copy_bytes = gather->bytes / gather->ranks.count + range->bytes;
    return gather;
}
