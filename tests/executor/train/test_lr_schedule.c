/* Learning rates against the formulas of train/lr_schedule.h. */
#include "executor/train/lr_schedule.h"
#include "tests/check.h"

static void refuse(struct ghp_lr_schedule s, const char *text)
{
    CHECK_STATUS(ghp_lr_schedule_check(s), GHP_ERR_USAGE);
    CHECK(strstr(ghp_status_message(), text) != NULL);
}

/* good: wsd with a least rate */
static void check_refusals(struct ghp_lr_schedule good)
{
    struct ghp_lr_schedule s = good;

    CHECK_STATUS(ghp_lr_schedule_check(s), GHP_OK);
    s.decay_steps = 97;
    refuse(s, "use at most 96");
    s.decay_steps = 0;
    refuse(s, "give --decay-steps");
    s = good;
    s.kind = GHP_LR_SCHEDULE_LINEAR;
    refuse(s, "for --lr-schedule wsd alone");
    s.decay_steps = 0;
    CHECK_STATUS(ghp_lr_schedule_check(s), GHP_OK);
    s.kind = GHP_LR_SCHEDULE_STEP;
    refuse(s, "--lr-min is for schedules that decay");
    s = good;
    s.least = 0.5;
    refuse(s, "above the learning rate");
    s.warmup_steps = 101;
    refuse(s, "longer than the training");
}

static void check_others(void)
{
    struct ghp_lr_schedule s = {.kind = GHP_LR_SCHEDULE_QUADRATIC,
                                .base = 0.4,
                                .steps = 100,
                                .warmup_steps = 20,
                                .epoch_steps = 10};

    CHECK_NEAR(ghp_lr_schedule_rate(s, 20), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 60), 0.1, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 100), 0, 1e-15);
    s.kind = GHP_LR_SCHEDULE_EXPONENTIAL;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 60), 0.04, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 100), 0.004, 1e-15);
    s.least = 0.1;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 60), 0.2, 1e-15);
    s.kind = GHP_LR_SCHEDULE_INVERSE;
    refuse(s, "--lr-min is for schedules that decay");
    CHECK_NEAR(ghp_lr_schedule_rate(s, 20), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 23), 0.1, 1e-15);
    s.kind = GHP_LR_SCHEDULE_INVERSE_EPOCH;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 29), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 30), 0.2, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 59), 0.1, 1e-15);
}

CHECK_TEST(lr_schedule)
{
    struct ghp_lr_schedule s = {
        .kind = GHP_LR_SCHEDULE_CONSTANT, .base = 0.4, .steps = 100, .warmup_steps = 0};

    CHECK(ghp_lr_schedule_rate(s, 0) == 0.4 && ghp_lr_schedule_rate(s, 99) == 0.4);
    s.warmup_steps = 4;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 0), 0.1, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 3), 0.4, 1e-15);
    s.kind = GHP_LR_SCHEDULE_STEP;
    CHECK_STATUS(ghp_lr_schedule_read_at(NULL, &s), GHP_OK);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 49), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 50), 0.04, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 75), 0.004, 1e-15);
    CHECK_STATUS(ghp_lr_schedule_read_at("0.6,0.85", &s), GHP_OK);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 59), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 60), 0.04, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 85), 0.004, 1e-15);
    CHECK_STATUS(ghp_lr_schedule_read_at("0.6", &s), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_lr_schedule_read_at("0.6,0.5", &s), GHP_ERR_USAGE);
    s.kind = GHP_LR_SCHEDULE_COSINE;
    CHECK_STATUS(ghp_lr_schedule_read_at("0.6,0.7", &s), GHP_ERR_USAGE);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 4), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 52), 0.2, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 100), 0, 1e-15);
    for (int t = 5; t < 100; t++)
        CHECK(ghp_lr_schedule_rate(s, t) < ghp_lr_schedule_rate(s, t - 1));
    s.least = 0.1;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 4), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 52), 0.25, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 100), 0.1, 1e-15);
    s.kind = GHP_LR_SCHEDULE_LINEAR;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 0), 0.1, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 4), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 28), 0.325, 1e-15); /* a quarter of 96 steps */
    CHECK_NEAR(ghp_lr_schedule_rate(s, 100), 0.1, 1e-15);
    s.kind = GHP_LR_SCHEDULE_WSD;
    s.decay_steps = 20;
    CHECK_NEAR(ghp_lr_schedule_rate(s, 1), 0.2, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 4), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 80), 0.4, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 85), 0.325, 1e-15);
    CHECK_NEAR(ghp_lr_schedule_rate(s, 100), 0.1, 1e-15);
    check_refusals(s);
    check_others();
    CHECK_TEXT(ghp_lr_schedule_names[GHP_LR_SCHEDULE_COSINE], "cosine");
    CHECK_TEXT(ghp_lr_schedule_names[GHP_LR_SCHEDULE_WSD], "wsd");
    return check_end();
}
