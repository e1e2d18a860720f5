/* core/program/sync/gathered.c - layers whose weights lie sharded over a replica group (ZeRO-3, FSDP): each worker
 * updates its shard before the first gather of a step, and gathers the weights before it uses them.
 *
 * In a whole program the gathers depend on what is computed before them, and so do the waits for reductions: they are
 * put in when the list is complete (lower/gather.c). A piece has them right before its passes. */
#include "core/program/lower/emitter.h"

static enum ghp_status emit_before(const struct ghp_emitter *e, int layer, struct ghp_split split)
{
    int owner = ghp_model_owner(e->lowering->model, layer), bucket,
        point = ghp_emitter_point(e, layer, false);
    struct ghp_bucket_range range;
    struct ghp_instr *update;

    if (e->buckets != NULL) return GHP_OK;
    range =
        ghp_emitter_range(e, owner, owner == layer ? split : ghp_split_of_owner(split), &bucket);
    if (owner == layer) {
        update = ghp_emitter_add_update(e, layer, range.shard_bytes, point);
        if (update == NULL) return GHP_NO_MEMORY();
        update->ranks = ghp_bucket_ranks(e->lowering, &e->placement, &range);
        update->sharding = range.sharding;
    }
    return ghp_emitter_add_gather(e, owner, bucket, &range, point) != NULL ? GHP_OK
                                                                           : GHP_NO_MEMORY();
}

const struct ghp_sync_ops ghp_sync_gathered = {
    .name = "gathered",
    .purpose = "each worker has its optimizer shard of the weights, and gathers them for use",
    .equality = GHP_SYNC_EQUALS_ONE_WORKER,
    .reduces = true,
    .emit_before = emit_before};
