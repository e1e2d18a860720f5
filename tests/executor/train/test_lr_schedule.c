/* Learning rates against the formulas of train/lr_schedule.h. */
#include "executor/train/lr_schedule.h"
#include "tests/check.h"

CHECK_TEST(lr_schedule)
{
    struct ghp_lr_schedule s = {
        .kind = GHP_LR_SCHEDULE_CONSTANT, .base = 0.4, .steps = 100, .warmup_steps = 0};

    CHECK(ghp_lr_schedule_rate(s, 0) == 0.4 && ghp_lr_schedule_rate(s, 99) == 0.4);
    s.warmup_steps = 4;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 0), 0.1, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 3), 0.4, 1e-15);
    s.kind = GHP_LR_SCHEDULE_STEP;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 49), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 50), 0.04, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 75), 0.004, 1e-15);
    s.kind = GHP_LR_SCHEDULE_COSINE;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 4), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 52), 0.2, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 100), 0, 1e-15);
    for (int t = 5; t < 100; t++)
        CHECK(ghp_lr_schedule_rate(s, t) < ghp_lr_schedule_rate(s, t - 1));
    CHECK_TEXT(ghp_lr_schedule_names[GHP_LR_SCHEDULE_COSINE], "cosine");
    return check_end();
}
