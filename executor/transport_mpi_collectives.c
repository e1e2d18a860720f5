/* executor/transport_mpi_collectives.c - ghp's own collectives over single messages.
 *
 * All of them are pairwise exchanges: every rank posts its receives, then sends to the others starting with the one
 * after itself, so that no rank is everybody's first target. Messages are received where they are added or kept, and
 * nobody starts the next exchange before its receives of this one are done, so at most one exchange's messages can
 * arrive early.
 *
 * A sum is made by one rank, in rank order, and then sent to the others: equal bits everywhere, every time. */
#include "executor/transport_mpi_private.h"

#include <stdlib.h>
#include <string.h>

enum {
    SUM_BLOCK = 512, /* elements added at a time, in cache */
    DIRECT_BYTES =
        2048, /* sums up to this size: everybody sends all to all and adds alone, one exchange */
    SEGMENTS = 8,              /* of a long sum, */
    SEGMENT_BYTES = 256 << 10, /* but none shorter than this */
    AGREE_TEXT_BYTES = 512     /* of a failing rank's message */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One block of a sum: out = sum over r in rank order of piece r; piece `index` is `own`, the others lie in scratch at
 * r * stride (in elements). out may be own. */
#define SUM_IN_RANK_ORDER(type)                                                                    \
    static void sum_##type(const struct ghp_comm *comm, type *out, const type *own,                \
                           const type *scratch, const int64_t of[2])                               \
    {                                                                                              \
        int64_t n = of[0], stride = of[1];                                                         \
        type total[SUM_BLOCK];                                                                     \
        for (int64_t at = 0; at < n; at += SUM_BLOCK) {                                            \
            int64_t m = smaller(SUM_BLOCK, n - at);                                                \
            for (int r = 0; r < comm->count; r++) {                                                \
                const type *piece = r == comm->index ? own + at : scratch + r * stride + at;       \
                if (r == 0)                                                                        \
                    memcpy(total, piece, (size_t)m * sizeof(type));                                \
                else                                                                               \
                    for (int64_t i = 0; i < m; i++)                                                \
                        total[i] += piece[i];                                                      \
            }                                                                                      \
            memcpy(out + at, total, (size_t)m * sizeof(type));                                     \
        }                                                                                          \
    }
SUM_IN_RANK_ORDER(float)
SUM_IN_RANK_ORDER(double)
#undef SUM_IN_RANK_ORDER

/* What the other ranks sent: n elements of each, `stride` elements apart. */
struct pieces {
    int element_bytes;
    int64_t n, stride;
    const void *scratch;
};

static void sum_pieces(const struct ghp_comm *comm, struct pieces pieces, void *out,
                       const void *own)
{
    const int64_t n_and_stride[2] = {pieces.n, pieces.stride};

    if (pieces.element_bytes == 8)
        sum_double(comm, out, own, pieces.scratch, n_and_stride);
    else
        sum_float(comm, out, own, pieces.scratch, n_and_stride);
}

static char *at(void *base, int64_t bytes)
{
    return (char *)base + bytes;
}

static const char *from(const void *base, int64_t bytes)
{
    return (const char *)base + bytes;
}

/* Sends and receives one piece a peer: in + in_stride * r goes to r, what r sends lands at out + out_stride * r. */
struct exchange {
    const void *in;
    void *out;
    int64_t in_stride, out_stride; /* [bytes] */
    int64_t bytes;                 /* of each piece, <= GHP_MPI_PIECE_BYTES */
};

static enum ghp_status post_pieces(struct ghp_comm *comm, const struct exchange *x)
{
    int p = comm->count, me = comm->index;

    for (int i = 1; i < p; i++) {
        int r = (me - i + p) % p;
        GHP_TRY(ghp_mpi_receive(comm, at(x->out, r * x->out_stride), x->bytes, r));
    }
    for (int i = 1; i < p; i++) {
        int r = (me + i) % p;
        GHP_TRY(ghp_mpi_send(comm, from(x->in, r * x->in_stride), x->bytes, r));
    }
    return GHP_OK;
}

static enum ghp_status exchange_pieces(struct ghp_comm *comm, const struct exchange *x)
{
    GHP_TRY(post_pieces(comm, x));
    return ghp_mpi_wait(comm, comm->lane);
}

/* A whole exchange of any size, in pieces of what one message can hold. */
static enum ghp_status exchange_all(struct ghp_comm *comm, const struct exchange *whole,
                                    int64_t bytes_each)
{
    for (int64_t done = 0; done < bytes_each; done += GHP_MPI_PIECE_BYTES) {
        struct exchange x = *whole;

        x.in = from(whole->in, done);
        x.out = at(whole->out, done);
        x.bytes = smaller(GHP_MPI_PIECE_BYTES, bytes_each - done);
        GHP_TRY(exchange_pieces(comm, &x));
    }
    return GHP_OK;
}

enum ghp_status ghp_mpi_all_gather(struct ghp_comm *comm, const void *mine, void *all,
                                   int64_t bytes_each)
{
    struct exchange x = {.in = mine, .out = all, .in_stride = 0, .out_stride = bytes_each};
    char *place = at(all, comm->index * bytes_each);

    if (bytes_each == 0) return GHP_OK;
    if (place != mine) memcpy(place, mine, (size_t)bytes_each);
    if (comm->count == 1) return GHP_OK;
    return exchange_all(comm, &x, bytes_each);
}

enum ghp_status ghp_mpi_all_to_all(struct ghp_comm *comm, const void *in, void *out,
                                   int64_t bytes_each)
{
    struct exchange x = {.in = in, .out = out, .in_stride = bytes_each, .out_stride = bytes_each};
    int64_t own = comm->index * bytes_each;

    if (bytes_each == 0) return GHP_OK;
    memcpy(at(out, own), from(in, own), (size_t)bytes_each);
    if (comm->count == 1) return GHP_OK;
    return exchange_all(comm, &x, bytes_each);
}

/* How many elements of a sum of `bytes` go at once, a multiple of `unit`.  What does not go at once goes in segments of
 * which the scratch holds two: one is on its way while the other is added. */
static int64_t segment_elements(const struct ghp_reduction *sum, int64_t bytes, int64_t unit)
{
    int64_t e = sum->element_bytes, room = smaller(sum->scratch_bytes, GHP_MPI_PIECE_BYTES);
    int64_t wanted = bytes / SEGMENTS > SEGMENT_BYTES ? bytes / SEGMENTS : SEGMENT_BYTES;
    int64_t most = smaller(room, wanted) / e / unit * unit;

    return most * e >= bytes ? most : smaller(room / 2, wanted) / e / unit * unit;
}

/* Part of a reduce-scatter: n elements of every rank's piece, from `done` on. */
struct part {
    int64_t done, n;
    int64_t most; /* elements that fit */
    char *scratch;
};

static struct part part_at(const struct ghp_comm *comm, const struct ghp_reduction *sum,
                           int64_t most, int64_t i)
{
    int64_t room = most * comm->count * sum->element_bytes;

    return (struct part){.done = i * most,
                         .n = smaller(most, sum->elements - i * most),
                         .most = most,
                         .scratch = at(sum->scratch, i % GHP_MPI_LANES * room)};
}

static enum ghp_status post_part(struct ghp_comm *comm, const struct ghp_reduction *sum,
                                 int64_t most, int64_t i)
{
    int64_t e = sum->element_bytes;
    struct part part = part_at(comm, sum, most, i);
    struct exchange x = {.in = from(sum->in, part.done * e),
                         .out = part.scratch,
                         .in_stride = sum->elements * e,
                         .out_stride = most * e,
                         .bytes = part.n * e};

    comm->lane = (int)(i % GHP_MPI_LANES);
    return post_pieces(comm, &x);
}

enum ghp_status ghp_mpi_reduce_scatter(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    int64_t e = sum->element_bytes, p = comm->count;
    int64_t most = segment_elements(sum, sum->elements * e * p, p) / p; /* elements of one piece */
    int64_t parts;

    if (sum->elements == 0) return GHP_OK;
    if (p == 1) {
        if (sum->out != sum->in) memcpy(sum->out, sum->in, (size_t)(sum->elements * e));
        return GHP_OK;
    }
    GHP_ASSERT(most >= 1);
    parts = (sum->elements + most - 1) / most;
    GHP_TRY(post_part(comm, sum, most, 0));
    for (int64_t i = 0; i < parts; i++) {
        struct part part = part_at(comm, sum, most, i);
        const void *own = from(sum->in, (comm->index * sum->elements + part.done) * e);

        if (i + 1 < parts) GHP_TRY(post_part(comm, sum, most, i + 1));
        GHP_TRY(ghp_mpi_wait(comm, (int)(i % GHP_MPI_LANES)));
        sum_pieces(comm, (struct pieces){sum->element_bytes, part.n, most, part.scratch},
                   at(sum->out, part.done * e), own);
    }
    comm->lane = 0;
    return GHP_OK;
}

/* A small sum: everybody gets everything and adds by itself, in the same order. */
static enum ghp_status all_reduce_direct(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    int64_t bytes = sum->elements * sum->element_bytes;
    struct exchange x = {
        .in = sum->out, .out = sum->scratch, .in_stride = 0, .out_stride = bytes, .bytes = bytes};

    GHP_TRY(exchange_pieces(comm, &x));
    sum_pieces(comm,
               (struct pieces){sum->element_bytes, sum->elements, sum->elements, sum->scratch},
               sum->out, sum->out);
    return GHP_OK;
}

/* First and last (exclusive) element of rank r's chunk when n elements are dealt in chunks of `each`. */
static int64_t chunk_at(int64_t r, int64_t each, int64_t n)
{
    return smaller(r * each, n);
}

/* A segment of an all-reduce: rank r sums chunk r of it, then sends the sum to the others. */
struct segment {
    char *data;
    char *scratch;   /* chunks of the others, `each` elements apart */
    int64_t n, each; /* elements of the segment, of a chunk */
    int64_t own, own_at;
    int element_bytes;
};

static struct segment segment_at(const struct ghp_comm *comm, const struct ghp_reduction *sum,
                                 int64_t most, int64_t i)
{
    int64_t e = sum->element_bytes;
    struct segment s = {.data = at(sum->out, i * most * e),
                        .scratch = at(sum->scratch, i % GHP_MPI_LANES * most * e),
                        .n = smaller(most, sum->elements - i * most),
                        .element_bytes = sum->element_bytes};

    s.each = (s.n + comm->count - 1) / comm->count;
    s.own_at = chunk_at(comm->index, s.each, s.n);
    s.own = chunk_at(comm->index + 1, s.each, s.n) - s.own_at;
    return s;
}

static enum ghp_status post_scatter(struct ghp_comm *comm, struct segment s)
{
    int p = comm->count, me = comm->index;
    int64_t e = s.element_bytes;

    comm->lane = 0;
    for (int i = 1; i < p && s.own > 0; i++) {
        int r = (me - i + p) % p;
        GHP_TRY(ghp_mpi_receive(comm, s.scratch + r * s.each * e, s.own * e, r));
    }
    for (int i = 1; i < p; i++) {
        int r = (me + i) % p;
        int64_t to = chunk_at(r, s.each, s.n), m = chunk_at(r + 1, s.each, s.n) - to;
        if (m > 0) GHP_TRY(ghp_mpi_send(comm, s.data + to * e, m * e, r));
    }
    return GHP_OK;
}

static enum ghp_status post_gather(struct ghp_comm *comm, struct segment s)
{
    int p = comm->count, me = comm->index;
    int64_t e = s.element_bytes;

    comm->lane = 1;
    for (int i = 1; i < p; i++) {
        int r = (me - i + p) % p;
        int64_t to = chunk_at(r, s.each, s.n), m = chunk_at(r + 1, s.each, s.n) - to;
        if (m > 0) GHP_TRY(ghp_mpi_receive(comm, s.data + to * e, m * e, r));
    }
    for (int i = 1; i < p && s.own > 0; i++)
        GHP_TRY(ghp_mpi_send(comm, s.data + s.own_at * e, s.own * e, (me + i) % p));
    return GHP_OK;
}

/* While a segment is added and sent back, the next is already on its way: the link does not wait for the adding. */
static enum ghp_status all_reduce_segments(struct ghp_comm *comm, const struct ghp_reduction *sum,
                                           int64_t most)
{
    int64_t segments = (sum->elements + most - 1) / most;

    GHP_TRY(post_scatter(comm, segment_at(comm, sum, most, 0)));
    for (int64_t i = 0; i < segments; i++) {
        struct segment s = segment_at(comm, sum, most, i);
        char *own = s.data + s.own_at * s.element_bytes;

        GHP_TRY(ghp_mpi_wait(comm, 0));
        if (i + 1 < segments) GHP_TRY(post_scatter(comm, segment_at(comm, sum, most, i + 1)));
        if (s.own > 0)
            sum_pieces(comm, (struct pieces){s.element_bytes, s.own, s.each, s.scratch}, own, own);
        GHP_TRY(ghp_mpi_wait(comm, 1));
        GHP_TRY(post_gather(comm, s));
    }
    GHP_TRY(ghp_mpi_wait(comm, 1));
    comm->lane = 0;
    return GHP_OK;
}

enum ghp_status ghp_mpi_all_reduce(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    int64_t bytes = sum->elements * sum->element_bytes, most;

    GHP_ASSERT(sum->in == sum->out);
    if (comm->count == 1 || sum->elements == 0) return GHP_OK;
    if (bytes <= DIRECT_BYTES && bytes * comm->count <= sum->scratch_bytes)
        return all_reduce_direct(comm, sum);
    most = segment_elements(sum, bytes, comm->count);
    GHP_ASSERT(most >= comm->count);
    return all_reduce_segments(comm, sum, most);
}

/* Dissemination: after round i everyone has heard, through others, of 2^(i+1) ranks. */
enum ghp_status ghp_mpi_barrier(struct ghp_comm *comm)
{
    int p = comm->count, me = comm->index;

    for (int distance = 1; distance < p; distance *= 2) {
        char out = 0, in = 0;

        GHP_TRY(ghp_mpi_receive(comm, &in, 1, (me - distance + p) % p));
        GHP_TRY(ghp_mpi_send(comm, &out, 1, (me + distance) % p));
        GHP_TRY(ghp_mpi_wait(comm, comm->lane));
    }
    return GHP_OK;
}

struct verdict { /* what one rank says in an agreement */
    int32_t status;
    char text[AGREE_TEXT_BYTES];
};

enum ghp_status ghp_mpi_agree(struct ghp_comm *comm, enum ghp_status status)
{
    enum ghp_status result = status;
    struct verdict mine = {.status = (int32_t)status};
    struct verdict *all;

    if (comm->count == 1) return status;
    all = ghp_alloc((size_t)comm->count, sizeof(*all));
    if (all == NULL) return GHP_NO_MEMORY();
    if (status != GHP_OK) {
        size_t n = strlen(ghp_status_message());

        if (n > AGREE_TEXT_BYTES - 1) n = AGREE_TEXT_BYTES - 1;
        memcpy(mine.text, ghp_status_message(), n);
    }
    GHP_TRY_GOTO(result, ghp_mpi_all_gather(comm, &mine, all, (int64_t)sizeof(mine)), done);
    result = status;
    for (int r = 0; status == GHP_OK && r < comm->count; r++) {
        if (all[r].status == GHP_OK) continue;
        result = GHP_FAIL((enum ghp_status)all[r].status, "worker %d: %s",
                          ghp_ranks_at(comm->ranks, r), all[r].text);
        break;
    }
done:
    free(all);
    return result;
}
