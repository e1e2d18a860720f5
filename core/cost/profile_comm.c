/* core/cost/profile_comm.c - seconds of collectives: the analytic model over the machine's links, and the measured
 * table.
 *
 * The analytic model continues a table beyond its ends; it never replaces a measurement. Between two measured sizes the
 * seconds are interpolated over the bytes, which is exact for latency + bytes / bandwidth. If short messages pass in a
 * burst and a rate holds after it, the line lies above that by at most (sqrt(f) - 1) / (sqrt(f) + 1) at sizes a factor
 * f apart: 17 % at 2, a third at 4. */
#include "core/cost/profile_private.h"

#include <math.h>

#define MOST_BYTES 0x1p60

/* A kind of group: count ranks at a stride; groups of a kind tile the workers in blocks of count * stride. With held
 * > 0 these are numbers of a stage's workers, and the map of struct ghp_ranks says where they are. */
struct kind {
    int count, stride, workers;
    int held, group, from, part, skip;
    int apart; /* distance between a group's first two ranks: what tables know groups by */
};

static struct kind kind_of(struct ghp_ranks ranks, int workers)
{
    int apart = ranks.held == 0 || ranks.count < 2
                    ? ranks.stride
                    : ghp_ranks_at(ranks, 1) - ghp_ranks_at(ranks, 0);

    return (struct kind){.count = ranks.count,
                         .stride = ranks.stride,
                         .workers = workers,
                         .held = ranks.held,
                         .group = ranks.group,
                         .from = ranks.from,
                         .part = ranks.part,
                         .skip = ranks.skip,
                         .apart = apart};
}

/* Messages that leave the node of ranks a .. b - 1 when every group of the block at `base` exchanges in pairs: q
 * members inside send to p - q outside. A contiguous range of ranks deals its ranks evenly to the groups of a
 * block. */
static int64_t leaving_block(struct kind kind, int64_t base, int64_t a, int64_t b)
{
    int64_t end = base + (int64_t)kind.count * kind.stride, p = kind.count;
    int64_t here = (end < b ? end : b) - (base > a ? base : a);
    int64_t q = here / kind.stride,
            more = here % kind.stride; /* `more` groups have q + 1 members here */

    if (end > kind.workers) return 0; /* too few ranks are left for a group */
    return more * (q + 1) * (p - q - 1) + (kind.stride - more) * q * (p - q);
}

/* The rank with a number. */
static int64_t rank_of(struct kind kind, int64_t number)
{
    int64_t place = number % kind.held;

    return number / kind.held * kind.group + kind.from + place +
           (place >= kind.part ? kind.skip : 0);
}

/* Members of the number's group in ranks a .. b - 1, itself included: on both sides as far as the node reaches. */
static int64_t members_here(struct kind kind, int64_t number, int64_t a, int64_t b)
{
    int64_t block = (int64_t)kind.count * kind.stride, base = number / block * block, n = 1;

    for (int64_t k = number - kind.stride; k >= base && rank_of(kind, k) >= a; k -= kind.stride)
        n++;
    for (int64_t k = number + kind.stride; k < base + block && rank_of(kind, k) < b;
         k += kind.stride)
        n++;
    return n;
}

/* leaving_node of a stage's groups: every member of a node sends to those of its group that are elsewhere; by levels,
 * to one in each other node. */
static int64_t leaving_stage(const struct ghp_machine *machine, struct kind kind, bool levels)
{
    int per_node = ghp_machine_workers_per_node(machine, kind.workers);
    int64_t numbers = (int64_t)kind.workers / kind.group * kind.held, most = 0, sum = 0, node = -1;
    int64_t block = (int64_t)kind.count * kind.stride;

    for (int64_t k = 0; k < numbers; k++) {
        int64_t rank = rank_of(kind, k), here = ghp_node_of(rank, per_node);
        int64_t a = here * per_node;

        if (here != node) sum = 0;
        node = here;
        if (k / block * block + block <= numbers) {
            int64_t q = members_here(kind, k, a, a + per_node);

            sum += levels && kind.count % q == 0 ? kind.count / q - 1 : kind.count - q;
        }
        if (sum > most) most = sum;
    }
    return most;
}

/* Messages that leave the node where most do, of all groups of the kind at once, when they exchange in pairs; 0: each
 * group lies in one node.
 *
 * Tested   tests/core/sharding/test_crossing.c, against a walk over all members */
static int64_t leaving_node(const struct ghp_machine *machine, struct kind kind)
{
    int64_t block = (int64_t)kind.count * kind.stride, most = 0;
    int per_node = ghp_machine_workers_per_node(machine, kind.workers);

    if (per_node >= kind.workers) return 0;
    if (per_node == 1) return kind.count - 1;
    if (kind.held > 0) return leaving_stage(machine, kind, false);
    for (int64_t a = 0; a < kind.workers; a += per_node) {
        int64_t b = a + per_node < kind.workers ? a + per_node : kind.workers;
        int64_t first = a / block * block,
                last = (b - 1) / block * block; /* those between lie inside */
        int64_t leaving = leaving_block(kind, first, a, b);

        if (last != first) leaving += leaving_block(kind, last, a, b);
        if (leaving > most) most = leaving;
        if ((b % block == 0 || block % per_node == 0) && kind.workers % block == 0 &&
            kind.workers % per_node == 0)
            break; /* from here on it repeats */
    }
    return (int)most;
}

/* Sums and gathers go by levels if each group has as many members in every node that it touches: how many, else 1.
 * Only groups that fill their nodes are looked at; others that come out even are taken for pairs. */
static int members_in_node(enum ghp_comm_op op, const struct ghp_machine *machine, struct kind kind)
{
    int per_node = ghp_machine_workers_per_node(machine, kind.workers);
    int64_t span = (int64_t)kind.count * kind.stride;
    bool fills = per_node % kind.stride == 0 && span % per_node == 0 && span > per_node;

    if (kind.held > 0) return 1; /* leaving_stage looks at each member */
    return op != GHP_COMM_ALL_TO_ALL && fills ? per_node / kind.stride : 1;
}

/* What each of n that share a link has of it. */
static struct ghp_link divided(struct ghp_link link, double n)
{
    link.bandwidth_Bps /= n;
    link.asymptotic_Bps /= n;
    return link;
}

/* The link inside a node, as far as the groups of the kind have it: if GPUs are joined by a mesh of NVLinks, the
 * worst group of the first node of any bounds all. */
static struct ghp_link link_inside(const struct ghp_machine *machine, struct kind kind)
{
    int per_node = ghp_machine_workers_per_node(machine, kind.workers);
    int64_t block = (int64_t)kind.count * kind.stride;
    unsigned members[GHP_MESH_GPUS] = {0};
    int64_t number[GHP_MESH_GPUS];
    struct ghp_link link = machine->intra;
    double fraction = 1;
    int n = 0;

    if (per_node > GHP_MESH_GPUS || !ghp_gpus_are_mesh(&machine->gpus)) return link;
    for (int64_t k = 0; k < kind.workers && n < per_node; k++) {
        int64_t rank = kind.held > 0 ? rank_of(kind, k) : k;

        if (rank >= kind.workers || ghp_node_of(rank, per_node) >
                                        ghp_node_of(kind.held > 0 ? rank_of(kind, 0) : 0, per_node))
            break;
        number[n] = k;
        for (int i = 0; i <= n; i++) {
            if (number[i] / block != k / block || number[i] % kind.stride != k % kind.stride)
                continue;
            members[i] |= 1u << rank % per_node;
            break;
        }
        n++;
    }
    for (int i = 0; i < n; i++)
        if ((members[i] & (members[i] - 1)) != 0)
            fraction = fmin(fraction, ghp_gpus_fraction(&machine->gpus, members[i]));
    link.bandwidth_Bps *= fraction;
    return link;
}

/* The link that bounds the groups of a kind, with the part of it that one rank's messages to its p - 1 peers get. */
static struct ghp_link link_of(enum ghp_comm_op op, const struct ghp_machine *machine,
                               struct kind kind)
{
    int per_node = ghp_machine_workers_per_node(machine, kind.workers);
    bool staged = kind.held > 0 && per_node > 1 && per_node < kind.workers;
    int64_t leaving = staged ? leaving_stage(machine, kind, op != GHP_COMM_ALL_TO_ALL)
                             : leaving_node(machine, kind);
    struct ghp_link inside_node = link_inside(machine, kind);
    struct ghp_link link = leaving > 0 ? ghp_machine_inter(machine, kind.workers) : inside_node;
    double p = kind.count, q = members_in_node(op, machine, kind), inside;

    if (q <= 1) return leaving > 0 ? divided(link, (double)leaving / (p - 1)) : link;
    /* NCCL's rings pass each node once: all p - 1 messages of a rank go over its link, and none of the others'. A
     * message takes p - 1 hops, of which p / q - 1 leave a node. Those inside a node take less time (NCCL 2.18,
     * src/graph/tuning.cc) */
    if (machine->gpus.count > 0) {
        link.latency_s =
            ((p - p / q) * machine->intra.latency_s + (p / q - 1) * machine->inter.latency_s) /
            (p - 1);
        link = divided(link, kind.stride);
        link.bandwidth_Bps = fmin(link.bandwidth_Bps, inside_node.bandwidth_Bps);
        return link;
    }
    /* between the nodes each of q members sends p / q - 1 messages, inside its node (q - 1) p / q */
    link = divided(link, kind.stride * (p - q) / (p - 1));
    inside = inside_node.bandwidth_Bps / ((q - 1) * p / q / (p - 1));
    if (inside < link.bandwidth_Bps) link.bandwidth_Bps = inside;
    return link;
}

/* Source   docs/explanation/time-model.md 3 */
static double analytic_of(enum ghp_comm_op op, int64_t bytes, int count, struct ghp_link link)
{
    double n = count, volume = (double)bytes;

    if (count <= 1 || op == GHP_COMM_NONE) return 0;
    if (op == GHP_COMM_TRANSFER || op == GHP_COMM_SHIFT)
        return volume / link.bandwidth_Bps + link.latency_s;
    if (op == GHP_COMM_ALL_REDUCE)
        return 2 * (n - 1) / n * volume / link.bandwidth_Bps + 2 * (n - 1) * link.latency_s;
    return (n - 1) / n * volume / link.bandwidth_Bps + (n - 1) * link.latency_s;
}

/* A tree's bandwidth next to a ring's, as NCCL's own tuning takes it: src/graph/tuning.cc, version 2.18 */
static const double tree_fraction = 0.92;

/* The same source, in later versions */
static const double nvls_latency_s = 25e-6;

/* Seconds of an all-reduce that the node's NVLink switch adds up: it reads each GPU's tensor once, and sends each what
 * the others have of the sums. A GPU's links carry its tensor and 1/p of it each way. */
static double nvls_s(int64_t bytes, const struct ghp_machine *machine, int count)
{
    double rate = machine->gpus.nvls * machine->intra.bandwidth_Bps;

    return rate > 0 ? (1 + 1.0 / count) * (double)bytes / rate + nvls_latency_s : INFINITY;
}

/* Seconds over the machine's links. On GPUs an all-reduce goes by the quicker of ring and tree: the tree sends as much,
 * at a smaller fraction of the rate, with a latency that grows with the logarithm of the nodes. Inside a node it goes by
 * the quicker of ring and switch. */
static double machine_seconds(enum ghp_comm_op op, int64_t bytes, const struct ghp_machine *machine,
                              struct kind kind)
{
    struct ghp_link link = link_of(op, machine, kind);
    double ring_s = analytic_of(op, bytes, kind.count, link), tree_s, nodes;
    int q = members_in_node(op, machine, kind);

    if (machine->gpus.count == 0 || op != GHP_COMM_ALL_REDUCE) return ring_s;
    if (leaving_node(machine, kind) == 0) return fmin(ring_s, nvls_s(bytes, machine, kind.count));
    nodes = (double)kind.count / q;
    tree_s = 2 * (double)bytes / (tree_fraction * link.bandwidth_Bps) +
             2 * ((q - 1) * machine->intra.latency_s + log2(nodes) * machine->inter.latency_s);
    return fmin(ring_s, tree_s);
}

double ghp_machine_comm_s(const struct ghp_machine *machine, enum ghp_comm_op op, int64_t bytes,
                          struct ghp_ranks ranks, int workers)
{
    struct kind kind = kind_of(ranks, workers);

    return ranks.count <= 1 ? 0 : machine_seconds(op, bytes, machine, kind);
}

/* The workers that ran when an entry of this kind was measured. */
static struct kind measured_kind(const struct ghp_profile *profile,
                                 const struct ghp_comm_entry *entry, int workers)
{
    int64_t span = (int64_t)entry->count * entry->stride;

    return (struct kind){.count = entry->count,
                         .stride = entry->stride,
                         .workers = profile->workers >= span ? profile->workers : workers,
                         .apart = entry->stride};
}

bool ghp_machine_crosses(const struct ghp_machine *machine, int count, int stride, int workers)
{
    return leaving_node(machine, (struct kind){.count = count,
                                               .stride = stride,
                                               .workers = workers,
                                               .apart = stride}) > 0;
}

bool ghp_profile_entry_crosses(const struct ghp_profile *profile,
                               const struct ghp_comm_entry *entry)
{
    struct kind kind = measured_kind(profile, entry, entry->count * entry->stride);

    return leaving_node(&profile->machine, kind) > 0;
}

double ghp_profile_entry_analytic_s(const struct ghp_profile *profile,
                                    const struct ghp_comm_entry *entry)
{
    struct kind kind = measured_kind(profile, entry, entry->count * entry->stride);

    return analytic_of(entry->op, entry->bytes, entry->count,
                       link_of(entry->op, &profile->machine, kind));
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
    const struct ghp_comm_entry *e;

    if (i >= profile->n_comms) return false; /* there may be none at all */
    e = &profile->comms[i];
    return e->op == like->op && e->count == like->count && e->stride == like->stride;
}

/* The entries around pick->bytes in the table that starts at `start`; beyond its end the last two. */
static void points_around(const struct ghp_profile *profile, int start,
                          struct ghp_comm_interpolation *points)
{
    const struct ghp_comm_entry *like = &profile->comms[start], *at;
    int i = start, last = start;

    while (in_table(profile, last + 1, like))
        last++;
    while (i < last && profile->comms[i + 1].bytes <= points->bytes)
        i++;
    at = &profile->comms[i];
    if (i == last && i > start && at->bytes < points->bytes) at = &profile->comms[--i];
    points->n = i == last || at->bytes >= points->bytes ? 1 : 2;
    points->entry[0] = at;
    points->entry[1] = points->n == 2 ? at + 1 : NULL;
}

/* Tables that can stand for an operation's own, the likest first. Gathers, scatters and all-to-alls exchange the same
 * messages; a reduction does so twice. */
static const enum ghp_comm_op stand_ins[] = {GHP_COMM_REDUCE_SCATTER, GHP_COMM_ALL_GATHER,
                                             GHP_COMM_ALL_TO_ALL, GHP_COMM_ALL_REDUCE};
enum { N_STAND_INS = sizeof stand_ins / sizeof stand_ins[0] };

/* How often an operation exchanges a message with each other rank. */
static int reshards_of(enum ghp_comm_op op)
{
    return op == GHP_COMM_ALL_REDUCE ? 2 : 1;
}

/* Between tables, in doublings of a group's ranks. A stride matters little if the same link is crossed as often. A
 * reduction's second exchange follows without its ranks having to be awaited: if messages are short it takes 1.5
 * times as long as one exchange, not twice. */
static const double stride_distance = 0.25, halves_distance = 0.5;

/* The table of `op` over the groups that are most like those asked for: first by the link that is crossed, then by the
 * ratios of counts and strides; of equals the first. `start` is added to every distance. Lowers *least if it
 * finds one nearer. */
static int nearer_table(const struct ghp_profile *profile, enum ghp_comm_op op, struct kind kind,
                        double start, double *least)
{
    bool inter = leaving_node(&profile->machine, kind) > 0;
    int best = -1;

    for (int i = table_start(profile, op, 0, 0);
         i < profile->n_comms && profile->comms[i].op == op;) {
        const struct ghp_comm_entry *e = &profile->comms[i];
        struct kind theirs = measured_kind(profile, e, kind.workers);
        double distance = start + fabs(log2((double)e->count / kind.count)) +
                          stride_distance * fabs(log2((double)e->stride / kind.apart));

        if ((leaving_node(&profile->machine, theirs) > 0) != inter) distance += 1e3;
        if (distance < *least) {
            *least = distance;
            best = i;
        }
        while (i < profile->n_comms && in_table(profile, i, e))
            i++;
    }
    return best;
}

/* Start of the table to read, or -1: of the same groups rather than of the same operation, but of others rather than
 * of an operation that exchanges more or fewer times. */
static int choose_table(const struct ghp_profile *profile, enum ghp_comm_op op, struct kind kind)
{
    struct ghp_comm_entry wanted = {.op = op, .count = kind.count, .stride = kind.apart};
    int own = table_start(profile, op, kind.count, kind.apart), best;
    double least = INFINITY;

    if (profile->n_comms == 0) return -1;
    if (in_table(profile, own, &wanted)) return own;
    best = nearer_table(profile, op, kind, 0, &least);
    for (int i = 0; i < N_STAND_INS; i++) {
        bool alike = reshards_of(stand_ins[i]) == reshards_of(op);
        int other = stand_ins[i] == op ? -1
                                       : nearer_table(profile, stand_ins[i], kind,
                                                      alike ? 0 : halves_distance, &least);

        if (other >= 0) best = other;
    }
    return best;
}

/* Seconds a byte by the analytic model, without latency. */
static double per_byte_s(enum ghp_comm_op op, int count, struct ghp_link link)
{
    link.latency_s = 0;
    return analytic_of(op, 1 << 20, count, link) / (1 << 20);
}

struct ghp_comm_interpolation ghp_profile_comm_points(const struct ghp_profile *profile,
                                                      enum ghp_comm_op op, int64_t bytes,
                                                      struct ghp_ranks ranks, int workers)
{
    struct kind kind = kind_of(ranks, workers);
    int start = choose_table(profile, op, kind);
    struct ghp_comm_interpolation points = {.bytes = bytes, .factor = 1};
    const struct ghp_comm_entry *e;

    GHP_ASSERT(profile->finalized);
    if (start < 0) return points;
    e = &profile->comms[start];
    points.own =
        e->op == op && e->count == ranks.count && e->stride == ranks.stride && ranks.held == 0;
    if (!points.own) {
        struct ghp_link theirs =
            link_of(e->op, &profile->machine, measured_kind(profile, e, kind.workers));
        double load = per_byte_s(op, ranks.count, link_of(op, &profile->machine, kind)) /
                      per_byte_s(e->op, e->count, theirs);

        points.factor = (double)reshards_of(op) / reshards_of(e->op);
        load *= (double)bytes / points.factor;
        if (!isfinite(load)) return (struct ghp_comm_interpolation){.bytes = bytes, .factor = 1};
        points.bytes = load < 1 ? 1 : load < MOST_BYTES ? llround(load) : (int64_t)MOST_BYTES;
    }
    points_around(profile, start, &points);
    return points;
}

/* Seconds at `bytes` on the line through two entries. */
static double launch_overhead_s(const struct ghp_comm_entry *a, const struct ghp_comm_entry *b,
                                int64_t bytes)
{
    double part = (double)(bytes - a->bytes) / (double)(b->bytes - a->bytes);

    return a->seconds + part * (b->seconds - a->seconds);
}

/* Seconds a byte that more bytes take if messages are long; 0: it is not known. */
static double long_rise(const struct ghp_profile *profile, const struct ghp_comm_entry *entry,
                        int workers)
{
    struct ghp_link link =
        link_of(entry->op, &profile->machine, measured_kind(profile, entry, workers));

    link.bandwidth_Bps = link.asymptotic_Bps;
    return link.asymptotic_Bps > 0 ? per_byte_s(entry->op, entry->count, link) : 0;
}

/* Seconds beyond the table's last entry b, which follows a. They grow at the rate of long messages if the table has no
 * long ones, else on the straight line through its last two entries. They are never less than at the end, and that line
 * never takes more than in proportion to it. NAN: nothing says. */
static double beyond_s(const struct ghp_profile *profile, const struct ghp_comm_entry *a,
                       const struct ghp_comm_entry *b, int64_t bytes, int workers)
{
    double rise = b->bytes < GHP_LONG_BYTES ? long_rise(profile, b, workers) : 0, line;

    if (rise > 0) return b->seconds + rise * (double)(bytes - b->bytes);
    if (a == NULL) return NAN;
    rise = (b->seconds - a->seconds) / (double)(b->bytes - a->bytes);
    line = b->seconds + rise * (double)(bytes - b->bytes);

    return fmin(fmax(line, b->seconds), b->seconds * (double)bytes / (double)b->bytes);
}

/* Messages from this size on are what a link's rate says something of. */
enum { LAW_BYTES = 64 << 10 };

double ghp_profile_comm_spread(const struct ghp_profile *profile)
{
    double seconds = 0, off_s = 0;

    for (int i = 0; i < profile->n_comms; i++) {
        const struct ghp_comm_entry *entry = &profile->comms[i];

        if (entry->source != GHP_SOURCE_MEASURED || entry->bytes < LAW_BYTES) continue;
        seconds += entry->seconds;
        off_s += fabs(ghp_profile_entry_analytic_s(profile, entry) - entry->seconds);
    }
    return seconds > 0 && isfinite(off_s) ? 2 * off_s / seconds : 0;
}

static enum ghp_source worse(enum ghp_source a, enum ghp_source b)
{
    return a > b ? a : b;
}

static enum ghp_status fail_link(enum ghp_comm_op op, struct ghp_ranks ranks)
{
    return GHP_FAIL(
        GHP_ERR_MISSING,
        "the profile cannot cost %s over %d ranks at stride %d: no entry fits and the machine's "
        "link has no "
        "bandwidth; measure it with ghp-profile --workers, or set bandwidth_Bps in the machine",
        ghp_comm_name(op), ranks.count, ranks.stride);
}

/* Seconds at pick->bytes in the picked table; NAN if only an analytic model without bandwidth could say. */
static double read_table(const struct ghp_profile *profile,
                         const struct ghp_comm_interpolation *points, int workers)
{
    const struct ghp_comm_entry *a = points->entry[0], *b = points->entry[1];
    struct ghp_link link;
    double seconds;

    if (points->n == 2)
        return b->bytes < points->bytes ? beyond_s(profile, a, b, points->bytes, workers)
                                        : launch_overhead_s(a, b, points->bytes);
    if (a->bytes == points->bytes) return a->seconds;
    if (a->bytes < points->bytes) {
        seconds = beyond_s(profile, NULL, a, points->bytes, workers);
        if (isfinite(seconds)) return seconds;
    }
    link = link_of(a->op, &profile->machine, measured_kind(profile, a, workers));
    if (!(link.bandwidth_Bps > 0)) return NAN;
    return a->seconds * analytic_of(a->op, points->bytes, a->count, link) /
           analytic_of(a->op, a->bytes, a->count, link);
}

static void cost_by_table(const struct ghp_profile *profile,
                          const struct ghp_comm_interpolation *points, double seconds,
                          struct ghp_cost *cost)
{
    const struct ghp_comm_entry *a = points->entry[0], *b = points->entry[1];

    cost->seconds = seconds * points->factor;
    cost->spread = b != NULL ? fmax(a->spread, b->spread) : a->spread;
    cost->source =
        b != NULL ? worse(GHP_SOURCE_INTERPOLATED, worse(a->source, b->source)) : a->source;
    if (!points->own || (b != NULL ? b->bytes < points->bytes : a->bytes != points->bytes))
        cost->source = GHP_SOURCE_ANALYTIC;
    if (cost->source == GHP_SOURCE_ANALYTIC)
        cost->spread = fmax(cost->spread, profile->analytic.comm_spread);
}

/* What passed between nodes faster than the link's rate allows still occupies the link afterwards, for the rest of the
 * time. */
static void note_queue(const struct ghp_profile *profile, const struct ghp_comm_entry *entry,
                       const struct ghp_comm_interpolation *points, int workers,
                       struct ghp_cost *cost)
{
    cost->crosses = leaving_node(&profile->machine, measured_kind(profile, entry, workers)) > 0;
    if (cost->crosses)
        cost->owed_s =
            fmax(0, points->factor * long_rise(profile, entry, workers) * (double)points->bytes -
                        cost->seconds);
}

enum ghp_status ghp_profile_comm(const struct ghp_profile *profile, enum ghp_comm_op op,
                                 int64_t bytes, struct ghp_ranks ranks, int workers,
                                 struct ghp_cost *cost)
{
    struct kind kind = kind_of(ranks, workers);
    struct ghp_comm_interpolation points;
    double seconds;

    *cost = (struct ghp_cost){.source = GHP_SOURCE_MEASURED};
    if (ranks.count <= 1 || bytes <= 0 || op == GHP_COMM_NONE) return GHP_OK;
    points = ghp_profile_comm_points(profile, op, bytes, ranks, workers);
    if (points.n > 0) {
        seconds = read_table(profile, &points, workers);
        if (!isfinite(seconds)) return fail_link(op, ranks);
        cost_by_table(profile, &points, seconds, cost);
        note_queue(profile, points.entry[0], &points, workers, cost);
        return GHP_OK;
    }
    cost->source = GHP_SOURCE_ANALYTIC;
    cost->spread = profile->analytic.comm_spread;
    if (!(link_of(op, &profile->machine, kind).bandwidth_Bps > 0)) return fail_link(op, ranks);
    cost->seconds = machine_seconds(op, bytes, &profile->machine, kind);
    return GHP_OK;
}
