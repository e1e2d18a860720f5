/* tests/executor/launcher/test_replan.c - what is slow, as changes add up; its options for ghp-plan; when another plan
 * makes up for a restart. */
#include "executor/launcher/replan.h"

#include "tests/check.h"

static struct ghp_beat_change change(enum ghp_beat_cause cause, int worker, double times)
{
    return (struct ghp_beat_change){1, cause, worker, times, 0.3, 0.2};
}

static void check_sum(void)
{
    struct ghp_beat_change slow = change(GHP_BEAT_SLOW_WORKER, 2, 1.5),
                           links = change(GHP_BEAT_SLOW_LINKS, 0, 4),
                           another = change(GHP_BEAT_SLOW_WORKER, 3, 2),
                           other = change(GHP_BEAT_OTHER, 0, 0);
    struct ghp_slowdown s = {0, 1, 1};
    char text[GHP_REPLAN_TEXT_BYTES], sets[GHP_SLOWDOWN_SETS][GHP_SLOWDOWN_SET_BYTES];

    CHECK_TEXT(ghp_slowdown_say(&s, text), "");
    CHECK_EQ(ghp_slowdown_sets(&s, sets), 0);
    s = ghp_slowdown_after(s, &slow);
    CHECK_EQ(ghp_slowdown_sets(&s, sets), 2);
    CHECK_TEXT(sets[0], "slow.worker=2");
    CHECK_TEXT(sets[1], "slow.factor=1.5");
    s = ghp_slowdown_after(s, &slow); /* slower still */
    CHECK_NEAR(s.factor, 2.25, 0);
    s = ghp_slowdown_after(s, &links);
    s = ghp_slowdown_after(s, &other);
    CHECK_EQ(ghp_slowdown_sets(&s, sets), 3);
    CHECK_TEXT(sets[2], "slow.links=4");
    s = ghp_slowdown_after(s, &another);
    CHECK_TEXT(ghp_slowdown_say(&s, text),
               "worker 3 computes 2 times as long, exchanges take 4 times as long");
    other.now_s = 0.1; /* shorter than before */
    s = ghp_slowdown_after(s, &other);
    CHECK_EQ(ghp_slowdown_sets(&s, sets), 0);
}

static void check_gain(void)
{
    CHECK(ghp_replan_pays(0.3, 0.22, 101, 8));
    CHECK(!ghp_replan_pays(0.3, 0.22, 99, 8));
    CHECK(!ghp_replan_pays(0.3, 0.3, 1000000, 8));
    CHECK(!ghp_replan_pays(0.3, 0.292, 1000000, 8)); /* within what predictions are off */
}

CHECK_TEST(replan)
{
    check_sum();
    check_gain();
    return check_end();
}
