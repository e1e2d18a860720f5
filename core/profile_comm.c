/* core/profile_comm.c - seconds of collectives: the ring law over the machine's links, and the measured table.
 *
 * The law is what a table is continued by; it never replaces a measurement.  Between two measured sizes the logarithm
 * of the seconds is interpolated over the logarithm of the bytes: a straight line there is a power of the size, which
 * holds both the latency end (power 0) and the bandwidth end (power 1) exactly.  Of latency + bytes / bandwidth,
 * measured at sizes a factor 4 apart, it misses at most 6 %; seconds over the logarithm of the bytes miss 25 %. */
#include "core/profile_private.h"

#include <math.h>
#include <stdlib.h>

/* A kind of group: count ranks at a stride; groups of a kind tile the workers in blocks of count * stride. */
struct kind {
    int count, stride, workers;
};

/* Groups of the block that starts at `base` with members both inside and outside a node, ranks a .. b - 1.  Member i of
 * group j is rank base + j + i * stride: of the groups that the node meets, those lie in it whose first and last member do. */
static int64_t crossing_in_block(struct kind kind, int64_t base, int64_t a, int64_t b)
{
    int64_t block = (int64_t)kind.count * kind.stride;
    int64_t low = base > a ? base : a, high = base + block < b ? base + block : b;
    int64_t met = high - low < kind.stride ? high - low : kind.stride;
    int64_t first = low - base; /* least j whose first member is inside */
    int64_t last = b - 1 - base - (kind.count - 1) * (int64_t)kind.stride;

    if (b == kind.workers && last < 0) last = high - 1 - base; /* the last block may be cut off */
    if (b == kind.workers || last >= kind.stride) last = kind.stride - 1;
    if (last > high - 1 - base) last = high - 1 - base;
    return last < first ? met : met - (last - first + 1);
}

/* Groups with members inside and outside a node, for the node where most cross; 0: each group lies in one node.
 *
 * Tested   tests/core/test_crossing.c, against a walk over all ranks */
static int crossing_groups(const struct ghp_machine *machine, struct kind kind)
{
    int64_t block = (int64_t)kind.count * kind.stride, most = 0, ceiling;
    int per_node = ghp_machine_workers_per_node(machine, kind.workers);

    if (per_node >= kind.workers) return 0;
    if (per_node == 1) return kind.count > 1 ? 1 : 0;
    /* where nodes fit into blocks, no node meets more groups than this */
    ceiling = block % per_node == 0 && kind.stride < per_node ? kind.stride : per_node;
    for (int64_t a = 0; a < kind.workers && most < ceiling; a += per_node) {
        int64_t b = a + per_node < kind.workers ? a + per_node : kind.workers, crossing = 0;

        for (int64_t base = a / block * block; base < b; base += block)
            crossing += crossing_in_block(kind, base, a, b);
        if (crossing > most) most = crossing;
        if (b % block == 0 && kind.workers % block == 0 && kind.workers % per_node == 0)
            break; /* from here on it repeats */
    }
    return (int)most;
}

/* The link that bounds the groups of a kind, with the share of it that each group gets. */
static struct ghp_link link_of(const struct ghp_machine *machine, struct kind kind)
{
    int crossing = crossing_groups(machine, kind);
    struct ghp_link link = crossing > 0 ? machine->inter : machine->intra;

    if (crossing > 1) link.bandwidth_Bps /= crossing;
    return link;
}

/* Source   docs/time-model.md 3 */
static double ring_s(enum ghp_comm_op op, int64_t bytes, int count, struct ghp_link link)
{
    double n = count, volume = (double)bytes;

    if (count <= 1 || op == GHP_COMM_NONE) return 0;
    if (op == GHP_COMM_ALL_REDUCE)
        return 2 * (n - 1) / n * volume / link.bandwidth_Bps + 2 * (n - 1) * link.latency_s;
    return (n - 1) / n * volume / link.bandwidth_Bps + (n - 1) * link.latency_s;
}

double ghp_machine_comm_s(const struct ghp_machine *machine, enum ghp_comm_op op, int64_t bytes,
                          struct ghp_ranks ranks, int workers)
{
    struct kind kind = {ranks.count, ranks.stride, workers};

    return ranks.count <= 1 ? 0 : ring_s(op, bytes, ranks.count, link_of(machine, kind));
}

/* The workers that ran when an entry of this kind was measured. */
static struct kind measured_kind(const struct ghp_profile *profile,
                                 const struct ghp_comm_entry *entry, int workers)
{
    int64_t span = (int64_t)entry->count * entry->stride;

    return (struct kind){entry->count, entry->stride,
                         profile->workers >= span ? profile->workers : workers};
}

bool ghp_machine_crosses(const struct ghp_machine *machine, int count, int stride, int workers)
{
    return crossing_groups(machine, (struct kind){count, stride, workers}) > 0;
}

bool ghp_profile_entry_crosses(const struct ghp_profile *profile,
                               const struct ghp_comm_entry *entry)
{
    struct kind kind = measured_kind(profile, entry, entry->count * entry->stride);

    return crossing_groups(&profile->machine, kind) > 0;
}

double ghp_profile_entry_law_s(const struct ghp_profile *profile,
                               const struct ghp_comm_entry *entry)
{
    struct kind kind = measured_kind(profile, entry, entry->count * entry->stride);

    return ring_s(entry->op, entry->bytes, entry->count, link_of(&profile->machine, kind));
}

/* First entry of the table of (op, count, stride), or of any later one. */
static int table_start(const struct ghp_profile *profile, enum ghp_comm_op op, int count,
                       int stride)
{
    int low = 0, high = profile->n_comms;

    while (low < high) {
        int mid = low + (high - low) / 2;
        const struct ghp_comm_entry *e = &profile->comms[mid];
        bool before = e->op != op         ? e->op < op
                      : e->count != count ? e->count < count
                                          : e->stride < stride;

        if (before)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool in_table(const struct ghp_profile *profile, int i, const struct ghp_comm_entry *like)
{
    const struct ghp_comm_entry *e = &profile->comms[i];

    return i < profile->n_comms && e->op == like->op && e->count == like->count &&
           e->stride == like->stride;
}

/* The entries around `bytes` in the table that starts at `start`; beyond its end the last two. */
static struct ghp_pick_comm pick_around(const struct ghp_profile *profile, int start, int64_t bytes)
{
    const struct ghp_comm_entry *like = &profile->comms[start];
    int i = start;

    while (in_table(profile, i + 1, like) && profile->comms[i + 1].bytes <= bytes)
        ++i;
    if (!in_table(profile, i + 1, like) && i > start && profile->comms[i].bytes < bytes)
        return (struct ghp_pick_comm){2, {&profile->comms[i - 1], &profile->comms[i]}};
    if (profile->comms[i].bytes >= bytes || !in_table(profile, i + 1, like))
        return (struct ghp_pick_comm){1, {&profile->comms[i]}};
    return (struct ghp_pick_comm){2, {&profile->comms[i], &profile->comms[i + 1]}};
}

/* Start of the table of `op` that is most like the one asked for, or -1: first by the link that is crossed, then by
 * the ratios of counts and strides; of equals the first. */
static int nearest_table(const struct ghp_profile *profile, enum ghp_comm_op op, struct kind kind)
{
    bool inter = crossing_groups(&profile->machine, kind) > 0;
    double least = INFINITY;
    int best = -1;

    for (int i = table_start(profile, op, 0, 0);
         i < profile->n_comms && profile->comms[i].op == op;) {
        const struct ghp_comm_entry *e = &profile->comms[i];
        struct kind theirs = measured_kind(profile, e, kind.workers);
        double distance =
            fabs(log2((double)e->count / kind.count)) + fabs(log2((double)e->stride / kind.stride));

        if ((crossing_groups(&profile->machine, theirs) > 0) != inter) distance += 1e3;
        if (distance < least) {
            least = distance;
            best = i;
        }
        while (i < profile->n_comms && in_table(profile, i, e))
            ++i;
    }
    return best;
}

struct ghp_pick_comm ghp_profile_pick_comm(const struct ghp_profile *profile, enum ghp_comm_op op,
                                           int64_t bytes, struct ghp_ranks ranks, int workers)
{
    struct ghp_comm_entry wanted = {.op = op, .count = ranks.count, .stride = ranks.stride};
    int start = table_start(profile, op, ranks.count, ranks.stride);

    GHP_ASSERT(profile->sealed);
    if (!in_table(profile, start, &wanted))
        start = nearest_table(profile, op, (struct kind){ranks.count, ranks.stride, workers});
    return start < 0 ? (struct ghp_pick_comm){0} : pick_around(profile, start, bytes);
}

/* Seconds at `bytes` on the line through two entries, logarithms on both axes. */
static double between_s(const struct ghp_comm_entry *a, const struct ghp_comm_entry *b,
                        int64_t bytes)
{
    double part = log((double)bytes / (double)a->bytes) / log((double)b->bytes / (double)a->bytes);

    if (a->seconds <= 0 || b->seconds <= 0) return a->seconds + part * (b->seconds - a->seconds);
    return a->seconds * pow(b->seconds / a->seconds, part);
}

/* Seconds beyond the table's end b: on the straight line through its last two entries, which is the link's rate as it
 * was measured; never less than at the end, never more than in proportion to it. */
static double beyond_s(const struct ghp_comm_entry *a, const struct ghp_comm_entry *b,
                       int64_t bytes)
{
    double rise = (b->seconds - a->seconds) / (double)(b->bytes - a->bytes);
    double line = b->seconds + rise * (double)(bytes - b->bytes);

    return fmin(fmax(line, b->seconds), b->seconds * (double)bytes / (double)b->bytes);
}

static enum ghp_source worse(enum ghp_source a, enum ghp_source b)
{
    return a > b ? a : b;
}

static enum ghp_status fail_link(enum ghp_comm_op op, struct ghp_ranks ranks)
{
    return GHP_FAIL(
        GHP_ERR_MISSING,
        "the profile cannot price %s over %d ranks at stride %d: no entry fits and the machine's "
        "link has no "
        "bandwidth; measure it with ghp-profile --workers, or set bandwidth_Bps in the machine",
        ghp_comm_name(op), ranks.count, ranks.stride);
}

enum ghp_status ghp_profile_comm(const struct ghp_profile *profile, enum ghp_comm_op op,
                                 int64_t bytes, struct ghp_ranks ranks, int workers,
                                 struct ghp_price *price)
{
    struct kind kind = {ranks.count, ranks.stride, workers};
    const struct ghp_comm_entry *entry;
    struct ghp_pick_comm pick;
    double law_s, entry_law_s;

    *price = (struct ghp_price){.source = GHP_SOURCE_MEASURED};
    if (ranks.count <= 1 || bytes <= 0 || op == GHP_COMM_NONE) return GHP_OK;
    pick = ghp_profile_pick_comm(profile, op, bytes, ranks, workers);
    entry = pick.entry[0];
    if (pick.n > 0) {
        price->spread = entry->spread;
        price->source = entry->source;
        price->seconds = entry->seconds;
    }
    bool beyond = pick.n == 2 && pick.entry[1]->bytes < bytes;
    if (pick.n == 2) {
        price->seconds =
            beyond ? beyond_s(entry, pick.entry[1], bytes) : between_s(entry, pick.entry[1], bytes);
        price->spread = fmax(entry->spread, pick.entry[1]->spread);
        price->source = worse(GHP_SOURCE_INTERPOLATED, worse(entry->source, pick.entry[1]->source));
    }
    if (pick.n > 0 && entry->count == ranks.count && entry->stride == ranks.stride &&
        (pick.n == 2 || entry->bytes == bytes)) {
        if (beyond) price->source = GHP_SOURCE_LAW;
        return GHP_OK;
    }

    /* the law, scaled so that it meets the entries where they are */
    price->source = GHP_SOURCE_LAW;
    if (!(link_of(&profile->machine, kind).bandwidth_Bps > 0)) return fail_link(op, ranks);
    law_s = ring_s(op, bytes, ranks.count, link_of(&profile->machine, kind));
    if (pick.n == 0) {
        price->seconds = law_s;
        return GHP_OK;
    }
    if (entry->count != ranks.count || entry->stride != ranks.stride)
        kind = measured_kind(profile, entry, workers);
    entry_law_s = ring_s(op, pick.n == 2 ? bytes : entry->bytes, entry->count,
                         link_of(&profile->machine, kind));
    if (!isfinite(entry_law_s)) return fail_link(op, ranks);
    price->seconds *= law_s / entry_law_s;
    return GHP_OK;
}
