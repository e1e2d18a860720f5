/* ghp-test: timeout=240
 * tests/planner/make/test_second_best.c - a plan's second-best choices are those of the plan as it is in the end,
 * even if one of them was taken in its place: each costs what it says, and none is faster than the plan. */
#include "planner/make/make.h"
#include "tests/check.h"
#include "tests/planner/inception.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

static char model_path[64];

static void check_network(const struct ghp_profile *profile, int blocks, bool norms, int workers)
{
    struct ghp_plan_request request = {
        .model_path = model_path,
        .profile_path = "analytic",
        .profile = profile,
        .problem = {workers, 256},
        .method.bucket_bytes = GHP_BUCKET_AUTO,
        .time_limit_s = 200, /* on a busy machine too, second-best choices are what is left of it */
        .gap = 0.3,          /* what is there before them is soon found */
        .simplify = true};
    struct ghp_plan plan;

    if (!CHECK(inception_write(model_path, blocks, norms))) return;
    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    CHECK(plan.n_alternatives > 0);
    if (!CHECK_STATUS(ghp_plan_verify(&plan, profile), GHP_OK))
        fprintf(stderr, "%d blocks%s, %d workers\n", blocks, norms ? " with batch norms" : "",
                workers);
    for (int i = 0; i < plan.n_alternatives; i++)
        CHECK(plan.alternatives[i].step_s >= plan.predicted.step_s * (1 - 1e-9));
    ghp_plan_release(&plan);
}

CHECK_TEST(second_best)
{
    struct ghp_profile profile;
    int fd;

    snprintf(model_path, sizeof model_path, "/tmp/ghp-runner-up-XXXXXX");
    fd = mkstemp(model_path);
    if (!CHECK(fd >= 0)) return check_end();
    close(fd);
    if (!CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK)) return check_end();
    check_network(&profile, 2, false, 16);
    if (check_full()) {
        check_network(&profile, 2, true, 16);
        check_network(&profile, 4, false, 64);
    }
    ghp_profile_release(&profile);
    unlink(model_path);
    return check_end();
}
