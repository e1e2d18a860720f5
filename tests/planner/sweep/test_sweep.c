/* tests/planner/sweep/test_sweep.c - ranges of sweeps, and the points of one against plans made one by one. */
#include "planner/sweep/sweep.h"

#include "tests/check.h"
#include "tests/planner/random_case.h"

static void check_range(const char *text, int n, int second_last, int last)
{
    struct ghp_sweep_range range;

    if (!CHECK_STATUS(ghp_sweep_parse(text, &range), GHP_OK)) return;
    CHECK_EQ(range.n, n);
    CHECK_EQ(range.workers[n - 1], last);
    if (n > 1) CHECK_EQ(range.workers[n - 2], second_last);
}

static void check_refused(const char *text, const char *says)
{
    struct ghp_sweep_range range;

    if (!CHECK_STATUS(ghp_sweep_parse(text, &range), GHP_ERR_USAGE)) fprintf(stderr, "%s\n", text);
    CHECK_MESSAGE(says);
}

static void test_ranges(void)
{
    check_range("workers=7", 1, 0, 7);
    check_range("workers=1,3,64", 3, 3, 64);
    check_range("workers=1,2,4,...,4096", 13, 2048, 4096);
    check_range("workers=2,4,6,...,12", 6, 10, 12);
    check_range("workers=16,24,36,...,81", 5, 54, 81);
    check_range("workers=1,2,4,...,16,20", 6, 16, 20);
    check_refused("nodes=1,2", "nothing but workers");
    check_refused("workers=", "no number");
    check_refused("workers=1,2,x", "not a number from 1");
    check_refused("workers=1,0", "not a number from 1");
    check_refused("workers=1,2,2", "not larger");
    check_refused("workers=1,2,...,8", "three numbers");
    check_refused("workers=1,2,5,...,8", "neither one ratio");
    check_refused("workers=1,2,4,...,12", "does not reach");
    check_refused("workers=4,6,9,...,81", "not whole");
    check_refused("workers=1,2,4,...", "ends it");
    check_refused("workers=1,2,4,...,...,8", "follows");
    check_refused("workers=1,2,3,...,99", "64 points");
}

static enum ghp_status open_analytic(struct ghp_plan_request *request, struct ghp_profile *profile,
                                     struct ghp_overrides *overrides)
{
    (void)request;
    (void)overrides;
    return analytic_profile(6e12, 1.25e9, 20e-6, profile);
}

/* Each point is the plan that the same request make alone; a count that does not divide the batch is a reason. */
static void test_points(void)
{
    struct ghp_plan_request request = {.model_path = GHP_SOURCE_DIR "/models/alexnet.json",
                                       .profile_path = "analytic",
                                       .time_limit_s = 30};
    struct ghp_sweep_range range = {4, {1, 3, 8, 64}};
    struct ghp_sweep_job job = {
        .request = &request, .range = &range, .batch = 256, .open = open_analytic};
    struct ghp_profile profile;
    struct ghp_sweep sweep;
    struct ghp_plan plan;

    if (!CHECK_STATUS(ghp_sweep_run(&job, &sweep), GHP_OK)) return;
    CHECK_EQ(sweep.n, 4);
    CHECK_NEAR(sweep.point[0].plan[0].speedup, 1, 1e-12);
    CHECK(!sweep.point[0].plan[2].feasible && sweep.point[0].plan[1].feasible);
    CHECK(!sweep.point[1].plan[0].feasible &&
          strstr(sweep.point[1].plan[0].reason, "multiple of 3") != NULL);
    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    request.profile = &profile;
    request.problem = (struct ghp_problem){64, 256};
    if (CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) {
        const struct ghp_sweep_point *point = &sweep.point[3];

        CHECK_NEAR(point->plan[0].predicted.step_s, plan.predicted.step_s, 0);
        for (int b = 0; b < 3; b++)
            CHECK_NEAR(point->plan[b + 1].predicted.step_s, plan.baselines[b].predicted.step_s, 0);
        CHECK_NEAR(point->plan[0].speedup,
                   sweep.point[0].plan[0].predicted.step_s / plan.predicted.step_s,
                   1e-12 * point->plan[0].speedup);
        CHECK_NEAR(point->plan[0].efficiency * 64, point->plan[0].speedup, 1e-12 * 64);
        CHECK_EQ(point->groups, plan.groups);
        CHECK(strstr(point->splits, "fc") != NULL); /* most weights: split first */
        ghp_plan_release(&plan);
    }
    ghp_sweep_release(&sweep);

    /* weak: the batch grows with the workers, one worker has its own share */
    job.batch = 16;
    job.weak = true;
    if (CHECK_STATUS(ghp_sweep_run(&job, &sweep), GHP_OK)) {
        CHECK_EQ(sweep.point[3].batch, 1024);
        CHECK(sweep.point[1].plan[0].feasible);
        CHECK_NEAR(sweep.point[0].plan[1].efficiency, 1, 1e-12);
        CHECK(sweep.point[3].plan[0].efficiency <= 1);
        ghp_sweep_release(&sweep);
    }

    /* memory that nothing fits: no point is feasible, and it says which memory would do */
    request.memory_bytes = 1;
    request.time_limit_s = 2;
    range.n = 1;
    CHECK_STATUS(ghp_sweep_run(&job, &sweep), GHP_ERR_INFEASIBLE);
    CHECK_MESSAGE("memory binds");
    ghp_profile_release(&profile);
}

CHECK_TEST(sweep)
{
    test_ranges();
    test_points();
    return check_end();
}
