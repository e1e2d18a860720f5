/* executor/engine/worker/tensors.c - where a layer's tensors lie in a worker's memory: which of them it has, and which
 * are in optimizer shards. */
#include "executor/engine/worker_private.h"

int ghp_worker_bucket_of(const struct ghp_worker *w, int layer)
{
    const struct ghp_buffer *buffers = w->program.buffers;

    for (int i = 0; i < w->program.n_buffers; i++)
        for (int b = 0; b < w->program.n_buckets && buffers[i].layer == layer &&
                        buffers[i].buffer_kind == GHP_BUFFER_WEIGHT_GRADIENT;
             b++)
            if (w->program.buckets[b].buffer == buffers[i].storage) return b;
    return -1;
}

bool ghp_worker_has_optimizer_shard(const struct ghp_worker *w, int layer)
{
    int b = ghp_worker_bucket_of(w, layer);

    return b >= 0 &&
           (w->program.buckets[b].shard_bytes > 0 ||
            (w->program.buckets[b].server_shard_bytes > 0 && !w->program.buckets[b].updated_here));
}

bool ghp_worker_shards_weights(const struct ghp_worker *w, int layer)
{
    int b = ghp_worker_bucket_of(w, layer);

    return b >= 0 && ghp_sharding_gathers(w->program.buckets[b].sharding);
}

bool ghp_worker_owns(const struct ghp_worker *w, int layer)
{
    return ghp_placement_owns(&w->program.placement, layer);
}

bool ghp_worker_holds(struct ghp_worker *w, int layer)
{
    return ghp_worker_owns(w, layer) ||
           ghp_worker_tensor(w, GHP_BUFFER_WEIGHT, layer, 0, NULL) != NULL;
}

/* A layer's part of a copy of all weights, where it lies in the weights. */
static void *part_of_copy(struct ghp_worker *w, int c, char *weight)
{
    int i = 0;

    if (w->mixer == NULL || weight == NULL) return NULL;
    GHP_ASSERT(c < w->program.mixing->copies);
    while (ghp_worker_instr(w, i)->kind != GHP_INSTR_MIX)
        i++;
    return (char *)w->address[ghp_worker_instr(w, i)->at.scratch] +
           c * ghp_worker_instr(w, i)->bytes +
           (weight - (char *)w->address[w->program.buckets[0].weights]);
}

void *ghp_worker_tensor(struct ghp_worker *w, enum ghp_buffer_kind buffer_kind, int layer, int slot,
                        int64_t *elements)
{
    bool shard =
        (ghp_buffer_kind_is_moment(buffer_kind) && ghp_worker_has_optimizer_shard(w, layer)) ||
        (buffer_kind == GHP_BUFFER_WEIGHT && ghp_worker_shards_weights(w, layer));
    enum ghp_buffer_kind lies_as = shard ? GHP_BUFFER_WEIGHT_GRADIENT : buffer_kind;

    if (buffer_kind == GHP_BUFFER_FIRST_COPY || buffer_kind == GHP_BUFFER_SECOND_COPY)
        return part_of_copy(w, buffer_kind == GHP_BUFFER_SECOND_COPY,
                            ghp_worker_tensor(w, GHP_BUFFER_WEIGHT, layer, slot, elements));
    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &w->program.buffers[i];

        if (b->buffer_kind != lies_as || b->layer != layer || b->slot != slot) continue;
        if (elements != NULL) *elements = b->elements;
        return w->address[i];
    }
    return NULL;
}
