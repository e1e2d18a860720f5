/* Waiting with back-off: how long pauses are, that they are slept, and that testing comes first. */
#include "core/base/clock.h"
#include "executor/platform/backoff.h"
#include "tests/check.h"

static void check_lengths(void)
{
    static const struct ghp_backoff grows = {.first_ns = 1000, .last_ns = 2000, .growth = 4};
    static const struct ghp_backoff stays = {.first_ns = 300, .last_ns = 300, .growth = 4};
    static const long expected[] = {1000, 1250, 1562, 1952, 2000, 2000};
    struct ghp_backoff_wait wait = ghp_backoff_begin(&grows), other = ghp_backoff_begin(&stays);

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CHECK_EQ(ghp_backoff_take_ns(&wait), expected[i]);
        CHECK_EQ(ghp_backoff_take_ns(&other), 300);
    }
}

/* Without a pause for 2 ms, then asleep. */
static void check_tests(void)
{
    static const struct ghp_backoff b = {
        .testing_s = 2e-3, .first_ns = 3000000, .last_ns = 3000000, .growth = 1};
    struct ghp_backoff_wait wait = ghp_backoff_begin(&b);
    double tested_s = 0, waited_s;
    int tests = 0;

    for (; !ghp_backoff_pause(&wait); tests++)
        tested_s = ghp_backoff_waited_s(&wait);
    waited_s = ghp_now_s() - wait.begin_s;
    CHECK(tests > 0 && waited_s >= 5e-3); /* 2 ms of tests and a pause of 3 */
    CHECK(tested_s < waited_s - 3e-3);
    wait.begin_s = ghp_now_s();
    CHECK(!ghp_backoff_tests(&wait)); /* a new limit does not start a new wait */
    CHECK(ghp_backoff_pause(&wait));
}

static void check_no_tests(void)
{
    static const struct ghp_backoff b = {.first_ns = 1000, .last_ns = 1000, .growth = 1};
    struct ghp_backoff_wait wait = ghp_backoff_begin(&b);

    CHECK(!ghp_backoff_tests(&wait));
    CHECK(ghp_backoff_pause(&wait));
}

CHECK_TEST(backoff)
{
    (void)argc;
    (void)argv;
    check_lengths();
    check_tests();
    check_no_tests();
    return check_end();
}
