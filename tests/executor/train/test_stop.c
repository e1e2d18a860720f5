/* ghp-test: np=1,3 timeout=60
 *
 * tests/executor/train/test_stop.c - all workers end at the same boundary, whichever of them had the signal and when;
 * without a signal nobody does; fast boundaries are not all asked at. */
#include "executor/train/stop.h"
#include "tests/check.h"
#include "tests/executor/bench.h"

#include <signal.h>
#include <time.h>

static struct ghp_transport *transport;
static struct ghp_comm *world;
static int64_t tellings;
static const struct ghp_control_ops *real;

static enum ghp_status counted_tell(struct ghp_control *control, struct ghp_comm *comm,
                                    struct ghp_word mine, const struct ghp_word **words)
{
    tellings++;
    return real->tell(control, comm, mine, words);
}

static void take(double seconds)
{
    struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};

    nanosleep(&time, NULL);
}

/* A signal to the last worker at its boundary `at`, of a worker who takes `pace_s` longer than the others. */
static void check_signal(int number, int64_t at, double pace_s)
{
    struct ghp_exec_context exec = {.transport = transport};
    struct ghp_stop stop = {0};
    int size = transport->control->size, rank = transport->control->rank;
    int64_t boundary = 0, all[3] = {0};
    bool ends = false;

    CHECK_STATUS(ghp_stop_begin(&stop, &exec, size), GHP_OK);
    for (; !ends && boundary < 1000000; boundary++) {
        if (boundary == at && rank == size - 1) CHECK(raise(number) == 0);
        take(rank == size - 1 ? pace_s : 0);
        CHECK_STATUS(ghp_stop_check(&stop, &ends), GHP_OK);
    }
    CHECK(ends && boundary > at);
    CHECK_EQ(stop.signal, number);
    CHECK_EQ(stop.worker, size - 1);
    CHECK_STATUS(ghp_stop_check(&stop, &ends), GHP_OK);
    CHECK(ends);
    ghp_stop_end(&stop);
    CHECK_STATUS(world->ops->all_gather(world, &boundary, all, sizeof(boundary)), GHP_OK);
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

CHECK_TEST(stop)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    world = bench_workers(transport, transport->control->size);
    for (int i = 0; i < 3; i++) {
        check_signal(numbers[i], 0, 0);
        check_signal(numbers[i], 37, 0.001);
    }
    check_quiet();
    ghp_transport_end(transport);
    return check_end();
}
