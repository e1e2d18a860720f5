/* ghp-test: np=1,2,3,4 timeout=60
 *
 * The MPI transport against sums and copies made by hand: sizes around segments and rank counts, sub-groups with
 * strides, both streams at once, equal bits on all ranks, agreement on failures. */
#include "core/lower.h"
#include "executor/stream.h"
#include "executor/transport.h"
#include "tests/check.h"

#include <unistd.h>

enum { WATCHDOG_S = 6 };

static const struct ghp_transport_ops *const ops = &ghp_transport_mpi;
static struct ghp_transport *transport;
static int rank, size;

/* What element i of rank r's buffer is: sums of such numbers round, so their order shows. */
static double value(int r, int64_t i)
{
    return (double)((r * 37 + i * 11) % 97) / 7.0 + 1e-3 * r;
}

static double sum_of(struct ghp_ranks ranks, int64_t i, int element_bytes)
{
    double wide = 0;
    float narrow = 0;

    for (int r = 0; r < ranks.count; r++) {
        wide += value(ranks.first + r * ranks.stride, i);
        narrow += (float)value(ranks.first + r * ranks.stride, i);
    }
    return element_bytes == 8 ? wide : (double)narrow;
}

static double get(const void *data, int64_t i, int element_bytes)
{
    return element_bytes == 8 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void fill(void *data, int64_t n, int64_t first, int element_bytes)
{
    for (int64_t i = 0; i < n; i++) {
        if (element_bytes == 8)
            ((double *)data)[i] = value(rank, first + i);
        else
            ((float *)data)[i] = (float)value(rank, first + i);
    }
}

static void check_all_reduce(struct ghp_comm *comm, struct ghp_ranks ranks, int64_t n,
                             int64_t scratch_bytes)
{
    for (int e = 4; e <= 8; e += 4) {
        void *data = ghp_alloc((size_t)n + 1, 8), *scratch = ghp_alloc((size_t)scratch_bytes, 1);
        struct ghp_reduction sum = {.in = data,
                                    .out = data,
                                    .elements = n,
                                    .element_bytes = e,
                                    .scratch = scratch,
                                    .scratch_bytes = scratch_bytes};
        int64_t wrong = 0;

        fill(data, n, 0, e);
        CHECK_STATUS(ops->all_reduce(comm, &sum), GHP_OK);
        for (int64_t i = 0; i < n; i++)
            wrong += get(data, i, e) != sum_of(ranks, i, e); /* in rank order: equal bits */
        CHECK_EQ(wrong, 0);
        free(scratch);
        free(data);
    }
}

static void check_reduce_scatter(struct ghp_comm *comm, struct ghp_ranks ranks, int64_t n,
                                 int64_t scratch_bytes)
{
    int me = (rank - ranks.first) / ranks.stride;

    for (int e = 4; e <= 8; e += 4) {
        void *in = ghp_alloc((size_t)(n * ranks.count) + 1, 8), *out = ghp_alloc((size_t)n + 1, 8);
        void *scratch = ghp_alloc((size_t)scratch_bytes, 1);
        struct ghp_reduction sum = {.in = in,
                                    .out = out,
                                    .elements = n,
                                    .element_bytes = e,
                                    .scratch = scratch,
                                    .scratch_bytes = scratch_bytes};
        int64_t wrong = 0;

        fill(in, n * ranks.count, 0, e);
        CHECK_STATUS(ops->reduce_scatter(comm, &sum), GHP_OK);
        for (int64_t i = 0; i < n; i++)
            wrong += get(out, i, e) != sum_of(ranks, me * n + i, e);
        CHECK_EQ(wrong, 0);
        free(scratch);
        free(out);
        free(in);
    }
}

static void check_copies(struct ghp_comm *comm, struct ghp_ranks ranks, int64_t n)
{
    int p = ranks.count, me = (rank - ranks.first) / ranks.stride;
    double *in = ghp_alloc((size_t)(n * p) + 1, 8), *out = ghp_alloc((size_t)(n * p) + 1, 8);
    int64_t wrong = 0;

    fill(in, n, 0, 8);
    CHECK_STATUS(ops->all_gather(comm, in, out, n * 8), GHP_OK);
    for (int r = 0; r < p; r++)
        for (int64_t i = 0; i < n; i++)
            wrong += out[r * n + i] != value(ranks.first + r * ranks.stride, i);
    memset(out, 0, (size_t)(n * p) * 8); /* in place */
    fill(out + me * n, n, 0, 8);
    CHECK_STATUS(ops->all_gather(comm, out + me * n, out, n * 8), GHP_OK);
    for (int r = 0; r < p; r++)
        for (int64_t i = 0; i < n; i++)
            wrong += out[r * n + i] != value(ranks.first + r * ranks.stride, i);
    fill(in, n * p, 0, 8);
    CHECK_STATUS(ops->all_to_all(comm, in, out, n * 8), GHP_OK);
    for (int r = 0; r < p; r++)
        for (int64_t i = 0; i < n; i++)
            wrong += out[r * n + i] != value(ranks.first + r * ranks.stride, me * n + i);
    CHECK_EQ(wrong, 0);
    free(out);
    free(in);
}

static void check_group(struct ghp_ranks ranks)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 100, 1000, 4096, 70001};
    struct ghp_comm *comm = NULL, *again = NULL;

    CHECK_STATUS(ops->group(transport, ranks, GHP_STREAM_COMPUTE, &comm), GHP_OK);
    CHECK_STATUS(ops->group(transport, ranks, GHP_STREAM_COMPUTE, &again), GHP_OK);
    CHECK(comm == again);
    ops->label(comm, "test");
    CHECK_STATUS(ops->barrier(comm), GHP_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t small = sizes[i] > 10000 ? 1 << 16 : 256; /* many segments */

        check_all_reduce(comm, ranks, sizes[i], small);
        check_all_reduce(comm, ranks, sizes[i], 1 << 20);
        check_reduce_scatter(comm, ranks, sizes[i], small);
        check_reduce_scatter(comm, ranks, sizes[i], 1 << 20);
        check_copies(comm, ranks, sizes[i]);
    }
}

static enum ghp_status reduce_there(void *context, int job)
{
    struct ghp_comm *comm = context;
    static double data[3000], scratch[400];
    struct ghp_reduction sum = {.in = data,
                                .out = data,
                                .elements = 3000,
                                .element_bytes = 8,
                                .scratch = scratch,
                                .scratch_bytes = sizeof(scratch)};

    for (int i = 0; i < 3000; i++)
        data[i] = job + rank;
    GHP_TRY(ops->all_reduce(comm, &sum));
    for (int i = 0; i < 3000; i++)
        if (data[i] != size * job + size * (size - 1) / 2.0)
            return GHP_FAIL(GHP_ERR_INTERNAL, "wrong sum in job %d", job);
    return GHP_OK;
}

/* A reduction stream beside exchanges of this thread. */
static void check_two_streams(void)
{
    struct ghp_ranks all = {.count = size, .stride = 1};
    struct ghp_comm *here = NULL, *there = NULL;
    struct ghp_stream_thread *stream = NULL;
    int64_t last = 0;

    CHECK_STATUS(ops->group(transport, all, GHP_STREAM_COMPUTE, &here), GHP_OK);
    CHECK_STATUS(ops->group(transport, all, GHP_STREAM_COMM, &there), GHP_OK);
    CHECK(here != there);
    CHECK_STATUS(ghp_stream_open(8, reduce_there, there, &stream), GHP_OK);
    for (int job = 0; job < 40; job++) {
        last = ghp_stream_post(stream, job);
        check_copies(here, all, 500);
    }
    CHECK_STATUS(ghp_stream_wait(stream, last), GHP_OK);
    ghp_stream_close(stream);
}

static void check_agreement(void)
{
    struct ghp_comm *comm = NULL;
    enum ghp_status mine = GHP_OK, all;

    CHECK_STATUS(ops->group(transport, (struct ghp_ranks){.count = size, .stride = 1}, GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    CHECK_STATUS(ops->agree(comm, GHP_OK), GHP_OK);
    if (rank == size - 1) mine = GHP_FAIL(GHP_ERR_IO, "the last one cannot");
    all = ops->agree(comm, mine);
    CHECK(all == GHP_ERR_IO);
    CHECK(strstr(ghp_status_message(), "the last one cannot") != NULL);
}

/* A worker that comes too late is named, with the instruction. Afterwards its messages arrive, so that all can end. */
static void check_watchdog(void)
{
    struct ghp_comm *comm = NULL;
    double mine = 1, all[8];

    if (size == 1) return;
    CHECK_STATUS(ops->group(transport, (struct ghp_ranks){.count = size, .stride = 1}, GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    ops->label(comm, "backward of fc1");
    if (rank == size - 1) {
        sleep(WATCHDOG_S + 2);
        CHECK_STATUS(ops->all_gather(comm, &mine, all, 8), GHP_OK);
        return;
    }
    CHECK_STATUS(ops->all_gather(comm, &mine, all, 8), GHP_ERR_COMM);
    CHECK_MESSAGE("backward of fc1");
    CHECK_MESSAGE("--watchdog");
    sleep(3);
}

int main(int argc, char **argv)
{
    if (!CHECK_STATUS(ops->open(&argc, &argv, WATCHDOG_S, &transport), GHP_OK)) return 1;
    rank = ops->rank(transport);
    size = ops->size(transport);
    check_group((struct ghp_ranks){.count = size, .stride = 1});
    for (int degree = 1; degree < size; degree++) {
        if (size % degree != 0) continue;
        check_group(ghp_ranks_subgroup(rank, degree));
        check_group(ghp_ranks_replica(rank, degree, size));
    }
    check_two_streams();
    check_agreement();
    check_watchdog();
    ops->close(transport);
    return check_end();
}
