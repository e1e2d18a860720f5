/* ghp-test: np=3 np_full=1,2 timeout=60
 *
 * An exchange's own seconds are those of its last rank to arrive, the rest is waiting; and what is gathered from all
 * workers is what each measured. */
#include "executor/report/straggler_wait.h"
#include "tests/check.h"

enum { STEPS = 8, WORKERS = 4 };

static const struct ghp_instr compute = {.kind = GHP_INSTR_COMPUTE};

static struct ghp_instr exchange(int count, int stride)
{
    return (struct ghp_instr){
        .kind = GHP_INSTR_RESHARD, .comm = GHP_COMM_ALL_TO_ALL, .ranks = {.count = count, .stride = stride}};
}

/* An exchange of 1 ms whose ranks arrive at different times, another one last in each step. */
static void test_stragglers(void)
{
    static double run_s[WORKERS * GHP_STOPWATCH_STEPS];
    bool kept[GHP_STOPWATCH_STEPS] = {false};
    struct ghp_instr instr = exchange(4, 1);
    struct ghp_own own;

    for (int s = 0; s < STEPS; s++) {
        kept[s] = s > 0; /* step 0 is an outlier that does not count */
        for (int r = 0; r < WORKERS; r++)
            run_s[r * GHP_STOPWATCH_STEPS + s] = s == 0 ? 1 : 1e-3 + 1e-4 * ((r + s) % WORKERS);
    }
    CHECK_STATUS(ghp_partners_of(run_s, kept, &instr, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 1e-3, 1e-15);
    /* over 7 steps each rank waits 0, 1, 2 or 3 tenths, 10 tenths or so in all: the median rank 10.5 / 7 */
    CHECK_NEAR(own.partners_s, 1e-4 * 10.5 / 7, 1e-12);

    /* as computation there is nobody to wait for: the median of the workers' means, 11.5 / 7 or 9.5 / 7 tenths */
    CHECK_STATUS(ghp_partners_of(run_s, kept, &compute, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 1e-3 + 1e-4 * 10.5 / 7, 1e-12);
    CHECK(own.partners_s == 0);
}

/* One slow worker: its partners wait, the operation does not become slower; groups stay apart. */
static void test_slow_worker(void)
{
    static double run_s[WORKERS * GHP_STOPWATCH_STEPS];
    bool kept[GHP_STOPWATCH_STEPS] = {true};
    struct ghp_instr near = exchange(2, 1), far = exchange(2, 2);
    struct ghp_own own;

    for (int r = 0; r < WORKERS; r++)
        run_s[r * GHP_STOPWATCH_STEPS] = r == 3 ? 1e-3 : 5e-3; /* worker 3 comes late */
    CHECK_STATUS(ghp_partners_of(run_s, kept, &near, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 3e-3, 1e-15);   /* groups {0, 1}: 5 ms, {2, 3}: 1 ms */
    CHECK_NEAR(own.partners_s, 0, 1e-15); /* 0, 0, 4, 0 ms */
    CHECK_STATUS(ghp_partners_of(run_s, kept, &far, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 3e-3, 1e-15);     /* groups {0, 2} and {1, 3} */
    run_s[3 * GHP_STOPWATCH_STEPS] = 20e-3; /* a slow operation on one worker of four */
    CHECK_STATUS(ghp_partners_of(run_s, kept, &compute, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 5e-3, 1e-15);
    kept[0] = false;
    CHECK_STATUS(ghp_partners_of(run_s, kept, &compute, WORKERS, &own), GHP_OK);
    CHECK(own.own_s == 0 && own.partners_s == 0);
}

/* Worker r measures (r + 1) ms for its exchange, 2 ms for its operation. */
static void test_gathered(const struct ghp_crowd *crowd, int rank)
{
    struct ghp_instr instrs[2] = {compute, exchange(crowd->n, 1)};
    struct ghp_program program = {.n_instrs = 2, .instrs = instrs};
    struct ghp_residual residual[2] = {{0}};
    struct ghp_residuals residuals = {.n_instrs = 2, .instrs = residual};
    struct ghp_stopwatch *watch = NULL;
    double waits_s = crowd->n == 1 ? 0 : 1e-3 * (crowd->n - 1) / 2.0;

    CHECK_STATUS(ghp_stopwatch_open(2, &watch), GHP_OK);
    for (int s = 0; s < STEPS; s++) {
        ghp_stopwatch_begin(watch);
        ghp_stopwatch_lap(watch, 0, (struct ghp_lap){.step = s, .finish_s = 2e-3});
        ghp_stopwatch_lap(
            watch, 1, (struct ghp_lap){.step = s, .start_s = 2e-3, .finish_s = (rank + 3) * 1e-3});
        ghp_stopwatch_end(watch);
    }
    CHECK_STATUS(ghp_partners_compare(crowd, &program, watch, &residuals), GHP_OK);
    CHECK_NEAR(residual[0].measured_own_s, 2e-3, 1e-15);
    CHECK_NEAR(residual[1].measured_own_s, 1e-3, 1e-15);
    CHECK_NEAR(residual[1].measured_partners_s, waits_s, 1e-15);
    ghp_stopwatch_close(watch);
}

CHECK_TEST(partners)
{
    const struct ghp_transport_ops *ops = &ghp_transport_mpi;
    struct ghp_transport *transport = NULL;
    struct ghp_crowd crowd = {.transport_ops = ops};

    test_stragglers();
    test_slow_worker();
    if (!CHECK_STATUS(ops->open(&argc, &argv, 20, &transport), GHP_OK)) return check_end();
    crowd.n = ops->size(transport);
    CHECK_STATUS(
        ops->group(transport, (struct ghp_ranks){.count = crowd.n, .stride = 1}, GHP_STREAM_COMPUTE, &crowd.comm),
        GHP_OK);
    test_gathered(&crowd, ops->rank(transport));
    ops->close(transport);
    return check_end();
}
