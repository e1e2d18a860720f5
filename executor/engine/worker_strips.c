/* executor/engine/worker_strips.c - what lies in strips (core/program/sync.h), made whole between steps.
 *
 * A whole moment has no memory of its own: it lies where the layer's gradient does, which nobody needs between a
 * flush and the next step. */
#include "executor/engine/worker_private.h"

/* The reduction that leaves a bucket's gradients in strips; -1: none does. */
static int scatter_of(const struct ghp_worker *w, int bucket)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_REDUCE_SCATTER &&
            ghp_worker_instr(w, i)->bucket == bucket)
            return i;
    return -1;
}

bool ghp_worker_has_strip(const struct ghp_worker *w, int layer)
{
    const struct ghp_buffer *buffers = w->program.buffers;
    int bucket = -1;

    for (int i = 0; i < w->program.n_buffers && bucket < 0; i++)
        if (buffers[i].buffer_kind == GHP_BUFFER_WEIGHT && buffers[i].layer == layer)
            bucket = buffers[i].storage;
    for (int b = 0; b < w->program.n_buckets; b++)
        if (w->program.buckets[b].weights == bucket && bucket >= 0)
            return w->program.buckets[b].strip_bytes > 0;
    return false;
}

static enum ghp_status copy_strip(struct ghp_worker *w, int to, int from, int64_t bytes)
{
    return ghp_device_copy(
        w->arena.device, GHP_DEVICE_STREAM_COMPUTE,
        (struct ghp_copy){w->address[to], w->address[from], bytes, GHP_COPY_ON_DEVICE});
}

enum ghp_status ghp_worker_gather_strips(struct ghp_worker *w, int i, int strip, int whole)
{
    const struct ghp_prepared_instr *p = &w->prepared[i];
    int64_t bytes = w->program.buffers[strip].bytes;

    p->comm->label = p->label;
    return p->comm->ops->all_gather(p->comm, w->address[strip], w->address[whole], bytes);
}

enum ghp_status ghp_worker_collect(struct ghp_worker *w, enum ghp_buffer_kind kind)
{
    bool moments = ghp_buffer_kind_is_moment(kind);
    struct ghp_device device = w->arena.device;

    if ((!moments && kind != GHP_BUFFER_WEIGHT_GRADIENT) || w->collected == kind) return GHP_OK;
    GHP_ASSERT(moments || !ghp_buffer_kind_is_moment(w->collected)); /* the gradients are gone */
    for (int b = 0; b < w->program.n_buckets; b++) {
        const struct ghp_bucket *bucket = &w->program.buckets[b];
        int i = scatter_of(w, b);

        if (i < 0) continue;
        GHP_ASSERT(!moments || !w->updates_pending);
        if (moments)
            GHP_TRY(copy_strip(w, bucket->gradient_strip, bucket->moment[kind - GHP_BUFFER_MOMENT],
                               bucket->strip_bytes));
        GHP_TRY(ghp_device_finish(device, GHP_DEVICE_STREAM_COMPUTE));
        GHP_TRY(ghp_worker_gather_strips(w, i, bucket->gradient_strip, bucket->buffer));
        GHP_TRY(ghp_device_finish(device, GHP_DEVICE_STREAM_COMM));
    }
    w->collected = kind;
    return GHP_OK;
}

enum ghp_status ghp_worker_distribute(struct ghp_worker *w, enum ghp_buffer_kind moment)
{
    for (int b = 0; b < w->program.n_buckets; b++) {
        const struct ghp_bucket *bucket = &w->program.buckets[b];

        if (bucket->strip_bytes > 0)
            GHP_TRY(copy_strip(w, bucket->moment[moment - GHP_BUFFER_MOMENT],
                               bucket->gradient_strip, bucket->strip_bytes));
    }
    w->collected = GHP_BUFFER_KIND_COUNT;
    return ghp_device_finish(w->arena.device, GHP_DEVICE_STREAM_COMPUTE);
}
