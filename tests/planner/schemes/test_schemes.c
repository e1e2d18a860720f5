/* tests/planner/schemes/test_schemes.c - every synchroniser has its rows, one of all is the plan, a row's numbers are
 * those of the plan that is made by its name, who is refused says why, and slow workers keep to the law of what goes in
 * step, or is asynchronous. */
#include "planner/schemes/schemes.h"

#include "planner/make/sync_choice.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <string.h>

static const char model_path[] = GHP_SOURCE_DIR "/models/lenet5.json";

static struct ghp_plan_request request_of(const struct ghp_profile *profile)
{
    return (struct ghp_plan_request){.model_path = model_path,
                                     .profile_path = "analytic",
                                     .profile = profile,
                                     .problem = {4, 64},
                                     .method.bucket_bytes = GHP_BUCKET_AUTO,
                                     .recompute = GHP_RECOMPUTE_MODE_NEVER,
                                     .time_limit_s = 5,
                                     .simplify = true,
                                     .decision_only = true};
}

static struct ghp_schemes all_of(const struct ghp_plan_request *request, const char *stragglers)
{
    struct ghp_schemes_job job = {.request = request, .all = true};
    struct ghp_schemes schemes = {0};
    struct ghp_plan plan;

    job.plan = &plan;
    CHECK_STATUS(ghp_stragglers_parse(stragglers, &job.stragglers), GHP_OK);
    if (!CHECK_STATUS(ghp_plan_make_synced(request, &plan), GHP_OK)) return schemes;
    CHECK_STATUS(ghp_schemes_find(&job, &schemes), GHP_OK);
    ghp_plan_release(&plan);
    return schemes;
}

static const struct ghp_scheme *find(const struct ghp_schemes *s, const char *name,
                                     enum ghp_strategy strategy)
{
    for (int i = 0; i < s->n; i++) {
        char text[GHP_SYNC_TEXT_BYTES];

        ghp_sync_format(s->of[i].sync, text);
        if (strcmp(text, name) == 0 && s->of[i].strategy == strategy) return &s->of[i];
    }
    return NULL;
}

/* As a plan made by name; all workers in step, of whom one takes three times as long, never lose more than it. */
static void check_row(const struct ghp_plan_request *request, const struct ghp_scheme *scheme)
{
    struct ghp_plan_request own = *request;
    struct ghp_plan plan;

    own.method.sync = scheme->sync;
    own.strategy = scheme->strategy;
    if (!CHECK_STATUS(ghp_plan_make_synced(&own, &plan), GHP_OK)) return;
    CHECK_NEAR(scheme->predicted.step_s, plan.predicted.step_s, 0);
    CHECK_EQ(scheme->predicted.peak_bytes, plan.predicted.peak_bytes);
    CHECK_EQ(scheme->predicted.sent_bytes, plan.predicted.sent_bytes);
    /* a server's port may bind all alike */
    CHECK(scheme->slowed.step_s > scheme->predicted.step_s ||
          ghp_sync_ops_of(scheme->sync)->mixing != NULL);
    CHECK(scheme->slowed.step_s >= scheme->predicted.step_s * (1 - 1e-12));
    CHECK(scheme->slowed.step_s <=
          scheme->predicted.step_s + 2 * scheme->predicted.compute_s * (1 + 1e-12));
    ghp_plan_release(&plan);
}

static void test_rows(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = request_of(profile);
    struct ghp_schemes s = all_of(&request, "2:3");
    int chosen = 0;

    for (int i = 0; ghp_sync_names[i] != NULL; i++) {
        bool found = false;

        for (int k = 0; k < s.n; k++)
            found = found || strcmp(ghp_sync_ops_of(s.of[k].sync)->name, ghp_sync_names[i]) == 0;
        CHECK(found);
    }
    for (int k = 0; k < s.n; k++) {
        chosen += s.of[k].chosen;
        if (CHECK(s.of[k].reason == NULL)) check_row(&request, &s.of[k]);
    }
    CHECK_EQ(chosen, 1);
    CHECK(find(&s, "allreduce", GHP_STRATEGY_AUTO) != NULL);
    CHECK(find(&s, "local:2", GHP_STRATEGY_DATA) != NULL);
    CHECK(find(&s, "local:32", GHP_STRATEGY_DATA) != NULL);
    ghp_schemes_release(&s);
}

/* Weights that mix, over links so fast that no port binds. Workers in step are slowed by what the slow one's computing
 * takes more, asynchronous workers by the slow one's own steps alone. */
static void test_laws(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = request_of(profile);
    struct ghp_schemes s = all_of(&request, "2:3");
    int n = request.problem.workers, mixing = 0;

    for (int k = 0; k < s.n; k++) {
        double alone = s.of[k].predicted.step_s, slow = alone + 2 * s.of[k].predicted.compute_s,
               law = ghp_sync_keeps_step(s.of[k].sync) ? slow : n / ((n - 1) / alone + 1 / slow);

        if (ghp_sync_ops_of(s.of[k].sync)->mixing == NULL) continue;
        CHECK_NEAR(s.of[k].slowed.step_s, law, 1e-4 * law);
        mixing++;
    }
    CHECK(mixing >= 9);
    ghp_schemes_release(&s);
}

static void test_alone(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = request_of(profile);
    struct ghp_plan plan;

    request.problem = (struct ghp_problem){1, 16};
    CHECK_STATUS(ghp_sync_parse("ad-psgd", &request.method.sync), GHP_OK);
    CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_ERR_USAGE);
    CHECK(strstr(ghp_status_message(), "--workers 2") != NULL);
    CHECK_STATUS(ghp_sync_parse("gosgd:0.1", &request.method.sync), GHP_OK);
    if (CHECK_STATUS(ghp_plan_make_synced(&request, &plan), GHP_OK)) ghp_plan_release(&plan);
}

static void test_refusals(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = request_of(profile);
    const struct ghp_scheme *local;
    struct ghp_schemes s;

    request.method.clip_norm = 1;
    s = all_of(&request, "0:1");
    local = find(&s, "local:8", GHP_STRATEGY_DATA);
    if (CHECK(local != NULL && local->reason != NULL))
        CHECK(strstr(local->reason, "clip-norm") != NULL);
    CHECK(find(&s, "allreduce", GHP_STRATEGY_AUTO)->reason == NULL);
    CHECK_NEAR(s.of[0].slowed.step_s, s.of[0].predicted.step_s, 0); /* no slower than the others */
    ghp_schemes_release(&s);
}

CHECK_TEST(schemes)
{
    struct ghp_profile profile;

    CHECK_STATUS(analytic_profile(1e12, 1.25e9, 1e-6, &profile), GHP_OK);
    test_rows(&profile);
    test_refusals(&profile);
    test_alone(&profile);
    ghp_profile_release(&profile);
    CHECK_STATUS(analytic_profile(1e10, 1e12, 1e-9, &profile), GHP_OK);
    test_laws(&profile);
    ghp_profile_release(&profile);
    return check_end();
}
