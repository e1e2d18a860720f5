/* tests/planner/make/test_sync_choice.c - a sharded update is taken where no plan with all-reduce fits the memory,
 * says so, and holds what it says; where the memory does not bind it is taken only if it is surely faster. Its momentum
 * is 1/N of the gradients, to the byte. The file keeps it, and a file of an unknown synchroniser is refused. */
#include "core/base/file.h"
#include "planner/make/sync_choice.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

static const char model_path[] = GHP_SOURCE_DIR "/models/vgg-a-32.json";

static const struct ghp_sync allreduce = {.ops = &ghp_sync_allreduce},
                             sharded_update = {.ops = &ghp_sync_sharded};

static struct ghp_plan_request request_of(const struct ghp_profile *profile, struct ghp_sync sync)
{
    return (struct ghp_plan_request){.model_path = model_path,
                                     .profile_path = "analytic",
                                     .profile = profile,
                                     .problem = {4, 64},
                                     .force = "*=data",
                                     .method.bucket_bytes = 0,
                                     .method.sync = sync,
                                     .recompute = GHP_RECOMPUTE_MODE_NEVER,
                                     .time_limit_s = 20,
                                     .simplify = true,
                                     .decision_only = true};
}

/* Checks the shards of all buckets, and of a worker's momentum. */
static void check_momentum(const struct ghp_plan *plan)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, &plan->profile);
    struct ghp_program program;
    int64_t momentum = 0, gradients = 0, shards = 0;

    if (!CHECK_STATUS(ghp_lower(&lowering, plan->splits, 2, &program), GHP_OK)) return;
    for (int i = 0; i < program.n_buffers; i++)
        if (program.buffers[i].buffer_kind == GHP_BUFFER_MOMENT)
            momentum += program.buffers[i].bytes;
    for (int b = 0; b < program.n_buckets; b++) {
        gradients += program.buckets[b].bytes;
        shards += program.buckets[b].shard_bytes;
    }
    CHECK(program.n_buckets > 1);
    CHECK_EQ(momentum, shards);
    CHECK_EQ(4 * momentum, gradients);
    CHECK_EQ(program.peak_bytes, plan->predicted.peak_bytes);
    ghp_program_release(&program);
}

static void check_file(const struct ghp_plan *plan)
{
    char path[] = "/tmp/ghp-sync-XXXXXX", *text, *at;
    size_t size;
    struct ghp_plan loaded;
    FILE *file;
    int fd = mkstemp(path);

    if (!CHECK(fd >= 0)) return;
    close(fd);
    CHECK_STATUS(ghp_plan_save(path, plan), GHP_OK);
    if (CHECK_STATUS(ghp_plan_load(path, &loaded), GHP_OK)) {
        CHECK(ghp_sync_same(loaded.method.sync, plan->method.sync));
        CHECK(strcmp(loaded.certificate.sync, plan->certificate.sync) == 0);
        CHECK_STATUS(ghp_plan_verify(&loaded, &loaded.profile), GHP_OK);
        loaded.method.sync = allreduce; /* another step, other memory */
        CHECK_STATUS(ghp_plan_verify(&loaded, &loaded.profile), GHP_ERR_INPUT);
        ghp_plan_release(&loaded);
    }
    CHECK_STATUS(ghp_file_read(path, &text, &size), GHP_OK);
    at = strstr(text, "\"sharded\"");
    if (CHECK(at != NULL)) {
        memcpy(at, "\"shorted\"", 9);
        file = fopen(path, "w");
        CHECK(file != NULL && fwrite(text, 1, size, file) == size && fclose(file) == 0);
        CHECK_STATUS(ghp_plan_load(path, &loaded), GHP_ERR_FORMAT);
        CHECK_MESSAGE("sync");
    }
    free(text);
    unlink(path);
}

/* Only the sharded update fits between the two plans' memory. */
static void check_needed(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = request_of(profile, allreduce);
    struct ghp_plan all, sharded, plan;

    CHECK_STATUS(ghp_plan_make_synced(&request, &all), GHP_OK);
    request.method.sync = sharded_update;
    CHECK_STATUS(ghp_plan_make_synced(&request, &sharded), GHP_OK);
    CHECK(sharded.predicted.peak_bytes < all.predicted.peak_bytes);
    check_momentum(&sharded);
    request.memory_bytes = sharded.predicted.peak_bytes;
    request.method.sync = allreduce;
    CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_ERR_INFEASIBLE);
    request.method.sync = (struct ghp_sync){0};
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_OK)) {
        CHECK(plan.method.sync.ops == &ghp_sync_sharded);
        CHECK(plan.predicted.peak_bytes <= request.memory_bytes);
        if (!CHECK(strstr(plan.certificate.sync, "no plan with all-reduce fits the memory") !=
                   NULL))
            fprintf(stderr, "%s\n", plan.certificate.sync);
        CHECK_STATUS(ghp_plan_verify(&plan, profile), GHP_OK);
        check_file(&plan);
        ghp_plan_release(&plan);
    }
    request.memory_bytes = sharded.predicted.peak_bytes / 2; /* too little for either */
    CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_ERR_INFEASIBLE);
    ghp_plan_release(&all);
    ghp_plan_release(&sharded);
}

/* By the speed alone: where everything hides behind the computation there is nothing to gain. */
static void check_speed(double bandwidth_Bps, bool gains)
{
    struct ghp_profile profile;
    struct ghp_plan_request request;
    struct ghp_plan plan;

    CHECK_STATUS(analytic_profile(1e12, bandwidth_Bps, 1e-6, &profile), GHP_OK);
    request = request_of(&profile, (struct ghp_sync){0});
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_OK)) {
        CHECK((plan.method.sync.ops == &ghp_sync_sharded) == gains);
        CHECK((plan.certificate.sync != NULL) == gains);
        ghp_plan_release(&plan);
    }
    ghp_profile_release(&profile);
}

/* What it saves is compared with an all-reduce in buckets if these are allowed, even if the sharded plan has none: an
 * all-reduce of each of many layers takes much longer. */
static void check_gain(void)
{
    struct ghp_profile profile;
    struct ghp_plan_request request;
    struct ghp_plan plan, all;
    double saved_ms = 0;
    const char *at;

    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    request = request_of(&profile, sharded_update);
    request.model_path = GHP_SOURCE_DIR "/models/resnet50.json";
    request.problem = (struct ghp_problem){64, 1024};
    request.method.bucket_bytes = GHP_BUCKET_AUTO;
    CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_OK);
    request.method.sync = allreduce;
    CHECK_STATUS(ghp_plan_make_synced(&request, &all), GHP_OK);
    at = strstr(plan.certificate.sync,
                plan.predicted.step_s < all.predicted.step_s ? "worker and " : "worker but costs ");
    if (CHECK(at != NULL)) {
        saved_ms = strtod(at + strcspn(at, "0123456789"), NULL);
        if (strstr(at, "costs") != NULL) saved_ms = -saved_ms;
    }
    CHECK(saved_ms < 1e3 * (all.predicted.step_s - plan.predicted.step_s) + 0.001);
    ghp_plan_release(&plan);
    ghp_plan_release(&all);
    ghp_profile_release(&profile);
}

CHECK_TEST(sync_choice)
{
    struct ghp_profile profile;

    CHECK_STATUS(analytic_profile(1e12, 1e10, 1e-6, &profile), GHP_OK);
    check_needed(&profile);
    ghp_profile_release(&profile);
    check_gain();
    check_speed(1e12, false);
    check_speed(1.25e9, true); /* gathers hide behind the forward pass, which reductions cannot */
    return check_end();
}
