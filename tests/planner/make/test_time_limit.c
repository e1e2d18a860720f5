/* ghp-test: timeout=120
 * tests/planner/make/test_time_limit.c - the time limit is for all that makes a plan: what is left after it is one step
 * of each search, and the plan says what was not done. Seconds are the processor's, so that the test does not fail on a
 * busy machine. */
#include "planner/make/make.h"
#include "planner/make/sync_choice.h"
#include "tests/check.h"
#include "tests/planner/inception.h"
#include "tests/planner/random_case.h"

#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
static const double slack_s = 60;
#else
/* a round of the first bound, the trials of buckets, a simulation: each is done to its end */
static const double slack_s = 2;
#endif

static char model_path[64];

static void check_limit(const struct ghp_profile *profile, double limit_s)
{
    struct ghp_plan_request request = {.model_path = model_path,
                                       .profile_path = "analytic",
                                       .profile = profile,
                                       .problem = {64, 256},
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .time_limit_s = limit_s,
                                       .break_even = true,
                                       .simplify = true};
    clock_t began = clock();
    struct ghp_plan plan;
    double spent_s;

    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    spent_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    printf("limit %.1f s: %.2f s\n", limit_s, spent_s);
    if (!CHECK(spent_s <= limit_s + slack_s))
        fprintf(stderr, "%.2f s, limit %.1f s\n", spent_s, limit_s);
    if (CHECK(plan.certificate.unfinished != NULL))
        CHECK(strstr(plan.certificate.unfinished, "time limit came before the second best") !=
              NULL);
    CHECK_TEXT(plan.break_even_search, "none: the time limit came first");
    CHECK_STATUS(ghp_plan_verify(&plan, profile), GHP_OK);
    ghp_plan_release(&plan);
}

/* Many micro-batches of a large network, whose program has a hundred thousand instructions; by fill-drain all their
 * activations live at once. */
static void check_micro_batches(const struct ghp_profile *profile, double limit_s,
                                const char *stages, enum ghp_pipeline pipeline)
{
    struct ghp_plan_request request = {.model_path = "gpt2-124m",
                                       .profile_path = "analytic",
                                       .profile = profile,
                                       .problem = {8, 512},
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .micro_batches = 64,
                                       .stages = stages,
                                       .pipeline = pipeline,
                                       .time_limit_s = limit_s,
                                       .simplify = true};
    clock_t began = clock();
    struct ghp_plan plan;
    double spent_s;

    if (!CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_OK)) return;
    spent_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    printf("64 micro-batches, limit %.1f s: %.2f s\n", limit_s, spent_s);
    /* a program of all micro-batches is lowered and played for each of the last trials */
    CHECK(spent_s <= limit_s + (stages != NULL ? 3 * slack_s : slack_s));
    CHECK(plan.certificate.seconds >= 0.9 * spent_s); /* of every attempt; a processor's is less */
    CHECK_EQ(plan.staging.micro_batches, 64);
    CHECK_STATUS(ghp_plan_verify(&plan, profile), GHP_OK);
    ghp_plan_release(&plan);
}

CHECK_TEST(time_limit)
{
    struct ghp_profile profile;
    int fd;

    snprintf(model_path, sizeof model_path, "/tmp/ghp-time-limit-XXXXXX");
    fd = mkstemp(model_path);
    if (!CHECK(fd >= 0)) return check_end();
    close(fd);
    if (!CHECK(inception_write(model_path, INCEPTION_BLOCKS, false))) return check_end();
    if (!CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK)) return check_end();
    check_limit(&profile, 1);
    check_micro_batches(&profile, 1, NULL, GHP_PIPELINE_1F1B);
    if (check_full()) {
        check_limit(&profile, 0.1);
        check_micro_batches(&profile, 1, "4,h.6.ln_1:4", GHP_PIPELINE_FILL_DRAIN);
    }
    ghp_profile_release(&profile);
    unlink(model_path);
    return check_end();
}
