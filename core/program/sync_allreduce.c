/* core/program/sync_allreduce.c - every worker gets the sum of the gradients, and updates all the weights it holds. */
#include "core/program/lower_private.h"

static int64_t no_strip(const struct ghp_layer *layer, int64_t bytes, int holders)
{
    (void)layer, (void)bytes, (void)holders;
    return 0;
}

static enum ghp_status emit_nothing(const struct ghp_emitter *e)
{
    (void)e;
    return GHP_OK;
}

const struct ghp_sync_ops ghp_sync_allreduce = {.name = "allreduce",
                                                .purpose =
                                                    "each worker updates all weights it holds",
                                                .period = 1,
                                                .staleness = 0,
                                                .equality = GHP_SYNC_EQUALS_ONE_WORKER,
                                                .strip_bytes = no_strip,
                                                .emit_start = emit_nothing,
                                                .emit_before = ghp_emit_whole_update,
                                                .emit_ready = ghp_emit_reductions};
