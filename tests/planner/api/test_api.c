/* tests/planner/api/test_api.c - ghp.h plans what ghp-plan plans, from what was opened, in several threads at once;
 * each failure has its code, its message and nothing left over. The installed library is
 * tests/tools/together/test_install.sh's. */
#include "planner/api/ghp.h"
#include "core/base/file.h"
#include "onnx/network.h"
#include "planner/make/sync_choice.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <pthread.h>
#include <unistd.h>

static char model_path[] = "/tmp/ghp-api-model-XXXXXX",
            profile_path[] = "/tmp/ghp-api-profile-XXXXXX",
            plan_path[] = "/tmp/ghp-api-plan-XXXXXX";
static struct ghp_model *model;
static struct ghp_profile *profile;

/* A link so slow that the best plan is not data parallelism. */
static bool write_inputs(void)
{
    struct ghp_profile analytic;
    size_t n;
    char *text;
    int fds[] = {mkstemp(model_path), mkstemp(profile_path), mkstemp(plan_path)};
    FILE *file = fopen(model_path, "w");
    bool ok = ghp_file_read(GHP_SOURCE_DIR "/models/vgg-a-32.json", &text, &n) == GHP_OK &&
              fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0;

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close(fds[i]);
    if (!CHECK(ok && file != NULL)) return false;
    ok = fwrite(text, 1, n, file) == n && fclose(file) == 0;
    free(text);
    ok = CHECK(ok) && CHECK_STATUS(analytic_profile(1e12, 1e8, 1e-5, &analytic), GHP_OK);
    if (!ok) return false;
    ok = CHECK_STATUS(ghp_profile_save(profile_path, &analytic), GHP_OK);
    ghp_profile_release(&analytic);
    return ok;
}

static const struct ghp_planning usual = {.workers = 4, .batch = 64};

/* The same as the rooms below make from these files; the model's file is gone when the plan is made. */
static void test_compute(void)
{
    struct ghp_plan_request request = {.model_path = model_path,
                                       .profile_path = profile_path,
                                       .profile = profile,
                                       .problem = {4, 64},
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .time_limit_s = 30,
                                       .simplify = true,
                                       .break_even = true};
    struct ghp_step_cost cost, again;
    struct ghp_plan expected, *plan, *loaded;
    char mine[32], theirs[32];

    if (!CHECK_STATUS(ghp_plan_make_synced(&request, &expected), GHP_OK)) return;
    unlink(model_path);
    if (!CHECK_EQ(ghp_plan_compute(model, profile, &usual, &plan), 0)) return;
    CHECK_EQ(ghp_plan_layers(plan), expected.model.n_layers);
    for (int i = 0; i < ghp_plan_layers(plan); i++) {
        ghp_split_format(expected.splits[i], theirs, sizeof theirs);
        CHECK_TEXT(ghp_plan_split(plan, i, mine, sizeof mine), theirs);
        CHECK_TEXT(ghp_plan_layer(plan, i), expected.model.layers[i].name);
    }
    CHECK(plan->model_hash == expected.model_hash && plan->profile_hash == expected.profile_hash);
    CHECK_EQ(ghp_plan_cost(plan, NULL, &cost), 0);
    CHECK_NEAR(cost.step_s, expected.predicted.step_s, 0);
    CHECK_EQ(cost.peak_bytes, expected.predicted.peak_bytes);
    CHECK(cost.step_s > 0 && cost.sent_bytes > 0);
    CHECK_EQ(ghp_plan_cost(plan, profile, &again), 0);
    CHECK(memcmp(&cost, &again, sizeof cost) == 0);
    CHECK_EQ(ghp_plan_store(plan, plan_path), 0);
    ghp_plan_close(plan);
    if (CHECK_EQ(ghp_plan_open(plan_path, &loaded), 0)) {
        CHECK_EQ(ghp_plan_cost(loaded, profile, &again), 0);
        CHECK_NEAR(again.step_s, cost.step_s, 1e-9 * cost.step_s); /* decimals of the file */
        ghp_plan_close(loaded);
    }
    ghp_plan_release(&expected);
}

/* Splits of one's own are costed like any plan; a baseline is not faster than the best. */
static void test_given(void)
{
    struct ghp_planning by_hand = usual, by_data = usual, limited = usual;
    struct ghp_plan *best, *plan;
    struct ghp_step_cost cost, least;

    by_hand.force = "*=data";
    by_data.strategy = "data";
    if (!CHECK_EQ(ghp_plan_compute(model, profile, &usual, &best), 0)) return;
    ghp_plan_cost(best, NULL, &least);
    ghp_plan_close(best);
    if (CHECK_EQ(ghp_plan_compute(model, profile, &by_hand, &plan), 0)) {
        char split[32];

        for (int i = 0; i < ghp_plan_layers(plan); i++)
            CHECK_TEXT(ghp_plan_split(plan, i, split, sizeof split), "data");
        ghp_plan_close(plan);
    }
    if (CHECK_EQ(ghp_plan_compute(model, profile, &by_data, &plan), 0)) {
        ghp_plan_cost(plan, NULL, &cost);
        CHECK(cost.step_s > least.step_s);
        limited.memory_bytes = least.peak_bytes - 1;
        ghp_plan_close(plan);
    }
    if (CHECK_EQ(ghp_plan_compute(model, profile, &limited, &plan), 0)) {
        ghp_plan_cost(plan, NULL, &cost);
        CHECK(cost.peak_bytes <= limited.memory_bytes);
        ghp_plan_close(plan);
    }
}

static void refuses(struct ghp_planning wanted, int code, const char *message)
{
    struct ghp_plan *plan = (struct ghp_plan *)&wanted; /* not NULL */

    CHECK_EQ(ghp_plan_compute(model, profile, &wanted, &plan), code);
    CHECK(plan == NULL);
    CHECK(strstr(ghp_error(), message) != NULL);
}

static void test_refusals(void)
{
    struct ghp_model *no_model = model;
    struct ghp_profile *no_profile = profile;
    struct ghp_plan *no_plan = NULL;
    struct ghp_planning wanted = usual;

    CHECK_EQ(ghp_model_open("nowhere.json", &no_model), GHP_FAILURE);
    CHECK(no_model == NULL && strstr(ghp_error(), "nowhere.json") != NULL);
    CHECK_EQ(ghp_profile_open(plan_path, &no_profile), GHP_FAILURE);
    CHECK(no_profile == NULL && strstr(ghp_error(), plan_path) != NULL);
    CHECK_EQ(ghp_plan_open(profile_path, &no_plan), GHP_FAILURE);
    CHECK(no_plan == NULL && strstr(ghp_error(), "ghp.plan") != NULL);
    wanted.workers = 0;
    refuses(wanted, GHP_FAILURE_USAGE, "give 1 to");
    wanted = usual;
    wanted.batch = 66;
    refuses(wanted, GHP_FAILURE, "not a multiple of 4");
    wanted = usual;
    wanted.strategy = "fastest";
    refuses(wanted, GHP_FAILURE_USAGE, "auto, data, model or owt");
    wanted = usual;
    wanted.force = "nosuch=data";
    refuses(wanted, GHP_FAILURE_USAGE, "nosuch");
    wanted = usual;
    wanted.memory_bytes = 1000;
    refuses(wanted, GHP_FAILURE_NO_PLAN, "least");
    ghp_model_close(NULL);
    ghp_profile_close(NULL);
    ghp_plan_close(NULL);
}

static void test_explain(void)
{
    struct ghp_plan *plan;
    char *text = NULL;

    if (!CHECK_EQ(ghp_plan_open(plan_path, &plan), 0)) return;
    if (CHECK_EQ(ghp_plan_explain(plan, NULL, &text), 0)) {
        for (int i = 0; i < ghp_plan_layers(plan); i++)
            CHECK(strstr(text, ghp_plan_layer(plan, i)) != NULL);
        CHECK(strstr(text, "margin") != NULL);
        free(text);
    }
    CHECK_EQ(ghp_plan_explain(plan, "fc9", &text), GHP_FAILURE_USAGE);
    CHECK(text == NULL && strstr(ghp_error(), "did you mean") != NULL);
    ghp_plan_close(plan);
}

static void *plan_concurrently(void *step_s)
{
    struct ghp_planning wanted = usual;
    struct ghp_step_cost cost = {0};
    struct ghp_plan *plan;

    wanted.workers = 0; /* a failure of this thread's own */
    if (ghp_plan_compute(model, profile, &wanted, &plan) != GHP_FAILURE_USAGE) return NULL;
    wanted.workers = usual.workers;
    if (ghp_plan_compute(model, profile, &wanted, &plan) == 0) {
        ghp_plan_cost(plan, NULL, &cost);
        ghp_plan_close(plan);
    }
    *(double *)step_s = cost.step_s;
    return NULL;
}

static void test_threads(void)
{
    double steps_s[3] = {0};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        if (!CHECK(pthread_create(&threads[i], NULL, plan_concurrently, &steps_s[i]) == 0)) return;
    plan_concurrently(&steps_s[2]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(steps_s[0] > 0);
    CHECK_NEAR(steps_s[1], steps_s[0], 0);
    CHECK_NEAR(steps_s[2], steps_s[0], 0);
}

CHECK_TEST(api)
{
    CHECK(strchr(ghp_version(), '.') != NULL);
    if (write_inputs() && CHECK_EQ(ghp_model_open(model_path, &model), 0) &&
        CHECK_EQ(ghp_profile_open(profile_path, &profile), 0)) {
        test_compute();
        test_given();
        test_refusals();
        test_explain();
        if (check_full()) test_threads();
    }
    ghp_model_close(model);
    ghp_profile_close(profile);
    unlink(model_path);
    unlink(profile_path);
    unlink(plan_path);
    return check_end();
}
