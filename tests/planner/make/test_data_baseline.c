/* ghp-test: timeout=120
 *
 * tests/planner/make/test_data_baseline.c - the data parallelism that plans are compared with is the best that there
 * is: with layers recomputed if the memory asks for it, and with a sharded update if that is faster. It is in the plan
 * whole, so ghp-run can turn to it. */
#include "planner/make/sync_choice.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

static struct ghp_plan_request request_of(const char *model_path, const struct ghp_profile *profile,
                                          int workers, int64_t batch)
{
    return (struct ghp_plan_request){.model_path = model_path,
                                     .profile_path = "analytic",
                                     .profile = profile,
                                     .problem = {workers, batch},
                                     .method.bucket_bytes = GHP_BUCKET_AUTO,
                                     .time_limit_s = 8,
                                     .simplify = true,
                                     .decision_only = true};
}

/* A plan made from the baseline is what was predicted of it, read from its file too. */
static void check_baseline_holds(const struct ghp_plan *plan)
{
    char path[] = "/tmp/ghp-baseline-XXXXXX";
    struct ghp_prediction found;
    struct ghp_lowering lowering;
    struct ghp_plan loaded;
    int fd = mkstemp(path);

    if (!CHECK(fd >= 0)) return;
    close(fd);
    CHECK_STATUS(ghp_plan_save(path, plan), GHP_OK);
    if (CHECK_STATUS(ghp_plan_load(path, &loaded), GHP_OK)) {
        CHECK_STATUS(ghp_plan_verify(&loaded, &loaded.profile), GHP_OK);
        CHECK_STATUS(ghp_plan_make_data(&loaded), GHP_OK);
        CHECK(ghp_plan_is_data(&loaded));
        lowering = ghp_plan_lowering(&loaded, &loaded.profile);
        CHECK_STATUS(ghp_plan_predict(&lowering, loaded.splits, &loaded.profile, &found), GHP_OK);
        CHECK_NEAR(found.step_s, loaded.predicted.step_s, 1e-9 * found.step_s);
        CHECK_EQ(found.peak_bytes, loaded.predicted.peak_bytes);
        ghp_plan_release(&loaded);
    }
    unlink(path);
}

/* Neither the whole network nor data parallelism of it fits without recomputing. */
static void test_recomputed(void)
{
    struct ghp_profile profile;
    struct ghp_plan_request request;
    struct ghp_plan chosen, data;

    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    request = request_of("gpt2-124m@256", &profile, 1, 8);
    request.memory_bytes = (int64_t)2500 << 20;
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &chosen), GHP_OK)) {
        CHECK(chosen.recompute != NULL);
        CHECK(chosen.baselines[0].feasible);
        check_baseline_holds(&chosen);
        request.strategy = GHP_STRATEGY_DATA;
        if (CHECK_STATUS(ghp_plan_make_synced(&request, &data), GHP_OK)) {
            CHECK(data.predicted.peak_bytes <= request.memory_bytes);
            CHECK_EQ(data.certificate.trial, GHP_TRIAL_RECOMPUTE);
            CHECK_NEAR(data.predicted.step_s, chosen.predicted.step_s,
                       0.01 * data.predicted.step_s);
            check_baseline_holds(&data);
            ghp_plan_release(&data);
        }
        ghp_plan_release(&chosen);
    }
    request.memory_bytes = (int64_t)1 << 30;
    request.strategy = GHP_STRATEGY_DATA;
    CHECK_STATUS(ghp_plan_make_synced(&request, &data), GHP_ERR_INFEASIBLE);
    CHECK_MESSAGE("memory binds");
    ghp_profile_release(&profile);
}

/* Micro-batches that are given leave layers to recompute, of splits that are given too. */
static void test_micro_batches(const char *force)
{
    struct ghp_profile profile;
    struct ghp_plan_request request;
    struct ghp_plan plan;

    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    request = request_of("gpt2-124m@256", &profile, 1, 32);
    request.micro_batches = 4;
    request.force = force;
    request.memory_bytes = (int64_t)2600 << 20;
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_OK)) {
        CHECK(plan.recompute != NULL);
        CHECK_EQ(plan.staging.micro_batches, 4);
        CHECK_EQ(plan.certificate.trial, GHP_TRIAL_RECOMPUTE);
        CHECK(plan.predicted.peak_bytes <= request.memory_bytes);
        CHECK_STATUS(ghp_plan_verify(&plan, &profile), GHP_OK);
        ghp_plan_release(&plan);
    }
    request.recompute = GHP_RECOMPUTE_MODE_NEVER;
    CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_ERR_INFEASIBLE);
    ghp_profile_release(&profile);
}

/* Gathers of weights hide behind the forward pass, which sums of gradients cannot: that is the data parallelism to
 * beat, whatever the plan's own synchroniser. */
static void test_sharded(void)
{
    struct ghp_profile profile;
    struct ghp_plan_request request;
    struct ghp_plan chosen, data;
    double step_s = 0;

    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    request = request_of(GHP_SOURCE_DIR "/models/vgg16.json", &profile, 4, 128);
    request.strategy = GHP_STRATEGY_DATA;
    request.method.sync = (struct ghp_sync){.ops = &ghp_sync_sharded};
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &data), GHP_OK)) {
        step_s = data.predicted.step_s;
        ghp_plan_release(&data);
    }
    request.strategy = GHP_STRATEGY_AUTO;
    request.method.sync = (struct ghp_sync){0};
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &chosen), GHP_OK)) {
        CHECK(chosen.method.sync.ops == NULL);
        CHECK(chosen.baselines[0].sync.ops == &ghp_sync_sharded);
        CHECK_NEAR(chosen.baselines[0].predicted.step_s, step_s, 1e-9 * step_s);
        CHECK(strstr(chosen.certificate.margin, "665.") != NULL);
        CHECK(strstr(chosen.certificate.margin, "sharded update") != NULL);
        check_baseline_holds(&chosen);
        ghp_plan_release(&chosen);
    }
    request.method.sync = (struct ghp_sync){
        .ops = &ghp_sync_allreduce}; /* as asked: so is what it is compared with */
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &chosen), GHP_OK)) {
        CHECK(chosen.baselines[0].sync.ops == NULL);
        CHECK(chosen.baselines[0].predicted.step_s > 1.2 * step_s);
        ghp_plan_release(&chosen);
    }
    ghp_profile_release(&profile);
}

CHECK_TEST(data_baseline)
{
    test_sharded();
    if (check_full()) {
        test_recomputed();
        test_micro_batches(NULL);
        test_micro_batches("*=data");
    }
    return check_end();
}
