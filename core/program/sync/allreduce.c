/* core/program/sync/allreduce.c - every worker gets the sum of the gradients, and updates all the weights it holds. */
#include "core/program/lower_private.h"

const struct ghp_sync_ops ghp_sync_allreduce = {.name = "allreduce",
                                                .purpose =
                                                    "each worker updates all weights it holds",
                                                .equality = GHP_SYNC_EQUALS_ONE_WORKER,
                                                .emit_before = ghp_emit_whole_update,
                                                .emit_ready = ghp_emit_reductions};
