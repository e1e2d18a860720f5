/* core/sharding/transfer.c - see transfer.h. */
#include "core/sharding/transfer.h"

/* What a worker holds of the tensor (as sender), or wants of it. */
static struct ghp_region region_of(const struct ghp_transfer *t,
                                   const struct ghp_placement *placement, bool sends)
{
    struct ghp_layout layout = sends ? t->from : t->to;

    if (sends && layout.kind == GHP_LAYOUT_FULL) /* copies: each sends its own slice */
        layout = (struct ghp_layout){GHP_LAYOUT_BATCH, 1};
    return ghp_placement_region(placement, layout, t->shape);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool ghp_transfer_slice(const struct ghp_transfer *t, const struct ghp_placement *sender,
                        const struct ghp_placement *receiver, struct ghp_slice *slice)
{
    struct ghp_region a = region_of(t, sender, true), b = region_of(t, receiver, false);

    slice->first_sample = larger(a.first_sample, b.first_sample);
    slice->samples =
        smaller(a.first_sample + a.samples, b.first_sample + b.samples) - slice->first_sample;
    slice->first_position = larger(a.first_position, b.first_position);
    slice->positions = smaller(a.first_position + a.positions, b.first_position + b.positions) -
                       slice->first_position;
    slice->first_channel = larger(a.first_channel, b.first_channel);
    slice->channels =
        smaller(a.first_channel + a.channels, b.first_channel + b.channels) - slice->first_channel;
    slice->packs = slice->channels < a.channels || slice->positions < a.positions;
    slice->unpacks = slice->channels < b.channels || slice->positions < b.positions;
    return slice->samples > 0 && slice->positions > 0 && slice->channels > 0;
}

int64_t ghp_slice_bytes(const struct ghp_transfer *t, const struct ghp_slice *slice)
{
    return slice->samples * slice->channels * slice->positions * t->shape.w * t->element_bytes;
}

bool ghp_transfer_joins(const struct ghp_transfer *t)
{
    bool wants_all = t->to.kind != t->from.kind;

    if (t->from.kind == GHP_LAYOUT_PARTIAL) return t->from.tp_size > 1;
    if (t->to.kind == GHP_LAYOUT_CHANNEL && ghp_shape_columns(t->shape) % t->to.tp_size != 0)
        return !ghp_layout_same(t->from, t->to); /* padding is not sent */
    if (t->from.kind != GHP_LAYOUT_CHANNEL && t->from.kind != GHP_LAYOUT_SEQUENCE) return false;
    return wants_all || t->to.tp_size < t->from.tp_size || t->to.tp_size % t->from.tp_size != 0;
}

/* Workers of a group that stand before those of a stage. */
static int workers_before(const struct ghp_transfer *t, int stage)
{
    int sum = 0;

    for (int i = 0; i < stage; i++)
        sum += t->staging->stage[i].workers;
    return sum;
}

/* The workers of a stage, in a placement's group, whose subgroups of `tp_size` hold any of the samples. */
static struct ghp_peers workers_with(const struct ghp_transfer *t,
                                     const struct ghp_placement *placement, int stage, int tp_size,
                                     struct ghp_region at)
{
    int size = ghp_staging_group(t->staging, t->whole.workers),
        group = placement->number / placement->held;
    int first = group * size, last, from = workers_before(t, stage);
    int64_t start; /* the group's first sample */

    start = ghp_placement_of(t->staging, t->n_layers, t->whole, first).first_sample;
    last = ghp_stage_worker_of(t->staging, stage, group, t->whole,
                               at.first_sample + at.samples - 1 - start);
    first = ghp_stage_worker_of(t->staging, stage, group, t->whole, at.first_sample - start);
    first = first / tp_size * tp_size;
    last = last / tp_size * tp_size + tp_size - 1;
    return (struct ghp_peers){.first = group * size + from + first, .n = last - first + 1};
}

struct ghp_peers ghp_transfer_receivers(const struct ghp_transfer *t,
                                        const struct ghp_placement *sender)
{
    return workers_with(t, sender, t->to_stage, t->to.tp_size, region_of(t, sender, true));
}

struct ghp_peers ghp_transfer_senders(const struct ghp_transfer *t,
                                      const struct ghp_placement *receiver)
{
    return workers_with(t, receiver, t->from_stage, t->from.tp_size, region_of(t, receiver, false));
}

struct ghp_ranks ghp_transfer_ranks(const struct ghp_transfer *t, int rank)
{
    bool forward = t->from_stage < t->to_stage;
    int a = forward ? t->from_stage : t->to_stage, b = forward ? t->to_stage : t->from_stage;
    int group = ghp_staging_group(t->staging, t->whole.workers);
    int front = t->staging->stage[a].workers, held = front + t->staging->stage[b].workers;

    return (struct ghp_ranks){.first = rank / group * held,
                              .count = held,
                              .stride = 1,
                              .held = held,
                              .group = group,
                              .from = workers_before(t, a),
                              .part = front,
                              .skip = workers_before(t, b) - workers_before(t, a) - front};
}

static struct ghp_placement placement_of(const struct ghp_transfer *t, int rank)
{
    return ghp_placement_of(t->staging, t->n_layers, t->whole, rank);
}

/* What a worker sends to all its peers, or receives from them. */
static struct ghp_traffic traffic_of(const struct ghp_transfer *t, int rank, bool sends)
{
    struct ghp_placement own = placement_of(t, rank);
    struct ghp_peers peers =
        sends ? ghp_transfer_receivers(t, &own) : ghp_transfer_senders(t, &own);
    bool joins = !sends && ghp_transfer_joins(t);
    struct ghp_traffic sum = {0};

    for (int r = peers.first; r < peers.first + peers.n; r++) {
        struct ghp_placement other = placement_of(t, r);
        struct ghp_slice slice;

        if (!ghp_transfer_slice(t, sends ? &own : &other, sends ? &other : &own, &slice)) continue;
        sum.messages++;
        sum.bytes += ghp_slice_bytes(t, &slice);
        if (joins || (sends && slice.packs)) sum.packed_bytes += ghp_slice_bytes(t, &slice);
    }
    return sum;
}

struct ghp_traffic ghp_transfer_sent(const struct ghp_transfer *t, int rank)
{
    return traffic_of(t, rank, true);
}

struct ghp_traffic ghp_transfer_received(const struct ghp_transfer *t, int rank)
{
    return traffic_of(t, rank, false);
}
