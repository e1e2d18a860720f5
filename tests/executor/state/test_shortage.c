/* ghp-test: np=2 np_full=1,3 timeout=60
 *
 * tests/executor/state/test_shortage.c - a worker without memory leaves no other in a collective: whichever allocation
 * of the last rank is refused, all ranks learn of it, well before the watchdog, and the transport can be used again.
 *
 * The linker gives this program's ghp_alloc to all of ghp. */
#include "executor/transport/transport.h"
#include "tests/check.h"

#include <time.h>

enum { WATCHDOG_S = 20, MOST_ALLOCATIONS = 64 };

static struct ghp_transport *transport;
static struct ghp_comm *world;
static int rank, size;
static int left = -1; /* allocations until one is refused; < 0: none is */
static bool refused;

void *__real_ghp_alloc(size_t n, size_t bytes);
void *__wrap_ghp_alloc(size_t n, size_t bytes);
void *__wrap_ghp_alloc(size_t n, size_t bytes)
{
    if (left >= 0 && left-- == 0) {
        refused = true;
        return NULL;
    }
    return __real_ghp_alloc(n, bytes);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum ghp_status make_group(void)
{
    struct ghp_comm *comm;

    return ghp_collectives_group(transport->host, (struct ghp_ranks){.count = size, .stride = 1},
                                 GHP_STREAM_COMM, &comm);
}

static enum ghp_status make_channel(void)
{
    struct ghp_channel *box = NULL;
    enum ghp_status status = transport->p2p->ops->open(transport->p2p, 2, &box);

    if (status == GHP_OK) box->ops->close(box);
    return status;
}

static enum ghp_status agree(void)
{
    return ghp_control_agree(transport->control, world, GHP_OK);
}

/* Refuses the last rank's allocations in turn, until there is none left to refuse. */
static void check(enum ghp_status (*work)(void))
{
    for (int i = 0; i < MOST_ALLOCATIONS; i++) {
        double begin_s = now_s();
        enum ghp_status status;
        int any = 0, *all = __real_ghp_alloc((size_t)size, sizeof *all);

        refused = false;
        left = rank == size - 1 ? i : -1;
        status = work();
        left = -1;
        CHECK(now_s() - begin_s < WATCHDOG_S / 2);
        any = refused;
        if (!CHECK_STATUS(world->ops->all_gather(world, &any, all, sizeof any), GHP_OK))
            exit(check_end());
        any = all[size - 1];
        free(all);
        if (!CHECK_STATUS(status, any ? GHP_ERR_NO_MEMORY : GHP_OK)) exit(check_end());
        if (!any) return;
        CHECK_MESSAGE("out of memory");
        if (rank != size - 1) CHECK_MESSAGE("worker ");
    }
    CHECK(false && "there is always one more allocation");
}

int main(int argc, char **argv)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, WATCHDOG_S, &transport), GHP_OK)) return 1;
    rank = transport->control->rank;
    size = transport->control->size;
    CHECK_STATUS(ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = size, .stride = 1},
                                       GHP_STREAM_COMPUTE, &world),
                 GHP_OK);
    check(agree);
    check(make_group);
    check(make_channel);
    ghp_transport_end(transport);
    return check_end();
}
