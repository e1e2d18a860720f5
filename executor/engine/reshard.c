/* executor/engine/reshard.c - see engine/reshard.h. */
#include "executor/engine/reshard.h"

/* The tensor of the whole subgroup, with padding if it lies in parts: instr->local has its samples and all
 * channels. */
static int64_t whole_bytes(const struct ghp_reshard_job *e)
{
    const struct ghp_local *l = &e->instr->local;

    return l->n * ghp_reshard_channels(&e->instr->step, l->c) * l->h * l->w * e->element_bytes;
}

/* Channels of each member's slice, with padding. */
static int64_t slice_channels(const struct ghp_reshard_job *e)
{
    return ghp_part_of(e->instr->local.c, e->instr->step.tp_size);
}

/* `samples` samples whose channels lie in `tp_size` slices; which of the two sides lie blocked. */
static struct ghp_pack slices(const struct ghp_reshard_job *e, int64_t samples, bool whole,
                              bool part)
{
    const struct ghp_local *l = &e->instr->local;
    int m = e->instr->step.tp_size;

    return (struct ghp_pack){.rows = samples * l->h * l->w,
                             .block_bytes = slice_channels(e) * e->element_bytes,
                             .row_bytes = l->c * e->element_bytes,
                             .parts = m,
                             .whole_nchw16c = whole,
                             .part_nchw16c = part,
                             .pixels = l->h * l->w,
                             .lane_bytes = GHP_BLOCK_CHANNELS * (int64_t)e->element_bytes};
}

/* The same for samples with `channels` channels each, whose positions lie in `tp_size` slices; always plain. */
static struct ghp_pack position_slices(const struct ghp_reshard_job *e, int64_t samples,
                                       int64_t channels)
{
    const struct ghp_local *l = &e->instr->local;
    int m = e->instr->step.tp_size;

    return (struct ghp_pack){
        .rows = samples, .block_bytes = l->h / m * l->w * channels * e->element_bytes, .parts = m};
}

/* All samples' slices of channels, of one slice of the positions. */
static struct ghp_pack channels_of_slice(const struct ghp_reshard_job *e)
{
    const struct ghp_local *l = &e->instr->local;
    int m = e->instr->step.tp_size;

    return (struct ghp_pack){.rows = l->n * l->h / m * l->w,
                             .block_bytes = slice_channels(e) * e->element_bytes,
                             .row_bytes = l->c * e->element_bytes,
                             .parts = m};
}

/* What takes slices out of x, and what puts them into y. */
static struct ghp_pack taking(const struct ghp_reshard_job *e, int64_t samples)
{
    return slices(e, samples, e->nchw16c.x, e->nchw16c.y);
}

static struct ghp_pack putting(const struct ghp_reshard_job *e, int64_t samples)
{
    return slices(e, samples, e->nchw16c.y, e->nchw16c.x);
}

static int member(const struct ghp_reshard_job *e)
{
    return e->rank % e->instr->step.tp_size;
}

static enum ghp_status copy(const struct ghp_reshard_job *e, void *to, const void *from,
                            int64_t bytes)
{
    return ghp_device_copy(e->device, GHP_DEVICE_STREAM_COMPUTE,
                           (struct ghp_copy){to, from, bytes, GHP_COPY_ON_DEVICE});
}

static enum ghp_status move(const struct ghp_reshard_job *e, struct ghp_move request)
{
    return ghp_device_move(e->device, GHP_DEVICE_STREAM_COMPUTE, &request);
}

/* All slices of x, one after the other, into `parts`; and back from the scratch into y. */
static enum ghp_status split(const struct ghp_reshard_job *e, struct ghp_pack pack, void *parts)
{
    return move(e, (struct ghp_move){GHP_MOVE_SPLIT, pack, e->x, parts, 0});
}

static enum ghp_status join(const struct ghp_reshard_job *e, struct ghp_pack pack)
{
    return move(e, (struct ghp_move){GHP_MOVE_JOIN, pack, e->scratch, e->y, 0});
}

static enum ghp_status gather(const struct ghp_reshard_job *e, void *to)
{
    return e->comm->ops->all_gather(e->comm, e->x, to, whole_bytes(e) / e->instr->step.tp_size);
}

/* Each member's part of this one's tensor to it. */
static enum ghp_status deal(const struct ghp_reshard_job *e, const void *from, void *to)
{
    int m = e->instr->step.tp_size;

    return e->comm->ops->all_to_all(e->comm, from, to, whole_bytes(e) / m / m);
}

/* full(from) -> full(to) or batch: this worker's samples are one run of the larger subgroup's. */
static enum ghp_status slice_batch(const struct ghp_reshard_job *e)
{
    int from = e->instr->step.from.tp_size, to = e->instr->step.to.tp_size;
    int64_t bytes = whole_bytes(e) / from * to;

    return copy(e, e->y, (const char *)e->x + e->rank % from / to * bytes, bytes);
}

static enum ghp_status slice_channel(const struct ghp_reshard_job *e)
{
    return move(
        e, (struct ghp_move){GHP_MOVE_TAKE, taking(e, e->instr->local.n), e->x, e->y, member(e)});
}

static enum ghp_status slice_position(const struct ghp_reshard_job *e)
{
    const struct ghp_local *l = &e->instr->local;

    return move(
        e, (struct ghp_move){GHP_MOVE_TAKE, position_slices(e, l->n, l->c), e->x, e->y, member(e)});
}

static enum ghp_status gather_batch(const struct ghp_reshard_job *e)
{
    return gather(e, e->y);
}

static enum ghp_status gather_channel(const struct ghp_reshard_job *e)
{
    GHP_TRY(gather(e, e->scratch));
    return join(e, putting(e, e->instr->local.n));
}

static enum ghp_status gather_position(const struct ghp_reshard_job *e)
{
    GHP_TRY(gather(e, e->scratch));
    return join(e, position_slices(e, e->instr->local.n, e->instr->local.c));
}

/* Own samples, cut into slices for their owners; what arrives is a run of samples from each. */
static enum ghp_status batch_to_channel(const struct ghp_reshard_job *e)
{
    GHP_TRY(split(e, taking(e, e->instr->local.n / e->instr->step.tp_size), e->scratch));
    return deal(e, e->scratch, e->y);
}

static enum ghp_status batch_to_position(const struct ghp_reshard_job *e)
{
    const struct ghp_local *l = &e->instr->local;

    GHP_TRY(split(e, position_slices(e, l->n / e->instr->step.tp_size, l->c), e->scratch));
    return deal(e, e->scratch, e->y);
}

static enum ghp_status channel_to_batch(const struct ghp_reshard_job *e)
{
    GHP_TRY(deal(e, e->x, e->scratch));
    return join(e, putting(e, e->instr->local.n / e->instr->step.tp_size));
}

static enum ghp_status position_to_batch(const struct ghp_reshard_job *e)
{
    const struct ghp_local *l = &e->instr->local;

    GHP_TRY(deal(e, e->x, e->scratch));
    return join(e, position_slices(e, l->n / e->instr->step.tp_size, l->c));
}

/* What arrives is a slice of the other kind from each; y has room for what is sent, too, unless that has padding. */
static enum ghp_status channel_to_position(const struct ghp_reshard_job *e)
{
    const struct ghp_local *l = &e->instr->local;
    int m = e->instr->step.tp_size;
    void *sent = l->c % m == 0 ? e->y : (char *)e->scratch + whole_bytes(e) / m;

    GHP_TRY(split(e, position_slices(e, l->n, slice_channels(e)), sent));
    GHP_TRY(deal(e, sent, e->scratch));
    return join(e, channels_of_slice(e));
}

static enum ghp_status position_to_channel(const struct ghp_reshard_job *e)
{
    const struct ghp_local *l = &e->instr->local;

    GHP_TRY(split(e, channels_of_slice(e), e->y));
    GHP_TRY(deal(e, e->y, e->scratch));
    return join(e, position_slices(e, l->n, slice_channels(e)));
}

static enum ghp_status scatter_sum(const struct ghp_reshard_job *e, const void *in)
{
    struct ghp_reduction sum = {.in = in,
                                .out = e->y,
                                .elements =
                                    whole_bytes(e) / e->instr->step.tp_size / e->element_bytes,
                                .element_bytes = e->element_bytes,
                                .scratch = e->receive,
                                .scratch_bytes = e->receive_bytes};

    return e->comm->ops->reduce_scatter(e->comm, &sum);
}

static enum ghp_status sum_to_batch(const struct ghp_reshard_job *e)
{
    return scatter_sum(e, e->x);
}

static enum ghp_status sum_to_channel(const struct ghp_reshard_job *e)
{
    GHP_TRY(split(e, taking(e, e->instr->local.n), e->scratch));
    return scatter_sum(e, e->scratch);
}

static enum ghp_status sum_to_position(const struct ghp_reshard_job *e)
{
    GHP_TRY(split(e, position_slices(e, e->instr->local.n, e->instr->local.c), e->scratch));
    return scatter_sum(e, e->scratch);
}

static enum ghp_status sum_to_full(const struct ghp_reshard_job *e)
{
    struct ghp_reduction sum = {.in = e->y,
                                .out = e->y,
                                .elements = whole_bytes(e) / e->element_bytes,
                                .element_bytes = e->element_bytes,
                                .scratch = e->receive,
                                .scratch_bytes = e->receive_bytes};

    if (e->x != e->y) GHP_TRY(copy(e, e->y, e->x, whole_bytes(e)));
    return e->comm->ops->all_reduce(e->comm, &sum);
}

static enum ghp_status (*const steps[GHP_RESHARD_OP_COUNT])(const struct ghp_reshard_job *) = {
    [GHP_RESHARD_SLICE_BATCH] = slice_batch,
    [GHP_RESHARD_SLICE_CHANNEL] = slice_channel,
    [GHP_RESHARD_SLICE_POSITION] = slice_position,
    [GHP_RESHARD_GATHER_BATCH] = gather_batch,
    [GHP_RESHARD_GATHER_CHANNEL] = gather_channel,
    [GHP_RESHARD_GATHER_POSITION] = gather_position,
    [GHP_RESHARD_BATCH_TO_CHANNEL] = batch_to_channel,
    [GHP_RESHARD_BATCH_TO_POSITION] = batch_to_position,
    [GHP_RESHARD_CHANNEL_TO_BATCH] = channel_to_batch,
    [GHP_RESHARD_POSITION_TO_BATCH] = position_to_batch,
    [GHP_RESHARD_CHANNEL_TO_POSITION] = channel_to_position,
    [GHP_RESHARD_POSITION_TO_CHANNEL] = position_to_channel,
    [GHP_RESHARD_SUM_TO_BATCH] = sum_to_batch,
    [GHP_RESHARD_SUM_TO_CHANNEL] = sum_to_channel,
    [GHP_RESHARD_SUM_TO_POSITION] = sum_to_position,
    [GHP_RESHARD_SUM_TO_FULL] = sum_to_full,
};

enum ghp_status ghp_reshard_run(const struct ghp_reshard_job *reshard)
{
    GHP_ASSERT(reshard->instr->kind == GHP_INSTR_RESHARD);
    GHP_ASSERT(reshard->nchw16c.x == reshard->nchw16c.y ||
               ghp_reshard_packs(reshard->instr->step.op));
    return steps[reshard->instr->step.op](reshard);
}
