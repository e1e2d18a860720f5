/* ghp-test: np=3 np_full=1 timeout=60
 *
 * tests/executor/train/test_stop.c - all workers end at the same boundary, whichever of them had the signal and when;
 * without a signal nobody does; fast boundaries are not all asked at. Signals amid a library's work do no damage. */
#include "executor/train/stop.h"
#include "executor/backend/operands.h"
#include "tests/check.h"
#include "tests/executor/bench.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct ghp_transport *transport;
static struct ghp_comm *world;
static int64_t tellings;
static const struct ghp_control_ops *real;

static enum ghp_status counted_tell(struct ghp_control *control, struct ghp_comm *comm,
                                    struct ghp_control_message mine,
                                    const struct ghp_control_message **messages)
{
    tellings++;
    return real->tell(control, comm, mine, messages);
}

static void take(double seconds)
{
    struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};

    nanosleep(&time, NULL);
}

/* Sends this process a signal, and waits until the thread that hears it has noted it. */
static void signal_oneself(int number)
{
    sigset_t pending;

    CHECK(kill(getpid(), number) == 0);
    do {
        take(0.001);
        CHECK(sigpending(&pending) == 0);
    } while (sigismember(&pending, number) != 0 || ghp_stop_noted() == 0);
}

/* A signal, SIGTERM twice, to the last worker at its boundary `at`, of a worker who takes `pace_s` longer than the
 * others. */
static void check_signal(int number, int64_t at, double pace_s)
{
    struct ghp_exec_context exec = {.transport = transport};
    struct ghp_stop stop = {0};
    int size = transport->control->size, rank = transport->control->rank;
    int64_t boundary = 0, all[3] = {0};
    bool ends = false;

    CHECK_STATUS(ghp_stop_begin(&stop, &exec, size), GHP_OK);
    for (; !ends && boundary < 1000000; boundary++) {
        for (int i = 0; boundary == at && rank == size - 1 && i < (number == SIGTERM ? 2 : 1); i++)
            signal_oneself(number);
        take(rank == size - 1 ? pace_s : 0);
        CHECK_STATUS(ghp_stop_check(&stop, &ends), GHP_OK);
    }
    CHECK(ends && boundary > at);
    CHECK_EQ(stop.signal, number);
    CHECK_EQ(stop.worker, size - 1);
    CHECK_STATUS(ghp_stop_check(&stop, &ends), GHP_OK);
    CHECK(ends);
    ghp_stop_end(&stop);
    CHECK_STATUS(world->ops->all_gather(world, &boundary, all, sizeof boundary), GHP_OK);
    for (int r = 0; r < size; r++)
        CHECK_EQ(all[r], boundary);
}

/* 20000 boundaries in no time take few tellings, and end nothing. */
static void check_quiet(void)
{
    struct ghp_exec_context exec = {.transport = transport};
    struct ghp_control_ops counting = *transport->control->ops;
    struct ghp_stop stop = {0};
    bool ends = false, any = false;

    real = transport->control->ops;
    counting.tell = counted_tell;
    transport->control->ops = &counting;
    CHECK_STATUS(ghp_stop_begin(&stop, &exec, transport->control->size), GHP_OK);
    for (int i = 0; i < 20000; i++) {
        CHECK_STATUS(ghp_stop_check(&stop, &ends), GHP_OK);
        any = any || ends;
    }
    CHECK(!any);
    CHECK(tellings < 100);
    if (transport->control->size > 1) CHECK(tellings > 5);
    ghp_stop_end(&stop);
    transport->control->ops = real;
    CHECK_STATUS(ghp_stop_check(NULL, &ends), GHP_OK);
    CHECK(!ends);
    CHECK_TEXT(ghp_stop_signal_name(SIGUSR1), "SIGUSR1");
}

/* Thousands of signals while a linear layer is computed: a handler's frame on the computing thread would lie wherever
 * the library has its stack pointer. */
static void check_computing(void)
{
    static const struct ghp_local linear = {.op = GHP_OP_LINEAR,
                                            .n = 4,
                                            .c = 400,
                                            .h = 1,
                                            .w = 1,
                                            .k = 120,
                                            .p = 1,
                                            .q = 1,
                                            .n_inputs = 1};
    static const struct ghp_backend_config config = {
        .element_bytes = 4, .threads = 1, .exact = true};
    static const struct itimerspec often = {{0, 20000}, {0, 20000}};
    enum { N_PADS = 1000, RUNS = 30, PAD_BYTES = 400 };
    static void *pads[N_PADS];
    const struct ghp_backend_ops *ops = &ghp_backend_onednn;
    struct ghp_exec_context exec = {.transport = transport};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct ghp_operand_set set = {0};
    struct ghp_backend *backend = NULL;
    struct ghp_kernel *kernel = NULL;
    struct ghp_stop stop = {0};
    timer_t timer;

    signal(SIGUSR1, SIG_IGN); /* the last one may come late */
    CHECK_STATUS(ops->open(&config, &backend), GHP_OK);
    CHECK_STATUS(ghp_operand_set_init(&linear, 4, GHP_OPERAND_SET_ALL, &set), GHP_OK);
    CHECK_STATUS(ops->prepare(backend, &linear, GHP_PASS_BACKWARD_DATA, &kernel), GHP_OK);
    set.args.at.scratch = ghp_operand_set_block(ops->scratch_bytes(kernel));
    CHECK_STATUS(ghp_stop_begin(&stop, &exec, transport->control->size), GHP_OK);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    for (int i = 0; i < N_PADS * RUNS; i++) {
        if (i % RUNS == 0) pads[i / RUNS] = malloc(PAD_BYTES); /* the heap gets another shape */
        CHECK_STATUS(ops->run(kernel, &set.args), GHP_OK);
    }
    timer_delete(timer);
    for (int i = 0; i < N_PADS; i++)
        free(pads[i]);
    for (int i = 0; ghp_stop_noted() == 0 && i < 1000; i++)
        take(0.01);
    CHECK_EQ(ghp_stop_noted(), SIGUSR1);
    ghp_stop_end(&stop);
    ops->release(kernel);
    free(set.args.at.scratch);
    ghp_operand_set_release(&set);
    ops->close(backend);
    signal(SIGUSR1, SIG_DFL);
}

/* The signal once more, when all have agreed to end: the process continues to its checkpoint. */
static void check_again(int number)
{
    struct ghp_exec_context exec = {.transport = transport};
    struct ghp_stop stop = {0};

    CHECK_STATUS(ghp_stop_begin(&stop, &exec, transport->control->size), GHP_OK);
    ghp_stop_agree(&stop, number, 0);
    ghp_stop_end(&stop);
    CHECK(kill(getpid(), number) == 0);
    take(0.1);
}

CHECK_TEST(stop)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1};

    if (!CHECK_STATUS(ghp_stop_listen(), GHP_OK)) return 1;
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    world = bench_workers(transport, transport->control->size);
    for (int i = 0; i < 3; i++) {
        check_signal(numbers[i], 0, 0);
        check_signal(numbers[i], 37, 0.001);
    }
    check_quiet();
    check_computing();
    check_again(SIGTERM);
    check_again(SIGUSR1);
    ghp_transport_end(transport);
    return check_end();
}
