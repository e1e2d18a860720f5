/* core/program/sync/servers.c - parameter servers: they have the weights, and workers only gradients.
 *
 * A bucket is sharded over the servers by bytes, so a shard may begin inside a tensor. A worker pushes a bucket when
 * its gradients are complete, and pulls it at the start of its next step, in the order in which the forward pass reads:
 * pulls run during the forward pass, which waits for a bucket before its first layer. Parameters whose global gradients
 * every worker has (a batch norm's) are not on a server: each worker updates them. */
#include "core/program/lower/layer.h"

static enum ghp_status emit(const struct ghp_emitter *e, enum ghp_instr_kind kind, int bucket,
                            struct ghp_bucket_range range, int point)
{
    return ghp_emitter_add_exchange(e, kind, bucket, range, point) == NULL ? GHP_NO_MEMORY()
                                                                           : GHP_OK;
}

static enum ghp_status emit_start(const struct ghp_emitter *e)
{
    const struct ghp_bucket_plan *buckets = e->buckets;

    for (int layer = 0; layer < e->lowering->model->n_layers; layer++) {
        int b = buckets->of_layer[layer];

        if (b >= 0 && buckets->ranges[b].server_shard_bytes > 0 &&
            buckets->ranges[b].ready_layer == layer)
            GHP_TRY(emit(e, GHP_INSTR_PULL, b, buckets->ranges[b], e->forward_base));
    }
    return GHP_OK;
}

static enum ghp_status emit_before(const struct ghp_emitter *e, int layer, struct ghp_split split)
{
    int bucket;
    struct ghp_bucket_range range = ghp_emitter_range(e, layer, split, &bucket);

    if (range.server_shard_bytes == 0) return ghp_emit_whole_update(e, layer, split);
    if (e->buckets == NULL)
        return emit(e, GHP_INSTR_PULL, bucket, range, ghp_emitter_point(e, layer, false));
    if (range.ready_layer != layer) return GHP_OK;
    return ghp_emit_bucket_wait(e, layer, GHP_INSTR_PULL, bucket);
}

static enum ghp_status emit_ready(const struct ghp_emitter *e, int layer, struct ghp_split split)
{
    int bucket, point = ghp_emitter_point(e, layer, true);
    struct ghp_bucket_range range;

    if (e->buckets == NULL) {
        range = ghp_emitter_range(e, layer, split, &bucket);
        return range.server_shard_bytes > 0 ? emit(e, GHP_INSTR_PUSH, bucket, range, point)
                                            : GHP_OK;
    }
    for (int b = 0; b < e->buckets->n; b++)
        if (e->buckets->ranges[b].server_shard_bytes > 0 &&
            e->buckets->ranges[b].ready_layer == layer)
            GHP_TRY(emit(e, GHP_INSTR_PUSH, b, e->buckets->ranges[b], point));
    return GHP_OK;
}

const struct ghp_sync_ops ghp_sync_bsp = {
    .name = "bsp",
    .purpose = "servers have the weights and update them by the sum of all workers' gradients",
    .equality = GHP_SYNC_EQUALS_ONE_WORKER,
    .gathers = true,
    .serves = true,
    .emit_start = emit_start,
    .emit_before = emit_before,
    .emit_ready = emit_ready};
