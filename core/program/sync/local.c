/* core/program/sync/local.c - each worker trains by its own samples, and every TAU steps takes the mean of all workers'
 * weights and running statistics.
 *
 * The updates of a bucket's layers stand at the start of a step, in the order in which the forward pass reads them, and
 * its average after them. The averages run during the forward pass, which waits for a bucket when it reads its first
 * layer. Moments are each worker's own and never sent. One worker has nothing to average: its steps are SGD. */
#include "core/program/lower/layer.h"

/* Emits a bucket's average, after the updates of all its layers. */
static enum ghp_status emit_average(const struct ghp_emitter *e, struct ghp_bucket_range range,
                                    int bucket, int point)
{
    struct ghp_instr *average;

    if (!range.holds_weights) return GHP_OK;
    average = ghp_emitter_add(e, GHP_INSTR_AVERAGE, point);
    if (average == NULL) return GHP_NO_MEMORY();
    average->layer = range.ready_layer;
    average->bucket = bucket;
    average->ranks = ghp_emitter_replica_group(e, range.tp_size);
    average->bytes = range.bytes;
    average->period = ghp_sync_period(e->lowering->method.sync);
    return GHP_OK;
}

static enum ghp_status emit_start(const struct ghp_emitter *e)
{
    const struct ghp_bucket_plan *buckets = e->buckets;
    int point = e->forward_base;

    for (int first = 0; first < e->lowering->model->n_layers; first++) {
        int b = buckets->of_layer[first];

        if (b < 0 || buckets->ranges[b].ready_layer != first) continue;
        for (int layer = first; layer < e->lowering->model->n_layers; layer++)
            if (buckets->of_layer[layer] == b)
                GHP_TRY(ghp_emit_layer_update(e, layer, e->splits[layer], point));
        GHP_TRY(emit_average(e, buckets->ranges[b], b, point));
    }
    return GHP_OK;
}

static enum ghp_status emit_before(const struct ghp_emitter *e, int layer, struct ghp_split split)
{
    int bucket;
    struct ghp_bucket_range range = ghp_emitter_range(e, layer, split, &bucket);

    if (!ghp_lowering_changes(e->lowering, layer)) return GHP_OK;
    if (e->buckets == NULL) {
        GHP_TRY(ghp_emit_whole_update(e, layer, split));
        return emit_average(e, range, bucket, ghp_emitter_point(e, layer, false));
    }
    if (!range.holds_weights || range.ready_layer != layer) return GHP_OK;
    return ghp_emit_bucket_wait(e, layer, GHP_INSTR_AVERAGE, bucket);
}

static const char *const shown[] = {"local:2", "local:8", "local:32", NULL};

const struct ghp_sync_ops ghp_sync_local = {
    .name = "local",
    .purpose = "each worker trains by its own samples and takes the mean of all weights",
    .argument = "TAU",
    .least = 1,
    .usual = -1,
    .shown = shown,
    .equality = GHP_SYNC_EQUALS_REPLICAS,
    .gathers = true,
    .replicas = true,
    .emit_start = emit_start,
    .emit_before = emit_before};
