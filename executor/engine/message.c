/* executor/engine/message.c - see engine/message.h. */
#include "executor/engine/message.h"

#include "executor/transport/summands.h"

#include <stdlib.h>
#include <string.h>

/* The geometry of a slice in this worker's part of the tensor. */
static struct ghp_message_slice slice_at(const struct ghp_transfer *t,
                                         const struct ghp_placement *own,
                                         const struct ghp_slice *slice, bool receives)
{
    /* what the buffer holds */
    struct ghp_region here = ghp_placement_region(own, receives ? t->to : t->from, t->shape);
    int64_t pixel = here.channels * t->element_bytes, sample = here.positions * t->shape.w * pixel;
    struct ghp_message_slice p = {.scratch = -1};

    p.offset = (slice->first_sample - here.first_sample) * sample +
               (slice->first_position - here.first_position) * t->shape.w * pixel +
               (slice->first_channel - here.first_channel) * t->element_bytes;
    if (slice->positions < here.positions) { /* then all channels: transfer.h */
        p.rows = slice->samples;
        p.block_bytes = slice->positions * t->shape.w * pixel;
        p.stride = sample;
        return p;
    }
    p.rows = slice->samples * slice->positions * t->shape.w;
    p.block_bytes = slice->channels * t->element_bytes;
    p.stride = pixel;
    return p;
}

static enum ghp_status add_slices(struct ghp_message *message, const struct ghp_transfer *t,
                                  const struct ghp_placement *own)
{
    bool receives = message->receives, joins = receives && ghp_transfer_joins(t);
    struct ghp_peers with =
        receives ? ghp_transfer_senders(t, own) : ghp_transfer_receivers(t, own);
    int64_t filled = 0;

    message->slices = ghp_alloc((size_t)with.n, sizeof *message->slices);
    if (message->slices == NULL) return GHP_NO_MEMORY();
    for (int r = with.first; r < with.first + with.n; r++) {
        struct ghp_placement other = ghp_placement_of(t->staging, t->n_layers, t->whole, r);
        struct ghp_message_slice *p = &message->slices[message->n];
        struct ghp_slice slice;
        bool any = receives ? ghp_transfer_slice(t, &other, own, &slice)
                            : ghp_transfer_slice(t, own, &other, &slice);

        if (!any) continue;
        *p = slice_at(t, own, &slice, receives);
        p->peer = r;
        p->adds =
            receives && t->from.kind == GHP_LAYOUT_PARTIAL && other.number % t->from.tp_size != 0;
        if (joins || (!receives && slice.packs)) {
            p->scratch = filled;
            filled += ghp_slice_bytes(t, &slice);
        }
        message->n++;
    }
    return GHP_OK;
}

enum ghp_status ghp_message_open(const struct ghp_instr *instr, int rank,
                                 struct ghp_message *message)
{
    const struct ghp_transfer *t = &instr->transfer;
    struct ghp_placement own = ghp_placement_of(t->staging, t->n_layers, t->whole, rank);

    *message = (struct ghp_message){.receives = instr->kind == GHP_INSTR_RECEIVE,
                                    .tag = 2 * instr->edge + (instr->backward ? 1 : 0),
                                    .micro = instr->micro,
                                    .from_stage = t->from_stage,
                                    .to_stage = t->to_stage,
                                    .ranks = ghp_transfer_ranks(t, rank),
                                    .element_bytes = t->element_bytes};
    return add_slices(message, t, &own);
}

void ghp_message_close(struct ghp_message *message)
{
    ghp_bounce_close(message->bounce);
    free(message->slices);
    *message = (struct ghp_message){0};
}

void ghp_message_place(struct ghp_message *message, void *tensor, void *scratch)
{
    message->tensor = tensor;
    message->scratch = scratch;
}

/* The bytes of the tensor from the first to the last slice, and of the scratch. */
static struct ghp_bounce_place span_of(const struct ghp_message *message)
{
    struct ghp_bounce_place span = {.tensor = message->tensor};

    for (int i = 0; i < message->n; i++) {
        const struct ghp_message_slice *p = &message->slices[i];
        int64_t end = p->offset + (p->rows - 1) * p->stride + p->block_bytes;
        int64_t scratch_end = p->scratch + p->rows * p->block_bytes;

        if (i == 0 || p->offset < span.first) span.first = p->offset;
        if (end > span.end) span.end = end;
        if (p->scratch >= 0 && scratch_end > span.scratch_bytes) span.scratch_bytes = scratch_end;
    }
    return span;
}

enum ghp_status ghp_message_bounce(struct ghp_message *message, struct ghp_device device)
{
    struct ghp_bounce_place span = span_of(message);

    if (ghp_device_is_host(device)) return GHP_OK;
    GHP_TRY(ghp_bounce_open(device, &span, &message->bounce));
    ghp_message_place(message, ghp_bounce_tensor(message->bounce),
                      ghp_bounce_scratch(message->bounce));
    return GHP_OK;
}

/* Between a slice's place in the tensor and in scratch. */
static struct ghp_move move_of(const struct ghp_message *message, const struct ghp_message_slice *p,
                               enum ghp_move_kind kind)
{
    char *tensor = message->tensor + p->offset, *scratch = message->scratch + p->scratch;
    bool takes = kind == GHP_MOVE_TAKE;

    return (struct ghp_move){.kind = kind,
                             .pack = {.rows = p->rows,
                                      .block_bytes = p->block_bytes,
                                      .parts = 1,
                                      .row_bytes = p->stride},
                             .from = takes ? tensor : scratch,
                             .to = takes ? scratch : tensor};
}

enum ghp_status ghp_message_pack_on(const struct ghp_message *message, struct ghp_device device,
                                    enum ghp_device_stream stream)
{
    for (int i = 0; i < message->n; i++) {
        const struct ghp_message_slice *p = &message->slices[i];

        if (p->scratch < 0) continue;
        const struct ghp_move takes = move_of(message, p, GHP_MOVE_TAKE);

        GHP_TRY(ghp_device_move(device, stream, &takes));
    }
    return GHP_OK;
}

void ghp_message_pack(const struct ghp_message *message)
{
    const struct ghp_device host = {0};

    ghp_message_pack_on(message, host, GHP_DEVICE_STREAM_COMPUTE); /* cannot fail there */
}

/* Slices that are added to each other follow the one that they are added to: how many there are with it. */
static int summands_from(const struct ghp_message *message, int first)
{
    int count = 1;

    while (first + count < message->n && message->slices[first + count].adds)
        count++;
    return count;
}

static void join_sum(const struct ghp_message *message, int first, int count)
{
    const struct ghp_message_slice *p = &message->slices[first];
    bool whole = p->block_bytes == p->stride; /* one run of elements */
    int64_t rows = whole ? 1 : p->rows, slice_bytes = p->rows * p->block_bytes;
    const char *from = message->scratch + p->scratch;
    char *to = message->tensor + p->offset;
    struct ghp_summands sum = {.count = count,
                               .index = -1,
                               .n = (whole ? slice_bytes : p->block_bytes) / message->element_bytes,
                               .stride = slice_bytes / message->element_bytes};

    for (int i = 1; i < count; i++) {
        GHP_ASSERT_EQ(p[i].offset, p->offset);
        GHP_ASSERT_EQ(p[i].scratch, p->scratch + i * slice_bytes);
    }
    for (int64_t row = 0; row < rows; row++) {
        sum.scratch = from + row * p->block_bytes;
        ghp_summands_add(&sum, message->element_bytes, to + row * p->stride);
    }
}

static enum ghp_status join_copy(const struct ghp_message *message,
                                 const struct ghp_message_slice *p, struct ghp_device device)
{
    if (p->scratch < 0) return GHP_OK;
    const struct ghp_move puts = move_of(message, p, GHP_MOVE_PUT);

    return ghp_device_move(device, GHP_DEVICE_STREAM_COMPUTE, &puts);
}

void ghp_message_join(const struct ghp_message *message)
{
    const struct ghp_device host = {0};

    for (int i = 0, count; i < message->n; i += count) {
        count = summands_from(message, i);
        if (count > 1)
            join_sum(message, i, count);
        else
            join_copy(message, &message->slices[i], host); /* cannot fail there */
    }
}

/* Sums are made in the scratch of the first of their slices. */
enum ghp_status ghp_message_join_on(const struct ghp_message *message,
                                    const struct ghp_exec_context *exec)
{
    for (int i = 0, count; i < message->n; i += count) {
        const struct ghp_message_slice *p = &message->slices[i];
        int64_t bytes = p->rows * p->block_bytes;
        char *sum = message->scratch + p->scratch;

        count = summands_from(message, i);
        for (int k = 1; k < count; k++)
            GHP_TRY(exec->backend_ops->accumulate(
                exec->backend, sum, sum + k * bytes,
                (struct ghp_buffer_extent){bytes / message->element_bytes,
                                           message->element_bytes}));
        GHP_TRY(join_copy(message, p, ghp_exec_context_device(exec)));
    }
    return GHP_OK;
}

struct ghp_p2p_message ghp_message_of_slice(const struct ghp_message *message, int slice)
{
    const struct ghp_message_slice *p = &message->slices[slice];

    return (struct ghp_p2p_message){.data = p->scratch >= 0 ? message->scratch + p->scratch
                                                            : message->tensor + p->offset,
                                    .bytes = p->rows * p->block_bytes,
                                    .peer = p->peer,
                                    .tag = message->tag,
                                    .receives = message->receives};
}
