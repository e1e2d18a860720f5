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
    AGREE_TEXT_BYTES = 512 /* of a failing rank's message */
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

/* `sum` gives element size and scratch; n elements, pieces `stride` elements apart. */
static void sum_pieces(const struct ghp_comm *comm, const struct ghp_reduction *sum, void *out,
                       const void *own, const int64_t n_and_stride[2])
{
    if (sum->element_bytes == 8)
        sum_double(comm, out, own, sum->scratch, n_and_stride);
    else
        sum_float(comm, out, own, sum->scratch, n_and_stride);
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

static enum ghp_status exchange_pieces(struct ghp_comm *comm, const struct exchange *x)
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
    return ghp_mpi_wait(comm);
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

enum ghp_status ghp_mpi_reduce_scatter(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    int64_t e = sum->element_bytes, p = comm->count;
    int64_t most =
        smaller(sum->scratch_bytes, GHP_MPI_PIECE_BYTES) / e / p; /* elements of one piece */

    if (sum->elements == 0) return GHP_OK;
    if (p == 1) {
        if (sum->out != sum->in) memcpy(sum->out, sum->in, (size_t)(sum->elements * e));
        return GHP_OK;
    }
    GHP_ASSERT(most >= 1);
    for (int64_t done = 0; done < sum->elements; done += most) {
        int64_t n = smaller(most, sum->elements - done);
        const void *own = from(sum->in, (comm->index * sum->elements + done) * e);
        struct exchange x = {.in = from(sum->in, done * e),
                             .out = sum->scratch,
                             .in_stride = sum->elements * e,
                             .out_stride = most * e,
                             .bytes = n * e};

        GHP_TRY(exchange_pieces(comm, &x));
        sum_pieces(comm, sum, at(sum->out, done * e), own, (const int64_t[2]){n, most});
    }
    return GHP_OK;
}

/* A small sum: everybody gets everything and adds by itself, in the same order. */
static enum ghp_status all_reduce_direct(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    int64_t bytes = sum->elements * sum->element_bytes;
    struct exchange x = {
        .in = sum->out, .out = sum->scratch, .in_stride = 0, .out_stride = bytes, .bytes = bytes};

    GHP_TRY(exchange_pieces(comm, &x));
    sum_pieces(comm, sum, sum->out, sum->out, (const int64_t[2]){sum->elements, sum->elements});
    return GHP_OK;
}

/* First and last (exclusive) element of rank r's chunk when n elements are dealt in chunks of `each`. */
static int64_t chunk_at(int64_t r, int64_t each, int64_t n)
{
    return smaller(r * each, n);
}

/* One segment: rank r sums chunk r, then sends it to the others. */
static enum ghp_status all_reduce_segment(struct ghp_comm *comm, const struct ghp_reduction *sum,
                                          int64_t first, int64_t n)
{
    int p = comm->count, me = comm->index;
    int64_t e = sum->element_bytes, each = (n + p - 1) / p;
    char *data = at(sum->out, first * e);
    int64_t begin = chunk_at(me, each, n), own = chunk_at(me + 1, each, n) - begin;

    for (int i = 1; i < p && own > 0; i++) {
        int r = (me - i + p) % p;
        GHP_TRY(ghp_mpi_receive(comm, at(sum->scratch, r * each * e), own * e, r));
    }
    for (int i = 1; i < p; i++) {
        int r = (me + i) % p;
        int64_t to = chunk_at(r, each, n), m = chunk_at(r + 1, each, n) - to;
        if (m > 0) GHP_TRY(ghp_mpi_send(comm, data + to * e, m * e, r));
    }
    GHP_TRY(ghp_mpi_wait(comm));
    if (own > 0)
        sum_pieces(comm, sum, data + begin * e, data + begin * e, (const int64_t[2]){own, each});

    for (int i = 1; i < p; i++) {
        int r = (me - i + p) % p;
        int64_t to = chunk_at(r, each, n), m = chunk_at(r + 1, each, n) - to;
        if (m > 0) GHP_TRY(ghp_mpi_receive(comm, data + to * e, m * e, r));
    }
    for (int i = 1; i < p && own > 0; i++)
        GHP_TRY(ghp_mpi_send(comm, data + begin * e, own * e, (me + i) % p));
    return ghp_mpi_wait(comm);
}

enum ghp_status ghp_mpi_all_reduce(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    int64_t e = sum->element_bytes, bytes = sum->elements * e;
    int64_t segment =
        smaller(sum->scratch_bytes, GHP_MPI_PIECE_BYTES) / e / comm->count * comm->count;

    GHP_ASSERT(sum->in == sum->out);
    if (comm->count == 1 || sum->elements == 0) return GHP_OK;
    GHP_ASSERT(segment >= comm->count);
    if (bytes <= DIRECT_BYTES && bytes * comm->count <= sum->scratch_bytes)
        return all_reduce_direct(comm, sum);
    for (int64_t first = 0; first < sum->elements; first += segment)
        GHP_TRY(all_reduce_segment(comm, sum, first, smaller(segment, sum->elements - first)));
    return GHP_OK;
}

/* Dissemination: after round i everyone has heard, through others, of 2^(i+1) ranks. */
enum ghp_status ghp_mpi_barrier(struct ghp_comm *comm)
{
    int p = comm->count, me = comm->index;

    for (int distance = 1; distance < p; distance *= 2) {
        char out = 0, in = 0;

        GHP_TRY(ghp_mpi_receive(comm, &in, 1, (me - distance + p) % p));
        GHP_TRY(ghp_mpi_send(comm, &out, 1, (me + distance) % p));
        GHP_TRY(ghp_mpi_wait(comm));
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
                          comm->ranks.first + r * comm->ranks.stride, all[r].text);
        break;
    }
done:
    free(all);
    return result;
}
