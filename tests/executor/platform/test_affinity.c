/* ghp-test: np=2 np_full=1,3 timeout=60
 *
 * Ranks that may use fewer processors than there are: a node's have together what each of them was left, they share
 * memory as ranks do that take turns where those are fewer than the ranks, and the part of a worker's threads is of
 * those. */
#include "executor/platform/binding.h"
#include "executor/platform/processors.h"
#include "executor/transport/mpi/shared_segment.h"
#include "tests/check.h"

#include <sched.h>

enum { SHORT_BYTES = 256 << 10, LONG_BYTES = 1 << 20 }; /* shared_segment.c: a slot's */

static struct ghp_transport *transport;

/* Leaves this process the i-th of the processors that it may use. */
static void keep(int i)
{
    cpu_set_t all, one;

    CPU_ZERO(&all);
    CPU_ZERO(&one);
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    i %= CPU_COUNT(&all);
    for (size_t p = 0; p < CPU_SETSIZE; p++)
        if (CPU_ISSET(p, &all) && i-- == 0) CPU_SET(p, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

static int64_t slot_bytes(void)
{
    struct ghp_ranks all = {.count = transport->control->size, .stride = 1};
    struct ghp_comm *comm = NULL;

    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &comm), GHP_OK);
    if (!CHECK(ghp_mpi_comm_of(comm)->shared != NULL)) return 0;
    return ghp_mpi_comm_of(comm)->shared->slot_bytes;
}

/* A communicator of its own each time. */
static void forget(void)
{
    ghp_mpi_of(transport)->comms->base.ranks.first = -1;
}

static void check_sets(void)
{
    struct ghp_processors a = {{5, 1}}, b = {{4, 2}};

    ghp_processors_join(&a, &b);
    CHECK_EQ(ghp_processors_count(&a), 4);
    CHECK(ghp_processors_has(&a, 0) && ghp_processors_has(&a, 2) && ghp_processors_has(&a, 64) &&
          ghp_processors_has(&a, 65));
    CHECK(!ghp_processors_has(&a, 1) && !ghp_processors_has(&a, -1) &&
          !ghp_processors_has(&a, GHP_PROCESSORS_MOST));
}

/* Which the ranks may use together is what decides, not how many there are or one rank may use. */
static void check_slots(int size)
{
    struct ghp_processors left = {{0}};

    if (size == 1) return;
    for (int n = 1; n <= size; n++) {
        left.words[1] |= UINT64_C(1) << n;
        ghp_mpi_of(transport)->processors = left;
        forget();
        CHECK_EQ(slot_bytes(), n < size ? LONG_BYTES : SHORT_BYTES);
    }
}

static void check_threads(const struct ghp_processors *one)
{
    struct ghp_machine none = {
        .name = (char[]){"none"}, .nodes = 1, .packages = 1, .cores = 1, .threads = 1};
    struct ghp_binding_request request = {.workers = 2, .here = 2, .processors = one};
    struct ghp_binding binding;

    CHECK_STATUS(ghp_binding_set(&none, request, GHP_BIND_NONE, &binding), GHP_OK);
    CHECK_EQ(binding.n_cores, 1);
    CHECK(binding.oversubscribed);
}

CHECK_TEST(affinity)
{
    const struct ghp_processors *together;
    int size;

    check_sets();
    keep(0);
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 30, &transport), GHP_OK)) return 1;
    size = transport->control->size;
    together = transport->control->processors;
    CHECK_EQ(ghp_processors_count(together), 1);
    check_threads(together);
    if (size > 1) CHECK_EQ(slot_bytes(), LONG_BYTES);
    check_slots(size);
    ghp_transport_end(transport);
    return check_end();
}
