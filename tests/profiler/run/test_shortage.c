/* ghp-test: np=2 np_full=1,3 timeout=60
 *
 * tests/profiler/run/test_shortage.c - ranks hear each other's times without memory: none leaves the others in an
 * exchange.
 *
 * The linker gives this program's ghp_alloc to all of ghp. */
#include "profiler/measure/measure.h"
#include "profiler/run/participants.h"
#include "tests/check.h"

enum { WATCHDOG_S = 10 };

static struct ghp_measure m;
static bool refuses;

void *__real_ghp_alloc(size_t n, size_t bytes);
void *__wrap_ghp_alloc(size_t n, size_t bytes);
void *__wrap_ghp_alloc(size_t n, size_t bytes)
{
    return refuses ? NULL : __real_ghp_alloc(n, bytes);
}

int main(int argc, char **argv)
{
    struct ghp_transport *transport = NULL;
    double most, mean;
    int64_t shared[3] = {0};
    enum ghp_status status;
    bool last;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, WATCHDOG_S, &transport), GHP_OK)) return 1;
    CHECK_STATUS(ghp_participants_ranks(transport, &m), GHP_OK);
    last = m.rank == m.size - 1;
    refuses = last;
    most = mean = m.rank + 1;
    CHECK_STATUS(ghp_measure_max(&m, GHP_OK, &most), GHP_OK);
    CHECK_NEAR(most, m.size, 0);
    CHECK_STATUS(ghp_measure_mean(&m, GHP_OK, &mean), GHP_OK);
    CHECK_NEAR(mean, (m.size + 1) / 2.0, 1e-15);
    for (int i = 0; i < 3; i++)
        shared[i] = 10 * m.rank + i;
    status = ghp_measure_broadcast(&m, GHP_OK, shared,
                                   sizeof shared); /* takes memory: all learn that one has none */
    CHECK_STATUS(status, last ? GHP_ERR_NO_MEMORY : GHP_ERR_COMM);
    if (!last) CHECK_MESSAGE("see its message");
    refuses = false;
    CHECK_STATUS(ghp_measure_broadcast(&m, GHP_OK, shared, sizeof shared), GHP_OK);
    CHECK_EQ(shared[2], 2);
    ghp_transport_end(transport);
    return check_end();
}
