/* ghp-test: np=2 np_full=1,4,6 processors=1 timeout=240
 *
 * The MPI transport against sums and copies made by hand: sizes around segments and rank counts, sub-groups with
 * strides, ranks on several nodes (supposed: all run here), inside a node over shared memory and by messages, both
 * streams at once, ranks that come late, equal bits on all ranks, agreement on failures; sheets of a shared segment
 * that are numbered on beyond 2^32. */
#include "core/model/precision.h"
#include "core/program/lower/lower.h"
#include "core/program/lower/points.h"
#include "executor/platform/task_thread.h"
#include "executor/transport/alike.h"
#include "executor/transport/mpi/communicator.h"
#include "executor/transport/mpi/shared_segment.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    WATCHDOG_S = 6,
    LEVEL_BYTES = 64 << 10 /* mpi/hierarchy.c: sums from here on go by nodes */
};

static struct ghp_transport *transport;
static int rank, size;

/* What element i of rank r's buffer is: sums of such numbers round, so their order shows. */
static double value(int r, int64_t i)
{
    return (double)((r * 37 + i * 11) % 97) / 7.0 + 1e-3 * r;
}

/* In rank order, or first the `in_node` ranks of each node: in float or double. */
static double sum_of(struct ghp_ranks ranks, int in_node, int64_t i, int element_bytes)
{
    double wide = 0;
    float narrow = 0, least = 0; /* bfloat16: added in float, each sum rounded */

    for (int first = 0; first < ranks.count; first += in_node) {
        double wide_here = 0;
        float narrow_here = 0, least_here = 0;

        for (int r = first; r < first + in_node; r++) {
            double one = value(ranks.first + r * ranks.stride, i);

            wide_here += one;
            narrow_here += (float)one;
            least_here += ghp_bf16_value(ghp_bf16_of((float)one));
        }
        if (in_node < ranks.count) least_here = ghp_bf16_value(ghp_bf16_of(least_here));
        wide += wide_here;
        narrow += narrow_here;
        least += least_here;
    }
    if (ranks.count > 1) least = ghp_bf16_value(ghp_bf16_of(least));
    return element_bytes == 8 ? wide : (double)(element_bytes == 4 ? narrow : least);
}

static double get(const void *data, int64_t i, int element_bytes)
{
    if (element_bytes == 2) return (double)ghp_bf16_value(((const uint16_t *)data)[i]);
    return element_bytes == 8 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void fill(void *data, int64_t n, int64_t first, int element_bytes)
{
    for (int64_t i = 0; i < n; i++) {
        if (element_bytes == 8)
            ((double *)data)[i] = value(rank, first + i);
        else if (element_bytes == 2)
            ((uint16_t *)data)[i] = ghp_bf16_of((float)value(rank, first + i));
        else
            ((float *)data)[i] = (float)value(rank, first + i);
    }
}

/* Ranks that a sum of `bytes` bytes adds first. */
static int added_first(struct ghp_ranks ranks, int in_node, int64_t bytes)
{
    return in_node > 0 && bytes >= LEVEL_BYTES ? in_node : ranks.count;
}

static void check_all_reduce(struct ghp_comm *comm, struct ghp_ranks ranks, const int64_t sizes[3])
{
    int64_t n = sizes[0], scratch_bytes = sizes[1];

    for (int e = 2; e <= 8; e *= 2) {
        int first = added_first(ranks, (int)sizes[2], n * e);
        void *data = ghp_alloc((size_t)n + 1, 8), *scratch = ghp_alloc((size_t)scratch_bytes, 1);
        struct ghp_reduction sum = {.in = data,
                                    .out = data,
                                    .elements = n,
                                    .element_bytes = e,
                                    .scratch = scratch,
                                    .scratch_bytes = scratch_bytes};
        int64_t wrong = 0;

        fill(data, n, 0, e);
        CHECK_STATUS(comm->ops->all_reduce(comm, &sum), GHP_OK);
        for (int64_t i = 0; i < n; i++)
            wrong += get(data, i, e) != sum_of(ranks, first, i, e); /* equal bits */
        CHECK_EQ(wrong, 0);
        free(scratch);
        free(data);
    }
}

static void check_reduce_scatter(struct ghp_comm *comm, struct ghp_ranks ranks,
                                 const int64_t sizes[3])
{
    int me = (rank - ranks.first) / ranks.stride;
    int64_t n = sizes[0], scratch_bytes = sizes[1];

    for (int e = 2; e <= 8; e *= 2) {
        int first = added_first(ranks, (int)sizes[2], n * ranks.count * e);
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
        CHECK_STATUS(comm->ops->reduce_scatter(comm, &sum), GHP_OK);
        for (int64_t i = 0; i < n; i++)
            wrong += get(out, i, e) != sum_of(ranks, first, me * n + i, e);
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
    CHECK_STATUS(comm->ops->all_gather(comm, in, out, n * 8), GHP_OK);
    for (int r = 0; r < p; r++)
        for (int64_t i = 0; i < n; i++)
            wrong += out[r * n + i] != value(ranks.first + r * ranks.stride, i);
    memset(out, 0, (size_t)(n * p) * 8); /* in place */
    fill(out + me * n, n, 0, 8);
    CHECK_STATUS(comm->ops->all_gather(comm, out + me * n, out, n * 8), GHP_OK);
    for (int r = 0; r < p; r++)
        for (int64_t i = 0; i < n; i++)
            wrong += out[r * n + i] != value(ranks.first + r * ranks.stride, i);
    fill(in, n * p, 0, 8);
    CHECK_STATUS(comm->ops->all_to_all(comm, in, out, n * 8), GHP_OK);
    for (int r = 0; r < p; r++)
        for (int64_t i = 0; i < n; i++)
            wrong += out[r * n + i] != value(ranks.first + r * ranks.stride, me * n + i);
    CHECK_STATUS(comm->ops->shift(comm, in, out, n * 8), GHP_OK);
    for (int64_t i = 0; i < n && p > 1; i++)
        wrong += out[i] != value(ranks.first + (me + p - 1) % p * ranks.stride, i);
    CHECK_EQ(wrong, 0);
    free(out);
    free(in);
}

/* in_node: ranks in each node, 0 if that makes no difference. */
static void check_sums(struct ghp_comm *comm, struct ghp_ranks ranks, int in_node)
{
    static const int64_t elements[] = {0, 1, 2, 3, 5, 100, 1000, 4095, 4096, 4097, 70001, 300007};

    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        int64_t n = elements[i], small = n > 10000 ? 1 << 16 : 256; /* many segments */

        check_all_reduce(comm, ranks, (const int64_t[3]){n, small, in_node});
        check_all_reduce(comm, ranks, (const int64_t[3]){n, 1 << 20, in_node});
        check_reduce_scatter(comm, ranks, (const int64_t[3]){n / 8, small, in_node});
        check_reduce_scatter(comm, ranks, (const int64_t[3]){n / 8, 1 << 20, in_node});
    }
}

/* With as much scratch as training has, a sum that is shorter than a segment goes whole, however its elements
 * divide. */
static void check_whole(struct ghp_comm *comm, struct ghp_ranks ranks, int in_node)
{
    static const int64_t elements[] = {1023, 1024, 1025, 4095, 4096, 4097, 31991, 31992, 31993};

    for (size_t i = 0; i < sizeof elements / sizeof elements[0] && ranks.count > 1; i++)
        for (int e = 2; e <= 8; e *= 2) {
            struct ghp_reduction sum = {.elements = elements[i],
                                        .element_bytes = e,
                                        .scratch_bytes =
                                            ghp_receive_bytes(elements[i] * e, ranks.count)};

            CHECK_EQ(ghp_mpi_all_reduce_segments(ghp_mpi_comm_of(comm), &sum), 1);
            if (e == 4)
                check_all_reduce(comm, ranks,
                                 (const int64_t[3]){elements[i],
                                                    ghp_receive_bytes(elements[i] * 8, ranks.count),
                                                    in_node});
        }
}

/* Sets the count of the shared segment's sheets, as if `chunk` had gone before. */
static void count_from(struct ghp_comm *comm, uint32_t chunk)
{
    CHECK_STATUS(ghp_control_barrier(transport->control, comm),
                 GHP_OK); /* nobody waits for an earlier one */
    for (int event = 0; event < GHP_SHARED_SEGMENT_EVENTS; event++)
        ghp_shared_segment_signal(ghp_mpi_comm_of(comm)->shared,
                                  (enum ghp_shared_segment_event)event, chunk - 1);
    ghp_mpi_comm_of(comm)->shared->next = chunk;
    CHECK_STATUS(ghp_control_barrier(transport->control, comm), GHP_OK);
}

/* When the number of the sheet begins again at 0, sheets under way have slots of their own, and sums are right. */
static void check_wrap(struct ghp_comm *comm, struct ghp_ranks ranks, int in_node)
{
    const struct ghp_shared_segment *b = ghp_mpi_comm_of(comm)->shared;
    bool used = ghp_mpi_comm_of(comm)->in_node == ghp_mpi_comm_of(comm)->count ||
                in_node > 0; /* not where nodes make no difference */

    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t j = 1; j < (uint32_t)b->slots; j++)
            CHECK(ghp_shared_segment_at(b, 0, i - 16) != ghp_shared_segment_at(b, 0, i - 16 + j));
    count_from(comm, (uint32_t)-3);
    check_all_reduce(comm, ranks, (const int64_t[3]){300007, 1 << 16, in_node});
    CHECK_EQ(b->next < 1 << 20, used); /* beyond it */
    count_from(comm, (uint32_t)-3);
    check_reduce_scatter(comm, ranks, (const int64_t[3]){70001, 1 << 16, in_node});
    CHECK_EQ(b->next < 1 << 20, used);
}

/* Sums over the node's shared segment and by messages alone have the same bits: those of the sums made by hand. */
static void check_sizes(struct ghp_comm *comm, struct ghp_ranks ranks, int in_node)
{
    static const int64_t elements[] = {0, 1, 12, 512, 8750, 37501};

    CHECK_EQ(ghp_mpi_comm_of(comm)->shared != NULL, ghp_mpi_comm_of(comm)->in_node > 1);
    check_sums(comm, ranks, in_node);
    check_whole(comm, ranks, in_node);
    if (ghp_mpi_comm_of(comm)->shared != NULL) check_wrap(comm, ranks, in_node);
    ghp_mpi_of(transport)->shares_memory = false;
    if (ghp_mpi_comm_of(comm)->shared != NULL) check_sums(comm, ranks, in_node);
    check_whole(comm, ranks, in_node);
    ghp_mpi_of(transport)->shares_memory = true;
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        check_copies(comm, ranks, elements[i]);
}

static void check_group(struct ghp_ranks ranks)
{
    struct ghp_comm *comm = NULL, *again = NULL;

    CHECK_STATUS(ghp_collectives_group(transport->host, ranks, GHP_STREAM_COMPUTE, &comm), GHP_OK);
    CHECK_STATUS(ghp_collectives_group(transport->host, ranks, GHP_STREAM_COMPUTE, &again), GHP_OK);
    CHECK(comm == again);
    comm->label = "test";
    CHECK_STATUS(ghp_control_barrier(transport->control, comm), GHP_OK);
    check_sizes(comm, ranks, 0);
}

/* All ranks, as if rank r ran on node node_of(r): a communicator of its own, which replaces the last one. */
static void check_nodes(int (*node_of)(int r), int in_node)
{
    struct ghp_ranks all = {.count = size, .stride = 1};
    struct ghp_mpi_comm **place = &ghp_mpi_of(transport)->comms;
    struct ghp_comm *comm;

    for (int r = 0; r < size; r++)
        ghp_mpi_of(transport)->node_of[r] = node_of(r);
    while (*place != NULL && (*place)->base.stream != GHP_STREAM_COMM)
        place = &(*place)->next;
    if (*place != NULL) (*place)->base.ranks.first = -1; /* is not found again */
    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMM, &comm), GHP_OK);
    CHECK_EQ(ghp_mpi_comm_of(comm)->in_node, in_node);
    check_sizes(comm, all, in_node);
    transport->host->in_rank_order = true;
    check_sizes(comm, all, 0);
    transport->host->in_rank_order = false;
}

static int by_two(int r)
{
    return r / 2;
}

static int by_three(int r)
{
    return r / 3;
}

static int four_first(int r)
{
    return r / 4;
}

static int in_turns(int r)
{
    return r % 2;
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
                                .scratch_bytes = sizeof scratch};

    for (int i = 0; i < 3000; i++)
        data[i] = job + rank;
    GHP_TRY(comm->ops->all_reduce(comm, &sum));
    for (int i = 0; i < 3000; i++)
        if (data[i] != size * job + size * (size - 1) / 2.0)
            return GHP_FAIL(GHP_ERR_INTERNAL, "wrong sum in job %d", job);
    return GHP_OK;
}

/* A reduction stream during exchanges of this thread. */
static void check_two_streams(void)
{
    struct ghp_ranks all = {.count = size, .stride = 1};
    struct ghp_comm *here = NULL, *there = NULL;
    struct ghp_task_thread *stream = NULL;
    int64_t last = 0;

    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &here), GHP_OK);
    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMM, &there), GHP_OK);
    CHECK(here != there);
    CHECK_STATUS(ghp_task_thread_open(8, reduce_there, there, &stream), GHP_OK);
    for (int job = 0; job < 40; job++) {
        last = ghp_task_thread_post(stream, job);
        check_copies(here, all, 500);
    }
    CHECK_STATUS(ghp_task_thread_wait(stream, last), GHP_OK);
    ghp_task_thread_close(stream);
}

/* Sums short and long, to which another rank comes late each time: the others sleep, and are woken. */
static void check_late(void)
{
    struct ghp_ranks all = {.count = size, .stride = 1};
    struct ghp_comm *comm = NULL;

    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &comm), GHP_OK);
    for (int round = 0; round < 12; round++) {
        if (round % size == rank) usleep(3000);
        check_all_reduce(comm, all, (const int64_t[3]){round % 2 == 0 ? 200 : 150000, 1 << 16, 0});
    }
}

/* A message continues while its sender waits in a sum for the receiver, which comes only when it has it. */
static void check_message_during_sum(void)
{
    struct ghp_ranks all = {.count = size, .stride = 1};
    struct ghp_p2p_message message = {
        .bytes = 8 << 20, .peer = 1 - rank, .tag = 3, .receives = rank == 1};
    struct ghp_channel *box = NULL;
    struct ghp_comm *comm = NULL;
    bool done = false;

    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &comm), GHP_OK);
    CHECK_STATUS(transport->p2p->ops->open(transport->p2p, 1, &box), GHP_OK);
    if (rank < 2 && size > 1) {
        message.data = ghp_alloc((size_t)message.bytes, 1);
        CHECK_STATUS(box->ops->post(box, 0, &message), GHP_OK);
        while (rank == 1 && !done)
            CHECK_STATUS(box->ops->poll(box, 0, &done), GHP_OK);
    }
    check_all_reduce(comm, all, (const int64_t[3]){150000, 1 << 16, 0});
    while (rank == 0 && size > 1 && !done)
        CHECK_STATUS(box->ops->poll(box, 0, &done), GHP_OK);
    box->ops->close(box);
    free(message.data);
}

static void check_agreement(void)
{
    struct ghp_comm *comm = NULL;
    enum ghp_status mine = GHP_OK, all;

    CHECK_STATUS(ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = size, .stride = 1},
                                       GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    CHECK_STATUS(ghp_control_agree(transport->control, comm, GHP_OK), GHP_OK);
    if (rank == size - 1) mine = GHP_FAIL(GHP_ERR_IO, "the last one cannot");
    all = ghp_control_agree(transport->control, comm, mine);
    CHECK(all == GHP_ERR_IO);
    CHECK(strstr(ghp_status_message(), "the last one cannot") != NULL);
}

static void tell_alike(struct ghp_alike *alike, bool last_differs)
{
    bool differs = last_differs && rank == size - 1;

    *alike = (struct ghp_alike){.status = GHP_ERR_USAGE, .remedy = "do the same"};
    ghp_alike_add_text(alike, "--lr", "0.1");
    ghp_alike_add_text(alike, "--backend", differs ? NULL : "onednn");
    ghp_alike_add(alike, "the labels", "", differs);
    ghp_alike_add(alike, "the plan", "plan.json", differs);
    ghp_alike_add_text(alike, "--data",
                       differs ? "/a/path/that/is/longer/than/what/is/shown/of/a/"
                                 "value/in/such/a/message/of/a/difference"
                               : "short");
}

/* What one worker was told otherwise is named with both values, the same on all; a fourth subject is counted. */
static void check_alike(void)
{
    struct ghp_comm *comm = NULL;
    struct ghp_alike alike;
    char wanted[400];

    CHECK_STATUS(ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = size, .stride = 1},
                                       GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    tell_alike(&alike, false);
    CHECK_STATUS(ghp_alike_agree(&alike, transport->control, comm), GHP_OK);
    tell_alike(&alike, true);
    if (size == 1) return;
    CHECK_STATUS(ghp_alike_agree(&alike, transport->control, comm), GHP_ERR_USAGE);
    snprintf(
        wanted, sizeof wanted,
        "workers 0 and %d do not train the same: --backend is onednn on worker 0 and not given "
        "on worker %d, the labels of worker 0 and of worker %d differ, the plan of worker 0 "
        "and of worker %d differ ('plan.json' on both), and 1 more; do the same",
        size - 1, size - 1, size - 1, size - 1);
    CHECK_TEXT(ghp_status_message(), wanted);
    if (rank == 0) alike.n--;
    CHECK_STATUS(ghp_alike_agree(&alike, transport->control, comm), GHP_ERR_USAGE);
    CHECK_MESSAGE("not of the same build");
}

/* A worker that comes too late is named, with the instruction. Afterwards its messages arrive, so that all can end. */
static void check_watchdog(void)
{
    struct ghp_comm *comm = NULL;
    double mine = 1, all[8];

    if (size == 1) return;
    CHECK_STATUS(ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = size, .stride = 1},
                                       GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    comm->label = "backward of fc1";
    if (rank == size - 1) {
        sleep(WATCHDOG_S + 2);
        CHECK_STATUS(comm->ops->all_gather(comm, &mine, all, 8), GHP_OK);
        return;
    }
    CHECK_STATUS(comm->ops->all_gather(comm, &mine, all, 8), GHP_ERR_COMM);
    CHECK_MESSAGE("backward of fc1");
    CHECK_MESSAGE("--watchdog");
    sleep(3);
}

/* A worker that comes too late to a sum over a shared segment is named likewise. */
static void check_watchdog_of_sums(void)
{
    struct ghp_ranks all = {.count = size, .stride = 1};
    struct ghp_comm *comm = NULL;
    double data = rank, scratch[8];
    struct ghp_reduction sum = {.in = &data,
                                .out = &data,
                                .elements = 1,
                                .element_bytes = 8,
                                .scratch = scratch,
                                .scratch_bytes = sizeof scratch};
    char late[64];

    if (size == 1) return;
    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &comm), GHP_OK);
    CHECK_STATUS(ghp_control_barrier(transport->control, comm), GHP_OK);
    comm->label = "reduction of conv1";
    transport->control->watchdog_s = 1;
    if (rank == size - 1) {
        sleep(3);
        CHECK_STATUS(comm->ops->all_reduce(comm, &sum), GHP_OK);
    } else {
        CHECK_STATUS(comm->ops->all_reduce(comm, &sum), GHP_ERR_COMM);
        CHECK_MESSAGE("reduction of conv1");
        snprintf(late, sizeof late, "nothing arrived from rank(s) %d, not", size - 1);
        CHECK_MESSAGE(late);
    }
    transport->control->watchdog_s = WATCHDOG_S;
    CHECK_STATUS(ghp_control_barrier(transport->control, comm), GHP_OK);
}

CHECK_TEST(transport)
{
    /* long messages need both sides: their receiver could fetch them alone otherwise */
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, WATCHDOG_S, &transport), GHP_OK)) return 1;
    rank = transport->control->rank;
    size = transport->control->size;
    check_group((struct ghp_ranks){.count = size, .stride = 1});
    for (int tp_size = 1; tp_size < size; tp_size++) {
        if (size % tp_size != 0) continue;
        check_group(ghp_ranks_subgroup(rank, tp_size));
        check_group(ghp_ranks_replica(rank, tp_size, size));
    }
    if (size == 4 || size == 6) check_nodes(by_two, 2);
    if (size == 6) check_nodes(by_three, 3);
    if (size == 6) check_nodes(four_first, 0);
    if (size == 4) check_nodes(in_turns, 0);
    check_two_streams();
    check_late();
    check_message_during_sum();
    check_agreement();
    check_alike();
    check_watchdog_of_sums();
    check_watchdog();
    ghp_transport_end(transport);
    return check_end();
}
