/* executor/transport_mpi_levels.c - collectives that go level by level: sums and gathers.
 *
 * A communicator's ranks are one level, or two where several of them share a node and several nodes take part: the
 * ranks of one node, and the ranks that have the same place in their nodes.  A sum is scattered over the levels, each
 * rank adding its part of what the level before left it, and gathered back in reverse; so over two levels each node's
 * link carries what a ring would, and not a copy for every pair of ranks.
 *
 * Long messages go in segments, one phase behind the other: while one segment is added, others are on their way.
 *
 *     tick            0      1      2      3      4
 *     segment 0   scatter  scatter gather gather                (two levels)
 *     segment 1           scatter  scatter gather gather
 *
 * All ranks post in the same order, tick by tick, and wait only for what was posted in the tick before; so no wait waits
 * for itself. */
#include "executor/transport_mpi_private.h"

#include "core/precision.h"

#include <string.h>

enum {
    SUM_BLOCK = 512,     /* elements added at a time, in cache */
    DIRECT_BYTES = 2048, /* sums up to this size: everybody sends all to all and adds alone */
    LEVEL_BYTES =
        64 << 10, /* from this size on, a second level's phases cost less than its bytes */
    SEGMENTS = 8, /* of a long message, */
    SEGMENT_BYTES = 256 << 10, /* but none shorter than this */
    MOST_LEVELS = 2
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static char *at(void *base, int64_t bytes)
{
    return (char *)base + bytes;
}

static const char *from(const void *base, int64_t bytes)
{
    return (const char *)base + bytes;
}

/* ---- adding ---- */

/* n elements of each member, `stride` elements apart in scratch; the one of member `index` is `own`. */
struct pieces {
    int count, index;
    int64_t n, stride;
    const void *own, *scratch;
};

/* out = sum of the pieces in the members' order; out may be own. */
#define SUM_IN_ORDER(type)                                                                         \
    static void sum_##type(const struct pieces *p, type *out)                                      \
    {                                                                                              \
        const type *own = p->own, *scratch = p->scratch;                                           \
        type total[SUM_BLOCK];                                                                     \
        for (int64_t at = 0; at < p->n; at += SUM_BLOCK) {                                         \
            int64_t m = smaller(SUM_BLOCK, p->n - at);                                             \
            for (int r = 0; r < p->count; r++) {                                                   \
                const type *piece = r == p->index ? own + at : scratch + r * p->stride + at;       \
                if (r == 0)                                                                        \
                    memcpy(total, piece, (size_t)m * sizeof(type));                                \
                else                                                                               \
                    for (int64_t i = 0; i < m; i++)                                                \
                        total[i] += piece[i];                                                      \
            }                                                                                      \
            memcpy(out + at, total, (size_t)m * sizeof(type));                                     \
        }                                                                                          \
    }
SUM_IN_ORDER(float)
SUM_IN_ORDER(double)
#undef SUM_IN_ORDER

/* bfloat16: added in float, rounded once. */
static void sum_bf16(const struct pieces *p, uint16_t *out)
{
    const uint16_t *own = p->own, *scratch = p->scratch;
    float total[SUM_BLOCK];

    for (int64_t at = 0; at < p->n; at += SUM_BLOCK) {
        int64_t m = smaller(SUM_BLOCK, p->n - at);

        for (int r = 0; r < p->count; r++) {
            const uint16_t *piece = r == p->index ? own + at : scratch + r * p->stride + at;

            for (int64_t i = 0; i < m; i++)
                total[i] = (r == 0 ? 0.0f : total[i]) + ghp_bf16_value(piece[i]);
        }
        for (int64_t i = 0; i < m; i++)
            out[at + i] = ghp_bf16_of(total[i]);
    }
}

static void sum_pieces(const struct pieces *pieces, int element_bytes, void *out)
{
    if (pieces->n <= 0) return;
    if (element_bytes == 8)
        sum_double(pieces, out);
    else if (element_bytes == 2)
        sum_bf16(pieces, out);
    else
        sum_float(pieces, out);
}

/* ---- levels ---- */

struct level { /* this rank and its peers */
    int first, stride, count, index;
};

static int peer_at(const struct level *level, int index)
{
    return level->first + index * level->stride;
}

/* Peers in turns, starting behind oneself, so that no rank is everybody's first target: the i-th to receive from and to
 * send to, 1 <= i < count. */
static int earlier(const struct level *level, int i)
{
    return (level->index - i + level->count) % level->count;
}

static int later(const struct level *level, int i)
{
    return (level->index + i) % level->count;
}

struct levels {
    int n;
    struct level of[MOST_LEVELS];
};

/* The levels of a collective that moves `bytes` in all. */
static struct levels levels_of(const struct ghp_comm *comm, int64_t bytes, bool in_rank_order)
{
    int in_node = comm->in_node;
    struct levels l = {.n = 1, .of = {{0, 1, comm->count, comm->index}}};

    if (in_rank_order || bytes < LEVEL_BYTES || in_node <= 1 || in_node == comm->count) return l;
    l.n = 2;
    l.of[0] = (struct level){comm->index / in_node * in_node, 1, in_node, comm->index % in_node};
    l.of[1] = (struct level){comm->index % in_node, in_node, comm->count / in_node,
                             comm->index / in_node};
    return l;
}

/* ---- segments, one phase behind the other ---- */

struct passage {
    const void *work; /* what the functions know */
    int64_t segments;
    int phases;
    /* Posts the messages of a segment's phase. */
    enum ghp_status (*post)(struct ghp_comm *comm, const void *work, int64_t segment, int phase);
    /* What follows when they have arrived; NULL: nothing. */
    void (*finish)(const void *work, int64_t segment, int phase);
};

static enum ghp_status post(struct ghp_comm *comm, const struct passage *p, int64_t segment,
                            int phase)
{
    comm->lane = (int)(segment % GHP_MPI_LANES);
    return p->post(comm, p->work, segment, phase);
}

static enum ghp_status finish(struct ghp_comm *comm, const struct passage *p, int64_t segment,
                              int phase)
{
    GHP_TRY(ghp_mpi_wait(comm, (int)(segment % GHP_MPI_LANES)));
    if (p->finish != NULL) p->finish(p->work, segment, phase);
    return GHP_OK;
}

/* The newest segment is sent off before the older ones are added: the link does not wait for the adding. */
static enum ghp_status carry(struct ghp_comm *comm, const struct passage *p)
{
    GHP_ASSERT(p->phases < GHP_MPI_LANES);
    for (int64_t tick = 0; tick < p->segments + p->phases; tick++) {
        if (tick < p->segments) GHP_TRY(post(comm, p, tick, 0));
        for (int phase = p->phases; phase >= 1; phase--) {
            int64_t segment = tick - phase;

            if (segment < 0 || segment >= p->segments) continue;
            GHP_TRY(finish(comm, p, segment, phase - 1));
            if (phase < p->phases) GHP_TRY(post(comm, p, segment, phase));
        }
    }
    comm->lane = 0;
    return GHP_OK;
}

/* ---- all_reduce ---- */

/* Of a sum: `most` elements at once, with as much scratch for each of `slots` segments. */
struct sum {
    const struct ghp_reduction *of;
    struct levels levels;
    int64_t most;
    int slots;
};

/* How many elements go at once, a multiple of `unit`.  A segment holds scratch until all levels have added it, while the
 * next is already on its way. */
static struct sum cut(const struct ghp_reduction *of, struct levels levels, int64_t bytes,
                      int64_t unit)
{
    struct sum sum = {.of = of, .levels = levels, .slots = 1};
    int64_t e = of->element_bytes, room = smaller(of->scratch_bytes, GHP_MPI_PIECE_BYTES);
    int64_t wanted = bytes / SEGMENTS > SEGMENT_BYTES ? bytes / SEGMENTS : SEGMENT_BYTES;

    sum.most = smaller(room, wanted) / e / unit * unit;
    if (sum.most * e >= bytes) return sum;
    sum.slots = levels.n + 1;
    sum.most = smaller(room / sum.slots, wanted) / e / unit * unit;
    return sum;
}

static char *slot_of(const struct sum *sum, int64_t segment)
{
    return at(sum->of->scratch, segment % sum->slots * sum->most * sum->of->element_bytes);
}

/* Elements [at, at + n) of the buffer; each member of the level sums a chunk of `each` of them. */
struct run {
    int64_t at, n, each;
};

static struct run run_of(const struct level *level, int64_t at, int64_t n)
{
    return (struct run){at, n, (n + level->count - 1) / level->count};
}

static struct run chunk(struct run run, int index)
{
    int64_t begin = smaller(index * run.each, run.n), end = smaller(begin + run.each, run.n);

    return (struct run){.at = run.at + begin, .n = end - begin};
}

/* What a segment's phase is about: on the way in the levels in order, on the way back in reverse. */
static struct run run_at(const struct sum *sum, int64_t segment, int level)
{
    int64_t begin = segment * sum->most;
    struct run run =
        run_of(&sum->levels.of[0], begin, smaller(sum->most, sum->of->elements - begin));

    for (int i = 0; i < level; i++) {
        struct run own = chunk(run, sum->levels.of[i].index);

        run = run_of(&sum->levels.of[i + 1], own.at, own.n);
    }
    return run;
}

static int level_of(const struct sum *sum, int phase)
{
    return phase < sum->levels.n ? phase : 2 * sum->levels.n - 1 - phase;
}

static enum ghp_status post_scatter(struct ghp_comm *comm, const struct sum *sum,
                                    const struct level *level, struct run run, char *scratch)
{
    int64_t e = sum->of->element_bytes, own = chunk(run, level->index).n;

    for (int i = 1; i < level->count && own > 0; i++) {
        int r = earlier(level, i);
        GHP_TRY(ghp_mpi_receive(comm, scratch + r * run.each * e, own * e, peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = later(level, i);
        struct run to = chunk(run, r);
        if (to.n > 0)
            GHP_TRY(ghp_mpi_send(comm, at(sum->of->out, to.at * e), to.n * e, peer_at(level, r)));
    }
    return GHP_OK;
}

static enum ghp_status post_gather(struct ghp_comm *comm, const struct sum *sum,
                                   const struct level *level, struct run run)
{
    int64_t e = sum->of->element_bytes;
    struct run own = chunk(run, level->index);

    for (int i = 1; i < level->count; i++) {
        int r = earlier(level, i);
        struct run to = chunk(run, r);
        if (to.n > 0)
            GHP_TRY(
                ghp_mpi_receive(comm, at(sum->of->out, to.at * e), to.n * e, peer_at(level, r)));
    }
    for (int i = 1; i < level->count && own.n > 0; i++)
        GHP_TRY(ghp_mpi_send(comm, at(sum->of->out, own.at * e), own.n * e,
                             peer_at(level, later(level, i))));
    return GHP_OK;
}

static enum ghp_status post_sum(struct ghp_comm *comm, const void *work, int64_t segment, int phase)
{
    const struct sum *sum = work;
    int i = level_of(sum, phase);
    struct run run = run_at(sum, segment, i);

    if (phase < sum->levels.n)
        return post_scatter(comm, sum, &sum->levels.of[i], run, slot_of(sum, segment));
    return post_gather(comm, sum, &sum->levels.of[i], run);
}

static void finish_sum(const void *work, int64_t segment, int phase)
{
    const struct sum *sum = work;
    const struct level *level = &sum->levels.of[level_of(sum, phase)];
    struct run run, own;
    char *out;

    if (phase >= sum->levels.n) return;
    run = run_at(sum, segment, phase);
    own = chunk(run, level->index);
    out = at(sum->of->out, own.at * sum->of->element_bytes);
    sum_pieces(&(struct pieces){.count = level->count,
                                .index = level->index,
                                .n = own.n,
                                .stride = run.each,
                                .own = out,
                                .scratch = slot_of(sum, segment)},
               sum->of->element_bytes, out);
}

/* A small sum: everybody gets everything and adds by itself, in the same order. */
static enum ghp_status all_reduce_direct(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    int64_t bytes = sum->elements * sum->element_bytes;
    struct level all = {0, 1, comm->count, comm->index};

    for (int i = 1; i < all.count; i++) {
        int r = earlier(&all, i);
        GHP_TRY(ghp_mpi_receive(comm, at(sum->scratch, r * bytes), bytes, r));
    }
    for (int i = 1; i < all.count; i++)
        GHP_TRY(ghp_mpi_send(comm, sum->out, bytes, later(&all, i)));
    GHP_TRY(ghp_mpi_wait(comm, comm->lane));
    sum_pieces(&(struct pieces){.count = all.count,
                                .index = all.index,
                                .n = sum->elements,
                                .stride = sum->elements,
                                .own = sum->out,
                                .scratch = sum->scratch},
               sum->element_bytes, sum->out);
    return GHP_OK;
}

enum ghp_status ghp_mpi_all_reduce(struct ghp_comm *comm, const struct ghp_reduction *of)
{
    int64_t bytes = of->elements * of->element_bytes;
    struct sum sum;
    struct passage passage = {.work = &sum, .post = post_sum, .finish = finish_sum};

    GHP_ASSERT(of->in == of->out);
    if (comm->count == 1 || of->elements == 0) return GHP_OK;
    if (bytes <= DIRECT_BYTES && bytes * comm->count <= of->scratch_bytes)
        return all_reduce_direct(comm, of);
    sum = cut(of, levels_of(comm, bytes, comm->transport->in_rank_order), bytes, comm->count);
    GHP_ASSERT(sum.most >= comm->count);
    passage.segments = (of->elements + sum.most - 1) / sum.most;
    passage.phases = 2 * sum.levels.n;
    return carry(comm, &passage);
}

/* ---- reduce_scatter ---- */

/* A segment is `each` elements of every rank's piece.  What has arrived lies in scratch peer by peer of the first level,
 * a place for each node at every peer; what the first level added lies at this rank's own places, and what arrives over
 * the second at those of a peer whose pieces have been added. */
struct scattering {
    struct sum sum;
    int nodes; /* members of the second level, 1 without */
    int64_t each;
};

static char *place_of(const struct scattering *s, int64_t segment, int peer, int node)
{
    return slot_of(&s->sum, segment) +
           (peer * s->nodes + node) * s->each * s->sum.of->element_bytes;
}

/* What this rank has of the piece that the peer in that node is to get. */
static const char *input_of(const struct scattering *s, int64_t segment, int peer, int node)
{
    const struct ghp_reduction *of = s->sum.of;
    int64_t piece = (int64_t)node * s->sum.levels.of[0].count + peer;

    return from(of->in, (piece * of->elements + segment * s->each) * of->element_bytes);
}

static int64_t elements_at(const struct scattering *s, int64_t segment)
{
    return smaller(s->each, s->sum.of->elements - segment * s->each);
}

/* A peer of the first level, whose places are free once its pieces have been added. */
static int lender(const struct scattering *s)
{
    return later(&s->sum.levels.of[0], 1);
}

static enum ghp_status post_in_node(struct ghp_comm *comm, const struct scattering *s,
                                    int64_t segment)
{
    const struct level *level = &s->sum.levels.of[0];
    int64_t bytes = elements_at(s, segment) * s->sum.of->element_bytes;

    for (int i = 1; i < level->count; i++) {
        int r = earlier(level, i);
        for (int node = 0; node < s->nodes; node++)
            GHP_TRY(ghp_mpi_receive(comm, place_of(s, segment, r, node), bytes, peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = later(level, i);
        for (int node = 0; node < s->nodes; node++)
            GHP_TRY(ghp_mpi_send(comm, input_of(s, segment, r, node), bytes, peer_at(level, r)));
    }
    return GHP_OK;
}

static enum ghp_status post_between_nodes(struct ghp_comm *comm, const struct scattering *s,
                                          int64_t segment)
{
    const struct level *level = &s->sum.levels.of[1];
    int me = s->sum.levels.of[0].index;
    int64_t bytes = elements_at(s, segment) * s->sum.of->element_bytes;

    for (int i = 1; i < level->count; i++) {
        int r = earlier(level, i);
        GHP_TRY(
            ghp_mpi_receive(comm, place_of(s, segment, lender(s), r), bytes, peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = later(level, i);
        GHP_TRY(ghp_mpi_send(comm, place_of(s, segment, me, r), bytes, peer_at(level, r)));
    }
    return GHP_OK;
}

static enum ghp_status post_scattering(struct ghp_comm *comm, const void *work, int64_t segment,
                                       int phase)
{
    return phase == 0 ? post_in_node(comm, work, segment) : post_between_nodes(comm, work, segment);
}

static void finish_scattering(const void *work, int64_t segment, int phase)
{
    const struct scattering *s = work;
    const struct ghp_reduction *of = s->sum.of;
    const struct level *level = &s->sum.levels.of[phase];
    int me = s->sum.levels.of[0].index;
    char *result = at(of->out, segment * s->each * of->element_bytes);
    struct pieces pieces = {
        .count = level->count, .index = level->index, .n = elements_at(s, segment)};

    if (phase == 1) {
        pieces.stride = s->each;
        pieces.own = place_of(s, segment, me, level->index);
        pieces.scratch = place_of(s, segment, lender(s), 0);
        sum_pieces(&pieces, of->element_bytes, result);
        return;
    }
    pieces.stride = s->nodes * s->each;
    for (int node = 0; node < s->nodes; node++) {
        pieces.own = input_of(s, segment, me, node);
        pieces.scratch = place_of(s, segment, 0, node);
        sum_pieces(&pieces, of->element_bytes,
                   s->nodes == 1 ? result : place_of(s, segment, me, node));
    }
}

enum ghp_status ghp_mpi_reduce_scatter(struct ghp_comm *comm, const struct ghp_reduction *of)
{
    int64_t bytes = of->elements * of->element_bytes * comm->count;
    struct levels levels = levels_of(comm, bytes, comm->transport->in_rank_order);
    struct scattering s = {.sum = cut(of, levels, bytes, comm->count),
                           .nodes = levels.n > 1 ? levels.of[1].count : 1};
    struct passage passage = {
        .work = &s, .phases = levels.n, .post = post_scattering, .finish = finish_scattering};

    if (of->elements == 0) return GHP_OK;
    if (comm->count == 1) {
        if (of->out != of->in) memcpy(of->out, of->in, (size_t)bytes);
        return GHP_OK;
    }
    s.each = s.sum.most / comm->count;
    GHP_ASSERT(s.each >= 1);
    passage.segments = (of->elements + s.each - 1) / s.each;
    return carry(comm, &passage);
}

/* ---- all_gather ---- */

/* First between the nodes, where each rank's piece goes once to every node; then in them. */
struct gathering {
    struct levels levels;
    char *all;
    int64_t bytes_each; /* of a rank's piece */
    int64_t cut;        /* bytes of it in a segment */
};

/* The piece that the level's r-th member brings to this phase: its own, or the one that it has of a node. */
static char *piece_of(const struct gathering *g, const struct level *level, int r, int node)
{
    bool own = level == &g->levels.of[g->levels.n - 1];
    int piece = own ? peer_at(level, r) : node * level->count + r;

    return g->all + piece * g->bytes_each;
}

static enum ghp_status post_gathering(struct ghp_comm *comm, const void *work, int64_t segment,
                                      int phase)
{
    const struct gathering *g = work;
    const struct level *level = &g->levels.of[g->levels.n - 1 - phase];
    int pieces = phase == 0 ? 1 : g->levels.of[1].count;
    int64_t begin = segment * g->cut, bytes = smaller(g->cut, g->bytes_each - begin);

    for (int i = 1; i < level->count; i++) {
        int r = earlier(level, i);
        for (int node = 0; node < pieces; node++)
            GHP_TRY(ghp_mpi_receive(comm, piece_of(g, level, r, node) + begin, bytes,
                                    peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = later(level, i);
        for (int node = 0; node < pieces; node++)
            GHP_TRY(ghp_mpi_send(comm, piece_of(g, level, level->index, node) + begin, bytes,
                                 peer_at(level, r)));
    }
    return GHP_OK;
}

enum ghp_status ghp_mpi_all_gather(struct ghp_comm *comm, const void *mine, void *all,
                                   int64_t bytes_each)
{
    int64_t bytes = bytes_each * comm->count, cut = GHP_MPI_PIECE_BYTES;
    struct gathering g = {
        .levels = levels_of(comm, bytes, false), .all = all, .bytes_each = bytes_each};
    struct passage passage = {.work = &g, .phases = g.levels.n, .post = post_gathering};
    char *place = at(all, comm->index * bytes_each);

    if (bytes_each == 0) return GHP_OK;
    if (place != mine) memcpy(place, mine, (size_t)bytes_each);
    if (comm->count == 1) return GHP_OK;
    if (g.levels.n > 1) {
        cut = (bytes / SEGMENTS > SEGMENT_BYTES ? bytes / SEGMENTS : SEGMENT_BYTES) / comm->count;
        cut = smaller(cut > 0 ? cut : 1, GHP_MPI_PIECE_BYTES);
    }
    g.cut = cut;
    passage.segments = (bytes_each + cut - 1) / cut;
    return carry(comm, &passage);
}
