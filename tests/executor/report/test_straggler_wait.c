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
    return (struct ghp_instr){.kind = GHP_INSTR_RESHARD,
                              .comm = GHP_COMM_ALL_TO_ALL,
                              .ranks = {.count = count, .stride = stride}};
}

/* An exchange of 1 ms whose ranks arrive at different times, another one last in each step. */
static void test_stragglers(void)
{
    static double run_s[WORKERS * GHP_STEP_TIMER_STEPS];
    bool kept[GHP_STEP_TIMER_STEPS] = {false};
    struct ghp_instr instr = exchange(4, 1);
    struct ghp_straggler_wait own;

    for (int s = 0; s < STEPS; s++) {
        kept[s] = s > 0; /* step 0 is an outlier that does not count */
        for (int r = 0; r < WORKERS; r++)
            run_s[r * GHP_STEP_TIMER_STEPS + s] = s == 0 ? 1 : 1e-3 + 1e-4 * ((r + s) % WORKERS);
    }
    CHECK_STATUS(ghp_straggler_wait_of(run_s, kept, &instr, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 1e-3, 1e-15);
    /* over 7 steps each rank waits 0, 1, 2 or 3 tenths, 10 tenths or so in all: the median rank 10.5 / 7 */
    CHECK_NEAR(own.straggler_wait_s, 1e-4 * 10.5 / 7, 1e-12);

    /* as computation there is nobody to wait for: the median of the workers' means, 11.5 / 7 or 9.5 / 7 tenths */
    CHECK_STATUS(ghp_straggler_wait_of(run_s, kept, &compute, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 1e-3 + 1e-4 * 10.5 / 7, 1e-12);
    CHECK(own.straggler_wait_s == 0);
}

/* One slow worker: its partners wait, the operation does not become slower; groups stay apart. */
static void test_slow_worker(void)
{
    static double run_s[WORKERS * GHP_STEP_TIMER_STEPS];
    bool kept[GHP_STEP_TIMER_STEPS] = {true};
    struct ghp_instr near = exchange(2, 1), far = exchange(2, 2);
    struct ghp_straggler_wait own;

    for (int r = 0; r < WORKERS; r++)
        run_s[r * GHP_STEP_TIMER_STEPS] = r == 3 ? 1e-3 : 5e-3; /* worker 3 comes late */
    CHECK_STATUS(ghp_straggler_wait_of(run_s, kept, &near, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 3e-3, 1e-15);         /* groups {0, 1}: 5 ms, {2, 3}: 1 ms */
    CHECK_NEAR(own.straggler_wait_s, 0, 1e-15); /* 0, 0, 4, 0 ms */
    CHECK_STATUS(ghp_straggler_wait_of(run_s, kept, &far, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 3e-3, 1e-15);      /* groups {0, 2} and {1, 3} */
    run_s[3 * GHP_STEP_TIMER_STEPS] = 20e-3; /* a slow operation on one worker of four */
    CHECK_STATUS(ghp_straggler_wait_of(run_s, kept, &compute, WORKERS, &own), GHP_OK);
    CHECK_NEAR(own.own_s, 5e-3, 1e-15);
    kept[0] = false;
    CHECK_STATUS(ghp_straggler_wait_of(run_s, kept, &compute, WORKERS, &own), GHP_OK);
    CHECK(own.own_s == 0 && own.straggler_wait_s == 0);
}

/* Worker r measures (r + 1) ms for its exchange, 2 ms for its operation. */
static void test_gathered(const struct ghp_straggler_wait_request *request, int rank)
{
    struct ghp_instr instrs[2] = {compute, exchange(request->n, 1)};
    struct ghp_program program = {.n_instrs = 2, .instrs = instrs};
    struct ghp_prediction_error prediction_error[2] = {{0}};
    struct ghp_prediction_errors prediction_errors = {.n_instrs = 2, .instrs = prediction_error};
    struct ghp_step_timer *timer = NULL;
    double waits_s = request->n == 1 ? 0 : 1e-3 * (request->n - 1) / 2.0;

    CHECK_STATUS(ghp_step_timer_open(2, &timer), GHP_OK);
    for (int s = 0; s < STEPS; s++) {
        ghp_step_timer_begin(timer);
        ghp_step_timer_record(timer, 0, (struct ghp_instr_timing){.finish_s = 2e-3});
        ghp_step_timer_record(
            timer, 1, (struct ghp_instr_timing){.start_s = 2e-3, .finish_s = (rank + 3) * 1e-3});
        ghp_step_timer_end(timer, (rank + 3) * 1e-3);
    }
    CHECK_STATUS(ghp_straggler_wait_compare(request, &program, timer, &prediction_errors), GHP_OK);
    CHECK_NEAR(prediction_error[0].measured_own_s, 2e-3, 1e-15);
    CHECK_NEAR(prediction_error[1].measured_own_s, 1e-3, 1e-15);
    CHECK_NEAR(prediction_error[1].measured_straggler_wait_s, waits_s, 1e-15);
    ghp_step_timer_close(timer);
}

CHECK_TEST(straggler_wait)
{
    struct ghp_transport *transport = NULL;
    struct ghp_straggler_wait_request request = {0};

    test_stragglers();
    test_slow_worker();
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 20, &transport), GHP_OK))
        return check_end();
    request.control = transport->control;
    request.n = transport->control->size;
    CHECK_STATUS(ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = request.n, .stride = 1},
                                       GHP_STREAM_COMPUTE, &request.comm),
                 GHP_OK);
    test_gathered(&request, transport->control->rank);
    ghp_transport_end(transport);
    return check_end();
}
