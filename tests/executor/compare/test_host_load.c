/* Other programs' share: /proc/stat's columns, sums over the workers of a machine, and a busy child that is noticed.
 * ghp-test: np=2 np_full=1,3 timeout=60 */
#include "executor/compare/host_load.h"
#include "core/base/clock.h"
#include "executor/platform/step_timer.h"
#include "tests/check.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const double burn_s = 1;

/* user 300, nice 20, system 80, irq and softirq (left out) 1000, steal 40 ticks. */
static void test_stat(int rank)
{
    char path[64];
    FILE *file;
    double busy_s = 0, ticks = (double)sysconf(_SC_CLK_TCK);
    int cores = 0;

    snprintf(path, sizeof path, "stat-%d-%d", (int)getpid(), rank);
    file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fputs("cpu  300 20 80 9000 50 600 400 40 7 3\ncpu0 100 20 80 4000 50 0 0 40 0 0\n"
          "cpu1 200 0 0 5000 0 600 400 0 7 3\nintr 123\nctxt 5\n",
          file);
    fclose(file);
    CHECK(ghp_cpu_busy(path, &busy_s, &cores));
    CHECK_NEAR(busy_s, 440 / ticks, 1e-12);
    CHECK_EQ(cores, 2);
    file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fputs("nothing of the kind\n", file);
    fclose(file);
    CHECK(!ghp_cpu_busy(path, &busy_s, &cores));
    remove(path);
    CHECK(!ghp_cpu_busy(path, &busy_s, &cores));
}

static void test_most(void)
{
    struct ghp_cpu_count counts[3] = {{"a", 10, 20, 4}, {"b", 5, 5, 3}, {"a", 10, 20, 5}};
    struct ghp_cpu_use use = ghp_cpu_most(counts, 3); /* a: 1 of 20; b: 2 of 5 */

    CHECK_NEAR(use.foreign_s, 2, 1e-12);
    CHECK_NEAR(ghp_cpu_fraction(use), 0.4, 1e-12);
    counts[1].own_s = 5.01; /* ticks fall a little short of it */
    use = ghp_cpu_most(counts, 3);
    CHECK_NEAR(ghp_cpu_fraction(use), 0.05, 1e-12);
    counts[1].busy_s = 1; /* a kernel that does not count */
    CHECK(ghp_cpu_fraction(ghp_cpu_most(counts, 3)) == -1);
    counts[1].busy_s = -1;
    CHECK(ghp_cpu_fraction(ghp_cpu_most(counts, 3)) == -1);
    CHECK(ghp_cpu_fraction(ghp_cpu_most(counts, 1)) > 0.29);
    counts[0].machine[0] = '\0';
    CHECK(ghp_cpu_fraction(ghp_cpu_most(counts, 1)) == -1);
    use =
        (struct ghp_cpu_use){.foreign_s = 0.01, .capacity_s = 99.0 / (double)sysconf(_SC_CLK_TCK)};
    CHECK(ghp_cpu_fraction(use) == -1); /* 99 ticks in all */
}

static void burn(double seconds)
{
    double end = ghp_now_s() + seconds;

    while (ghp_now_s() < end) {
    }
}

/* A child of rank 0 works, which is another program; each worker works too, which is not. */
static void test_live(struct ghp_transport *transport)
{
    int size = transport->control->size, rank = transport->control->rank;
    struct ghp_host_load *n = NULL;
    struct ghp_cpu_use use = {0};
    struct ghp_comm *world = NULL;
    double child_s = 0, all[3] = {0};
    struct rusage children;
    pid_t child = -1;

    CHECK_STATUS(ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = size, .stride = 1},
                                       GHP_STREAM_COMPUTE, &world),
                 GHP_OK);
    CHECK_STATUS(ghp_host_load_open(transport->control, world, size, &n), GHP_OK);
    CHECK_EQ(ghp_host_load_here(n), size);
    CHECK_STATUS(ghp_host_load_begin(n), GHP_OK);
    if (rank == 0) child = fork();
    if (child == 0) {
        burn(burn_s);
        _exit(0);
    }
    burn(burn_s / 2);
    if (child > 0) CHECK(waitpid(child, NULL, 0) == child);
    CHECK_STATUS(ghp_host_load_use(n, &use), GHP_OK);
    if (getrusage(RUSAGE_CHILDREN, &children) == 0)
        child_s = (double)children.ru_utime.tv_sec + 1e-6 * (double)children.ru_utime.tv_usec;
    CHECK_STATUS(world->ops->all_gather(world, &child_s, all, (int64_t)sizeof child_s), GHP_OK);
    if (ghp_cpu_fraction(use) >= 0) { /* half: a kernel that samples by ticks misses some */
        CHECK(all[0] > 0);
        CHECK(use.foreign_s >= all[0] / 2);
        CHECK(use.foreign_s <= use.capacity_s);
    } else {
        fprintf(stderr, "this kernel does not count busy time\n");
    }
    ghp_host_load_close(n);
}

CHECK_TEST(host_load)
{
    struct ghp_transport *transport = NULL;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 30, &transport), GHP_OK))
        return check_end();
    test_stat(transport->control->rank);
    test_most();
    test_live(transport);
    ghp_transport_end(transport);
    return check_end();
}
