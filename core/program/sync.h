/* core/program/sync.h - synchronisers: who combines which gradients or weights with whom, and when.
 *
 * A synchroniser is a pass of the lowering: it emits what stands around a layer's own passes, and says which buffers
 * that needs. The planner costs what it emits and the executor runs it, so a synchroniser states no cost of its own:
 * its communication, what the forward pass waits for, the bytes it sends and the elements it updates are in its
 * instructions.
 *
 *     allreduce   gradients are summed by all-reduce, and every worker updates all the weights it holds
 *     sharded     gradients are reduce-scattered; each holder of a shard updates its strip, the 1/R part of a bucket
 *                 for R holders, and has moments for that alone; the weights are all-gathered before the next
 *                 forward pass reads them
 *
 * To add one: a file sync_NAME.c with its ops, and its line in sync.c.
 *
 * Source   part-reduce and part-broadcast: Das et al., arXiv 1602.06709, 2016
 * Tested   tests/core/program/test_sync.c, tests/executor/train/test_sync.c */
#ifndef GHP_CORE_PROGRAM_SYNC_H
#define GHP_CORE_PROGRAM_SYNC_H

#include "core/program/program.h"

struct ghp_emitter; /* core/program/lower_private.h */

/* What a run by it is compared with. */
enum ghp_sync_equality {
    GHP_SYNC_EQUALS_ONE_WORKER, /* weights as of one worker that trains with the global batch */
};

struct ghp_sync_ops {
    const char *name;    /* in plans and options */
    const char *purpose; /* half a sentence */
    int period;          /* it combines in every so many steps */
    int staleness;       /* updates of other workers that a forward pass may lack */
    enum ghp_sync_equality equality;
    bool gathers; /* forward passes wait for gathers of weights */

    /* The strip of one of `holders` workers, in a bucket of so many gradient bytes: a multiple of GHP_ALIGN_BYTES; the
     * bucket is then padded to `holders` strips. 0: each holder updates all of it.
     *
     * layer   a member; buckets are of layers that all have strips, or none
     * holders > 1 */
    int64_t (*strip_bytes)(const struct ghp_layer *layer, int64_t bytes, int holders);

    /* Emit, in order: at the start of a step; before a layer's first forward pass; when a layer's gradients are
     * complete. A piece of one layer (lower.h) has the last two alone, and they emit all that the layer is to be costed
     * for. Return GHP_OK or GHP_ERR_NO_MEMORY. */
    enum ghp_status (*emit_start)(const struct ghp_emitter *e);
    enum ghp_status (*emit_before)(const struct ghp_emitter *e, int layer, struct ghp_split split);
    enum ghp_status (*emit_ready)(const struct ghp_emitter *e, int layer, struct ghp_split split);
};

extern const struct ghp_sync_ops ghp_sync_allreduce, ghp_sync_sharded;

/* Names of all, for options and files; NULL ends. */
extern const char *const ghp_sync_names[];

/* By its place among the names. */
const struct ghp_sync_ops *ghp_sync_at(int index);
const char *ghp_sync_equality_text(enum ghp_sync_equality equality);

#endif
