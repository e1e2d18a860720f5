/* core/program/sync/sharded.c - each worker of a replica group updates its optimizer shard of every bucket, and gathers
 * the others'.
 *
 * The updates of all buckets stand at the start of a step, in the order in which the forward pass reads them, each with
 * its gather after it. The gathers run during the forward pass, which waits for a bucket when it reads its first layer.
 * Statistics of ghost batches are added on every worker, so their layers keep the all-reduce. */
#include "core/program/lower/layer.h"

/* A bucket's update of this worker's optimizer shard, and the gather of all optimizer shards. */
static enum ghp_status emit_update(const struct ghp_emitter *e, struct ghp_bucket_range range,
                                   int bucket, int point)
{
    struct ghp_instr *update =
        ghp_emitter_add_update(e, range.ready_layer, range.shard_bytes, point);
    struct ghp_instr *gather;

    if (update == NULL) return GHP_NO_MEMORY();
    update->bucket = bucket;
    update->ranks = ghp_bucket_ranks(e->lowering, &e->placement, &range);
    gather = ghp_emitter_add(e, GHP_INSTR_ALL_GATHER, point);
    if (gather == NULL) return GHP_NO_MEMORY();
    gather->layer = range.ready_layer;
    gather->bucket = bucket;
    gather->ranks = ghp_bucket_ranks(e->lowering, &e->placement, &range);
    gather->bytes = range.bytes;
    return GHP_OK;
}

static enum ghp_status emit_start(const struct ghp_emitter *e)
{
    const struct ghp_bucket_plan *buckets = e->buckets;

    for (int layer = 0; layer < e->lowering->model->n_layers; layer++) {
        int b = buckets->of_layer[layer];

        if (b < 0 || buckets->ranges[b].shard_bytes == 0 || !buckets->ranges[b].holds_weights ||
            buckets->ranges[b].ready_layer != layer)
            continue;
        GHP_TRY(emit_update(e, buckets->ranges[b], b, e->forward_base));
    }
    return GHP_OK;
}

static enum ghp_status emit_before(const struct ghp_emitter *e, int layer, struct ghp_split split)
{
    int bucket;
    struct ghp_bucket_range range = ghp_emitter_range(e, layer, split, &bucket);

    if (range.shard_bytes == 0) return ghp_emit_whole_update(e, layer, split);
    if (e->buckets == NULL)
        return emit_update(e, range, bucket, ghp_emitter_point(e, layer, false));
    if (range.ready_layer != layer) return GHP_OK;
    return ghp_emit_bucket_wait(e, layer, GHP_INSTR_ALL_GATHER, bucket);
}

const struct ghp_sync_ops ghp_sync_sharded = {
    .name = "sharded",
    .purpose =
        "each worker updates its optimizer shard of the weights, and has moments for that alone",
    .equality = GHP_SYNC_EQUALS_ONE_WORKER,
    .reduces = true,
    .gathers = true,
    .shards = true,
    .emit_start = emit_start,
    .emit_before = emit_before};
