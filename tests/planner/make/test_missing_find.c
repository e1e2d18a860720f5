/* tests/planner/make/test_missing_find.c - what a choice hangs on: nothing unmeasured of rivals that lose even if laws
 * are too high by their error, only what is unmeasured of those that then win, and in any case what the plan itself is
 * costed by. */
#include "planner/make/missing_find.h"
#include "core/plan/space.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <string.h>

static const char model_path[] = GHP_SOURCE_DIR "/models/lenet5.json";
static const struct ghp_problem problem = {2, 64};

/* How the entries of a profile are made. */
struct entries {
    struct ghp_profile *profile;
    bool data_measured;
    /* seconds of splits that are not `data`, relative to those of as many FLOPs by data */
    double others;
};

static enum ghp_status add_entry(void *context, const struct ghp_space_local *item)
{
    const struct entries *e = context;
    char key[GHP_KEY_BYTES];
    bool data = item->split.kind == GHP_SPLIT_DATA;
    struct ghp_op_entry entry = {.key = key,
                                 .pass = item->pass,
                                 .seconds = (data ? 1 : e->others) * 1e-9 *
                                            (double)ghp_local_flops(&item->local, item->pass),
                                 .source = data && e->data_measured ? GHP_SOURCE_MEASURED
                                                                    : GHP_SOURCE_ANALYTIC};

    ghp_local_key(&item->local, key);
    return ghp_profile_add_op(e->profile, &entry);
}

/* What is missing by such a profile, on links that cost nothing. */
static void find(bool data_measured, double others, struct ghp_missing *missing)
{
    struct ghp_profile profile;
    struct ghp_model model;
    struct entries entries = {&profile, data_measured, others};
    struct ghp_plan_request request = {.model_path = model_path,
                                       .profile_path = "entries",
                                       .profile = &profile,
                                       .problem = problem,
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .recompute = GHP_RECOMPUTE_MODE_NEVER,
                                       .time_limit_s = 30,
                                       .simplify = true};

    *missing = (struct ghp_missing){0};
    if (!CHECK_STATUS(analytic_profile(1e12, 1e15, 1e-12, &profile), GHP_OK)) return;
    if (CHECK_STATUS(ghp_model_load(model_path, &model), GHP_OK)) {
        CHECK_STATUS(ghp_space_locals(&model, problem, add_entry, &entries), GHP_OK);
        CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
        CHECK_STATUS(ghp_missing_find(&request, &profile, missing), GHP_OK);
        ghp_model_release(&model);
    }
    ghp_profile_release(&profile);
}

static int count(const struct ghp_missing *missing, const char *samples)
{
    int n = 0;

    for (int i = 0; i < missing->n; i++)
        n += !missing->items[i].is_comm && strstr(missing->items[i].key, samples) != NULL;
    return n;
}

CHECK_TEST(missing_find)
{
    struct ghp_missing missing;

    find(true, 2, &missing); /* 1.5 times as long by the lowest laws */
    CHECK_EQ(missing.n, 0);
    ghp_missing_release(&missing);
    find(true, 1.1, &missing); /* 0.83 times */
    CHECK(missing.n > 0);
    CHECK_EQ(count(&missing, " n32 "), 0); /* data parallelism's, which were measured */
    CHECK(count(&missing, " n64 ") > 0);
    ghp_missing_release(&missing);
    find(false, 2, &missing);
    CHECK(count(&missing, " n32 ") > 0); /* the plan's own */
    ghp_missing_release(&missing);
    return check_end();
}
