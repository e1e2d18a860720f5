/* ghp-test: np=2 np_full=1,4 timeout=120 emulated=yes
 *
 * NCCL's transport: every collective in every precision on both streams against sums made on the host, parts and in
 * place, in memory that it was told of too; messages both ways at once, by a lane each way, whatever is posted first;
 * one communicator for each distinct (ranks, stream) and lane, however often it is asked for; marks order the streams;
 * the watchdog and an error of NCCL's end it with the label and the remedy. Skipped where ranks have no GPU each,
 * unless NCCL_HOSTID, different on each, says that they are apart. */
#include "tests/check.h"

#include "core/model/precision.h"
#include "executor/backend/backend.h"
#include "executor/transport/device/device_transport.h"
#include "executor/transport/nccl/transport_nccl.h"
#include "executor/transport/device/staged.h"

static struct ghp_exec_context exec;
static struct ghp_collectives *nccl;
static int rank, workers;

enum { ELEMENTS = 40000 };

/* Small whole numbers: exact in every precision, however they are added. */
static double value(int from, int64_t i)
{
    return (double)((from + 1) * (i % 7));
}

static void put(void *to, int element_bytes, int64_t i, double number)
{
    if (element_bytes == 2)
        ((uint16_t *)to)[i] = ghp_bf16_of((float)number);
    else if (element_bytes == 4)
        ((float *)to)[i] = (float)number;
    else
        ((double *)to)[i] = number;
}

static double get(const void *from, int element_bytes, int64_t i)
{
    if (element_bytes == 2) return (double)ghp_bf16_value(((const uint16_t *)from)[i]);
    return element_bytes == 4 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static struct ghp_device device_of(void)
{
    return ghp_exec_context_device(&exec);
}

struct pair { /* in device memory, and on the host */
    void *in, *out;
    char *host;
    int64_t bytes;
};

static void pair_open(struct pair *p, int64_t bytes)
{
    *p = (struct pair){.bytes = bytes, .host = ghp_alloc((size_t)bytes, 1)};
    CHECK_STATUS(ghp_device_allocate(device_of(), bytes, &p->in), GHP_OK);
    CHECK_STATUS(ghp_device_allocate(device_of(), bytes, &p->out), GHP_OK);
}

static void pair_close(struct pair *p)
{
    ghp_device_release(device_of(), p->in);
    ghp_device_release(device_of(), p->out);
    free(p->host);
}

static void fill(struct pair *p, int element_bytes, int64_t first)
{
    for (int64_t i = 0; i < p->bytes / element_bytes; i++)
        put(p->host, element_bytes, i, value(rank, first + i));
    CHECK_STATUS(ghp_device_write(device_of(), p->in, p->host, p->bytes), GHP_OK);
}

/* What arrived, once the stream has done it. */
static void fetch(struct pair *p, const void *from, enum ghp_stream stream)
{
    CHECK_STATUS(ghp_device_finish(device_of(), stream == GHP_STREAM_COMM
                                                    ? GHP_DEVICE_STREAM_COMM
                                                    : GHP_DEVICE_STREAM_COMPUTE),
                 GHP_OK);
    CHECK_STATUS(ghp_device_read(device_of(), p->host, from, p->bytes), GHP_OK);
}

static int member(struct ghp_ranks ranks)
{
    return (rank - ranks.first) / ranks.stride;
}

static void check_sums(struct ghp_ranks ranks, enum ghp_stream stream, int element_bytes)
{
    struct ghp_comm *comm = NULL;
    struct pair p;
    int64_t each = ELEMENTS / ranks.count;
    struct ghp_reduction sum = {.elements = ELEMENTS, .element_bytes = element_bytes};
    double factor = 0;
    int64_t wrong = 0;

    for (int r = 0; r < ranks.count; r++)
        factor += ranks.first + r * ranks.stride + 1;
    CHECK_STATUS(ghp_collectives_group(nccl, ranks, stream, &comm), GHP_OK);
    comm->label = "a sum";
    pair_open(&p, (int64_t)ELEMENTS * element_bytes);
    fill(&p, element_bytes, 0);
    sum.in = sum.out = p.in;
    CHECK_STATUS(comm->ops->all_reduce(comm, &sum), GHP_OK);
    fetch(&p, p.in, stream);
    for (int64_t i = 0; i < ELEMENTS; i++)
        wrong += get(p.host, element_bytes, i) != factor * (double)(i % 7);
    CHECK_EQ(wrong, 0);
    fill(&p, element_bytes, 0);
    sum.in = p.in;
    sum.out = p.out;
    sum.elements = each;
    CHECK_STATUS(comm->ops->reduce_scatter(comm, &sum), GHP_OK);
    fetch(&p, p.out, stream);
    for (int64_t i = 0; i < each; i++)
        wrong += get(p.host, element_bytes, i) != factor * (double)((member(ranks) * each + i) % 7);
    CHECK_EQ(wrong, 0);
    pair_close(&p);
}

static void check_moves(struct ghp_ranks ranks, enum ghp_stream stream)
{
    struct ghp_comm *comm = NULL;
    struct pair p;
    int64_t each = ELEMENTS, wrong = 0;
    float *host;

    CHECK_STATUS(ghp_collectives_group(nccl, ranks, stream, &comm), GHP_OK);
    pair_open(&p, each * ranks.count * 4);
    host = (float *)(void *)p.host;
    fill(&p, 4, 0);
    CHECK_STATUS(comm->ops->all_gather(comm, p.in, p.out, each * 4), GHP_OK);
    fetch(&p, p.out, stream);
    for (int r = 0; r < ranks.count; r++)
        for (int64_t i = 0; i < each; i++)
            wrong += host[r * each + i] != (float)value(ranks.first + r * ranks.stride, i);
    CHECK_EQ(wrong, 0);
    fill(&p, 4, 0);
    CHECK_STATUS(comm->ops->all_to_all(comm, p.in, p.out, each * 4), GHP_OK);
    fetch(&p, p.out, stream);
    for (int r = 0; r < ranks.count; r++)
        for (int64_t i = 0; i < each; i++)
            wrong += host[r * each + i] !=
                     (float)value(ranks.first + r * ranks.stride, member(ranks) * each + i);
    CHECK_EQ(wrong, 0);
    pair_close(&p);
}

/* A sum in NCCL's memory, whether tensors lie in it alike on all ranks or not. */
static void check_memory(void)
{
    struct ghp_ranks all = {.count = workers, .stride = 1};
    struct ghp_comm_memory memory = {.bytes = (int64_t)ELEMENTS * 4};
    struct ghp_reduction sum = {.elements = ELEMENTS, .element_bytes = 4};
    struct ghp_comm *comm = NULL;
    struct pair p = {.bytes = memory.bytes, .host = ghp_alloc(ELEMENTS, 4)};

    CHECK_STATUS(ghp_collectives_group(nccl, all, GHP_STREAM_COMM, &comm), GHP_OK);
    for (int alike = 0; alike < 2; alike++) {
        int64_t wrong = 0;

        CHECK_STATUS(nccl->ops->allocate_memory(nccl, memory.bytes, &memory.base), GHP_OK);
        if (memory.base == NULL) break; /* an older NCCL */
        memory.layout = alike ? 7 : (uint64_t)rank;
        CHECK_STATUS(comm->ops->register_memory(comm, &memory), GHP_OK);
        CHECK_STATUS(ghp_device_read(device_of(), p.host, memory.base, p.bytes), GHP_OK);
        for (int64_t i = 0; i < ELEMENTS; i++)
            wrong += get(p.host, 4, i) != 0;
        p.in = memory.base;
        fill(&p, 4, 0);
        sum.in = sum.out = p.in;
        CHECK_STATUS(comm->ops->all_reduce(comm, &sum), GHP_OK);
        fetch(&p, p.in, GHP_STREAM_COMM);
        for (int64_t i = 0; i < ELEMENTS; i++)
            wrong += get(p.host, 4, i) != workers * (workers + 1) / 2 * (double)(i % 7);
        CHECK_EQ(wrong, 0);
        nccl->ops->release_memory(nccl, memory.base);
    }
    free(p.host);
}

/* Exchanges with the neighbour in both directions. receives_first: both sides post what they receive first. */
static void exchange(struct ghp_comm *const lanes[2], struct pair *p, bool receives_first)
{
    int64_t wrong = 0;

    fill(p, 4, 0);
    for (int k = 0; k < 2; k++) {
        int lane = receives_first && rank % 2 == 0 ? 1 - k : k; /* 0: to the odd rank */
        bool receives = (lane == 0) == (rank % 2 == 1);
        struct ghp_p2p_message m = {.data = receives ? p->out : p->in,
                                    .bytes = p->bytes,
                                    .peer = rank ^ 1,
                                    .receives = receives};

        CHECK_STATUS(lanes[lane]->ops->exchange(lanes[lane], &m, 1), GHP_OK);
    }
    for (int lane = 0; lane < 2; lane++)
        CHECK_STATUS(ghp_device_finish(device_of(), lanes[lane]->device_stream), GHP_OK);
    CHECK_STATUS(ghp_device_read(device_of(), p->host, p->out, p->bytes), GHP_OK);
    for (int64_t i = 0; i < ELEMENTS; i++)
        wrong += get(p->host, 4, i) != value(rank ^ 1, i);
    CHECK_EQ(wrong, 0);
}

/* Lanes of neighbours, 0 and 1, 2 and 3; a last one alone takes no part. */
static void check_lanes(void)
{
    struct ghp_ranks pair = {.first = rank / 2 * 2, .count = 2, .stride = 1}, none = {0};
    bool alone = (rank ^ 1) >= workers;
    struct ghp_comm *lanes[2] = {NULL}, *again = NULL;
    struct pair p;

    for (int lane = 0; lane < 2; lane++) {
        CHECK_STATUS(nccl->ops->lane(nccl, alone ? none : pair, lane, &lanes[lane]), GHP_OK);
        CHECK_STATUS(nccl->ops->lane(nccl, alone ? none : pair, lane, &again), GHP_OK);
        CHECK(again == lanes[lane] && (again == NULL) == alone);
        if (again != NULL) again->label = "a message";
    }
    if (alone) return;
    CHECK(lanes[0] != lanes[1] && lanes[0]->device_stream != lanes[1]->device_stream);
    pair_open(&p, (int64_t)ELEMENTS * 4);
    for (int round = 0; round < 4; round++)
        exchange(lanes, &p, round > 0); /* in the first, they meet */
    pair_close(&p);
}

static void check_reuse(void)
{
    struct ghp_ranks all = {.count = workers, .stride = 1},
                     pairs = {.first = rank / 2 * 2, .count = 2, .stride = 1};
    struct ghp_comm *a = NULL, *b = NULL, *c = NULL;
    int before = ghp_nccl_comms(nccl);

    CHECK_STATUS(ghp_collectives_group(nccl, all, GHP_STREAM_COMPUTE, &a), GHP_OK);
    CHECK_STATUS(ghp_collectives_group(nccl, all, GHP_STREAM_COMPUTE, &b), GHP_OK);
    CHECK_STATUS(ghp_collectives_group(nccl, all, GHP_STREAM_COMM, &c), GHP_OK);
    CHECK(a == b && a != c);
    CHECK_EQ(ghp_nccl_comms(nccl), before); /* the sums above made them */
    if (workers < 4) return;
    CHECK_STATUS(ghp_collectives_group(nccl, pairs, GHP_STREAM_COMPUTE, &b), GHP_OK);
    CHECK_EQ(ghp_nccl_comms(nccl), before);
}

/* watchdog_s   instead of the transport's */
static void open_nccl(double watchdog_s)
{
    static struct ghp_control control;
    static struct ghp_transport transport;

    control = *exec.transport->control;
    control.watchdog_s = watchdog_s;
    transport = *exec.transport;
    transport.control = &control;
    if (!CHECK_STATUS(ghp_nccl_open(&transport, device_of(), &nccl), GHP_OK)) exit(check_end());
}

/* What the host says when it has waited too long, and that nothing is used afterwards. */
static void check_watchdog(void)
{
    struct ghp_comm *comm = NULL;
    char nothing[4] = "";

    open_nccl(5);
    CHECK_STATUS(ghp_collectives_group(nccl, (struct ghp_ranks){.count = workers, .stride = 1},
                                       GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    CHECK_STATUS(nccl->ops->check(nccl, 4.9, "a step"), GHP_OK);
    CHECK_STATUS(nccl->ops->check(nccl, 5.1, "a step"), GHP_ERR_COMM);
    CHECK_MESSAGE("'a step'");
    CHECK_MESSAGE("--watchdog");
    CHECK_STATUS(comm->ops->all_gather(comm, nothing, nothing, 1), GHP_ERR_COMM);
    nccl->ops->close(nccl);
}

static void check_error(void)
{
    struct ghp_comm *comm = NULL;
    struct pair p;
    struct ghp_reduction sum = {.elements = 16, .element_bytes = 4};

    open_nccl(60);
    CHECK_STATUS(ghp_collectives_group(nccl, (struct ghp_ranks){.count = workers, .stride = 1},
                                       GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    pair_open(&p, 64);
    sum.in = sum.out = p.in;
    comm->label = "the sum of conv1";
    setenv("GHP_EMULATED_NCCL", "error", 1);
    CHECK_STATUS(comm->ops->all_reduce(comm, &sum), GHP_OK);
    unsetenv("GHP_EMULATED_NCCL");
    CHECK_STATUS(nccl->ops->check(nccl, 0, "the sum of conv1"), GHP_ERR_COMM);
    CHECK_MESSAGE("'the sum of conv1'");
    CHECK_MESSAGE("NCCL_DEBUG");
    CHECK_STATUS(comm->ops->all_reduce(comm, &sum), GHP_ERR_COMM);
    pair_close(&p);
    nccl->ops->close(nccl);
}

/* Who carries: by NCCL where each has a GPU, in host memory where they share one, and never between processors. */
static void check_choice(bool shared)
{
    const struct ghp_collectives_ops *carries =
        shared ? &ghp_staged_collectives : &ghp_nccl_collectives;
    struct ghp_exec_context copy = exec, host = {.backend_ops = &ghp_backend_reference,
                                                 .transport = exec.transport};

    CHECK_STATUS(ghp_device_transport_open(&host, GHP_DEVICE_TRANSPORT_AUTO), GHP_OK);
    CHECK(host.collectives == NULL);
    CHECK_STATUS(ghp_device_transport_open(&host, GHP_DEVICE_TRANSPORT_NCCL), GHP_ERR_USAGE);
    CHECK_MESSAGE("--backend cuda");
    CHECK_STATUS(ghp_device_transport_open(&copy, GHP_DEVICE_TRANSPORT_MPI), GHP_OK);
    CHECK((copy.collectives != NULL) == (workers > 1));
    ghp_device_transport_close(&copy);
    copy = exec;
    CHECK_STATUS(ghp_device_transport_open(&copy, GHP_DEVICE_TRANSPORT_AUTO), GHP_OK);
    CHECK(workers == 1 ? copy.collectives == NULL : copy.collectives->ops == carries);
    ghp_device_transport_close(&copy);
    /* asked for, it carries between those that share one, too: main saw that they say they are apart */
    CHECK_STATUS(ghp_device_transport_open(&copy, GHP_DEVICE_TRANSPORT_NCCL), GHP_OK);
    CHECK(workers == 1 ? copy.collectives == NULL : copy.collectives->ops == &ghp_nccl_collectives);
    ghp_device_transport_close(&copy);
}

static void check_all(void)
{
    struct ghp_ranks groups[] = {{.count = workers, .stride = 1},
                                 {.first = rank / 2 * 2, .count = 2, .stride = 1},
                                 {.first = rank % 2, .count = 2, .stride = 2}};
    int n = workers >= 4 ? 3 : 1;

    for (int g = 0; g < n; g++)
        for (int stream = GHP_STREAM_COMPUTE; stream <= GHP_STREAM_COMM; stream++) {
            for (int bytes = 2; bytes <= 8; bytes *= 2)
                check_sums(groups[g], (enum ghp_stream)stream, bytes);
            check_moves(groups[g], (enum ghp_stream)stream);
        }
}

CHECK_TEST(nccl)
{
    struct ghp_backend_config config = {
        .element_bytes = 4, .threads = 1, .reduce_multiprocessors = 4};
    struct ghp_device_about about = {0};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &exec.transport), GHP_OK)) return 1;
    exec.backend_ops = ghp_backend_find("cuda");
    rank = exec.transport->control->rank;
    workers = exec.transport->control->size;
    config.local_rank = rank;
    if (exec.backend_ops->check() != GHP_OK) {
        ghp_transport_end(exec.transport);
        SKIP(ghp_status_message());
    }
    if (!CHECK_STATUS(exec.backend_ops->open(&config, &exec.backend), GHP_OK)) return check_end();
    device_of().ops->about(exec.backend, &about);
    if (about.count < workers && getenv("NCCL_HOSTID") == NULL) {
        ghp_transport_end(exec.transport);
        SKIP("fewer GPUs than ranks");
    }
    open_nccl(60);
    check_all();
    check_memory();
    check_lanes();
    check_reuse();
    nccl->ops->close(nccl);
    check_choice(about.count < workers); /* seats are ranks: one node */
    check_watchdog();
    if (strcmp(about.name, "emulated GPU") == 0) check_error();
    exec.backend_ops->close(exec.backend);
    ghp_transport_end(exec.transport);
    return check_end();
}
