/* tests/executor/launcher/test_restart.c - which plan follows which failure, after which pause, and when it is given
 * up; which larger one is gone back to, and when that pays. */
#include "core/base/clock.h"
#include "executor/launcher/worker_count.h"
#include "executor/launcher/restart.h"

#include "tests/check.h"

#include <math.h>
#include <unistd.h>

static const int workers[] = {4, 3, 2};

static struct ghp_restart begun(int most)
{
    return (struct ghp_restart){.workers = workers, .n = 3, .most_failures = most, .pause_s = 1.5};
}

/* The same plan once more, then smaller ones; the pause doubles; progress resets the count but keeps the plan. */
static void check_without_count(void)
{
    static const int plans[] = {0, 1, 2, 2};
    struct ghp_restart r = begun(4);

    for (int i = 0; i < 4; i++) {
        CHECK_EQ(ghp_restart_next(&r, false, -1), GHP_RESTART);
        CHECK_EQ(r.plan, plans[i]);
        CHECK_NEAR(ghp_restart_pause_s(&r), 1.5 * (1 << i), 0);
    }
    CHECK_EQ(ghp_restart_next(&r, true, -1), GHP_RESTART);
    CHECK_EQ(r.plan, 2);
    CHECK_NEAR(ghp_restart_pause_s(&r), 1.5, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(ghp_restart_next(&r, false, -1), GHP_RESTART);
    CHECK_EQ(ghp_restart_next(&r, false, -1), GHP_RESTART_TOO_OFTEN);
    CHECK_EQ(r.failures, 5);
    r = begun(0);
    CHECK_EQ(ghp_restart_next(&r, true, -1), GHP_RESTART_TOO_OFTEN);
}

/* The first plan that fits, up and down. */
static void check_with_count(void)
{
    struct ghp_restart r = begun(3);

    CHECK_EQ(ghp_restart_next(&r, true, 9), GHP_RESTART);
    CHECK_EQ(r.plan, 0);
    CHECK_EQ(ghp_restart_next(&r, true, 3), GHP_RESTART);
    CHECK_EQ(r.plan, 1);
    CHECK_EQ(ghp_restart_next(&r, true, 2), GHP_RESTART);
    CHECK_EQ(r.plan, 2);
    CHECK_EQ(ghp_restart_next(&r, true, 4), GHP_RESTART);
    CHECK_EQ(r.plan, 0);
    CHECK_EQ(ghp_restart_next(&r, true, 1), GHP_RESTART_TOO_FEW_LEFT);
}

/* Only a larger plan than the present one is taken, and only if it makes up for the restart. */
static void check_larger(void)
{
    struct ghp_restart r = begun(3);

    CHECK_EQ(ghp_restart_larger(&r, 9), -1);
    r.plan = 2;
    CHECK_EQ(ghp_restart_larger(&r, 2), -1);
    CHECK_EQ(ghp_restart_larger(&r, 3), 1);
    CHECK_EQ(ghp_restart_larger(&r, 4), 0);
    CHECK_NEAR(ghp_restart_pays_s(4, 3, 10), 40, 1e-12);
    CHECK(isinf(ghp_restart_pays_s(3, 3, 10)));
}

static volatile sig_atomic_t nobody, somebody = 1;

/* A command that never returns is ended, by its limit or by a request to stop; as is what it has started. */
static void check_endless(void)
{
    struct ghp_worker_count worker_count = {.command = "sleep 1000", .limit_s = 0.3};
    double begin_s = ghp_now_s();
    int left = 5;

    CHECK_STATUS(ghp_worker_count_ask(&worker_count, &nobody, &left), GHP_OK);
    CHECK_EQ(left, -1);
    CHECK(worker_count.question.process == 0 && ghp_now_s() - begin_s < 20);
    worker_count.limit_s = 1000;
    CHECK_STATUS(ghp_worker_count_ask(&worker_count, &somebody, &left), GHP_OK);
    CHECK_EQ(left, -1);
    worker_count.command = "echo 7; sleep 9 2>/dev/null & exit"; /* its child keeps the pipe */
    CHECK_STATUS(ghp_worker_count_ask(&worker_count, &nobody, &left), GHP_OK);
    CHECK_EQ(left, 7);
    worker_count =
        (struct ghp_worker_count){.command = "sleep 1000", .limit_s = 0.1, .every_s = 1000};
    for (int looks = 0; looks < 100 && !(worker_count.next_s > ghp_now_s()); looks++) {
        CHECK(!ghp_worker_count_poll(&worker_count, &left));
        usleep(10000);
    }
    CHECK(worker_count.question.process == 0 && worker_count.next_s > ghp_now_s());
    CHECK(ghp_now_s() - begin_s < 30);
}

/* Asked when it is time, answered without waiting; an answer that is not a number does not count. */
static void check_worker_count(void)
{
    struct ghp_worker_count worker_count = {.command = "echo 7", .every_s = 0, .limit_s = 60};
    int left = -1, looks = 0;

    CHECK_STATUS(ghp_worker_count_ask(&worker_count, &nobody, &left), GHP_OK);
    CHECK_EQ(left, 7);
    left = -1;
    while (!ghp_worker_count_poll(&worker_count, &left) && looks++ < 1000)
        usleep(10000);
    CHECK_EQ(left, 7);
    worker_count.command = "echo none";
    for (looks = 0; looks < 20; looks++) {
        CHECK(!ghp_worker_count_poll(&worker_count, &left));
        usleep(1000);
    }
    ghp_worker_count_cancel(&worker_count);
    CHECK_STATUS(ghp_worker_count_ask(&worker_count, &nobody, &left), GHP_ERR_INPUT);
    CHECK_MESSAGE("prints no number");
    worker_count = (struct ghp_worker_count){.command = "echo 7", .every_s = 1000, .limit_s = 60};
    ghp_worker_count_cancel(&worker_count);
    CHECK(!ghp_worker_count_poll(&worker_count, &left) && worker_count.question.process == 0);
    worker_count.command = NULL;
    CHECK_STATUS(ghp_worker_count_ask(&worker_count, &nobody, &left), GHP_OK);
    CHECK(left == -1 && !ghp_worker_count_poll(&worker_count, &left));
}

CHECK_TEST(restart)
{
    struct ghp_restart r = begun(1000);

    (void)argc, (void)argv;
    check_without_count();
    check_with_count();
    check_larger();
    check_worker_count();
    check_endless();
    r.failures = 900;
    CHECK_NEAR(ghp_restart_pause_s(&r), 60, 0);
    r.pause_s = 100; /* as asked for, though longer than a minute */
    CHECK_NEAR(ghp_restart_pause_s(&r), 100, 0);
    return check_end();
}
