/* tests/executor/launcher/test_restart.c - which plan follows which failure, after which pause, and when it is given
 * up. */
#include "executor/launcher/restart.h"

#include "tests/check.h"

static const int workers[] = {4, 3, 2};

static struct ghp_restart begun(int most)
{
    return (struct ghp_restart){.workers = workers, .n = 3, .most_failures = most, .pause_s = 1.5};
}

/* The same plan once more, then smaller ones; the pause doubles; progress begins anew but keeps the plan. */
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

CHECK_TEST(restart)
{
    struct ghp_restart r = begun(1000);

    (void)argc, (void)argv;
    check_without_count();
    check_with_count();
    r.failures = 900;
    CHECK_NEAR(ghp_restart_pause_s(&r), 60, 0);
    r.pause_s = 100; /* as asked for, though longer than a minute */
    CHECK_NEAR(ghp_restart_pause_s(&r), 100, 0);
    return check_end();
}
