/* tests/profiler/measure/test_speed.c - what seconds of one job on all ranks say of their speeds. */
#include "profiler/measure/speed.h"
#include "tests/check.h"

static struct ghp_speeds speeds_of(const double *seconds, int n)
{
    struct ghp_speeds speeds = {0};

    CHECK_STATUS(ghp_speeds_from(seconds, n, &speeds), GHP_OK);
    return speeds;
}

CHECK_TEST(speed)
{
    static const double alike[] = {1.0, 1.2, 1.1, 1.0, 1.05, 1.2};
    static const double once[] = {1.0, 2.0, 1.1, 1.0, 1.0, 2.0}; /* one round was not disturbed */
    static const double slow[] = {1.02, 2.0, 0.98, 1.0, 2.1, 1.01, 1.0, 1.9, 1.03};
    struct ghp_speeds speeds = speeds_of(alike, 2);

    CHECK(!ghp_speeds_unlike(alike, 2)); /* measured no further: any rounds after it say the same */
    CHECK(ghp_speeds_unlike(once, 2));
    CHECK(!ghp_speeds_unlike(once + 2, 2));
    for (int round = 0; round < GHP_SPEED_ROUNDS; round++)
        CHECK(ghp_speeds_unlike(slow + 3 * round, 3));
    CHECK_EQ(speeds.n, 0);
    speeds = speeds_of(once, 2);
    CHECK_EQ(speeds.n, 0);
    speeds = speeds_of(slow, 3);
    CHECK_EQ(speeds.n, 3);
    CHECK_NEAR(speeds.of[0], 2, 1e-12);
    CHECK_NEAR(speeds.of[1], 1, 0);
    CHECK_NEAR(speeds.of[2], 2, 1e-12);
    ghp_speeds_release(&speeds);
    return check_end();
}
