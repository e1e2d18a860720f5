/* What is kept of a training's losses: all while it is short, evenly spaced ones of any length, never more than the
 * limit. */
#include "executor/train/losses.h"
#include "tests/check.h"

static struct ghp_losses losses;

/* The loss of step i is i. */
static void check_kept(void)
{
    int64_t wrong = 0;

    CHECK(losses.n <= GHP_LOSSES_KEPT);
    CHECK(losses.every == 1 || losses.n >= GHP_LOSSES_KEPT / 2);
    CHECK_EQ(losses.n, (losses.steps + losses.every - 1) / losses.every); /* to the end */
    for (int i = 0; i < losses.n; i++)
        wrong += losses.kept[i] != (double)(i * losses.every);
    CHECK_EQ(wrong, 0);
    CHECK(losses.last == (double)(losses.steps - 1));
}

CHECK_TEST(losses)
{
    int64_t checked[] = {1,
                         2,
                         GHP_LOSSES_KEPT - 1,
                         GHP_LOSSES_KEPT,
                         GHP_LOSSES_KEPT + 1,
                         2 * GHP_LOSSES_KEPT,
                         2 * GHP_LOSSES_KEPT + 1,
                         343000,
                         1000003};
    int at = 0, n = sizeof checked / sizeof checked[0];

    for (int64_t i = 0; at < n; i++) {
        ghp_losses_add(&losses, (double)i);
        if (losses.steps != checked[at]) continue;
        check_kept();
        at++;
    }
    CHECK_EQ(losses.every, 512); /* 1,000,003 / 2,048, rounded up to a power of 2 */
    return check_end();
}
