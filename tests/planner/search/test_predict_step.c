/* tests/planner/search/test_predict_step.c - the step of many micro-batches by few of them is that of all of them, on
 * links that hide reductions and on such as do not, with slowdowns, buckets, layers recomputed, and both updates. */
#include "core/plan/plan.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { MOST_LAYERS = 512 };

static struct ghp_model model;
static struct ghp_split splits[MOST_LAYERS];
static bool recompute[MOST_LAYERS];

static bool make_splits(struct ghp_problem problem, unsigned seed)
{
    struct ghp_split choices[GHP_MAX_CHOICES];

    if (!CHECK(model.n_layers <= MOST_LAYERS)) return false;
    for (int v = 0; v < model.n_layers; v++) {
        int n = ghp_split_choices(&model.layers[v], problem, choices, GHP_MAX_CHOICES);

        seed = seed * 1664525u + 1013904223u;
        splits[v] = choices[seed % 3 == 0 ? (int)(seed >> 8) % n : 0];
        if (model.layers[v].tied > 0 || model.layers[v].shared) splits[v] = choices[0];
        recompute[v] = ghp_stage_may_recompute(&model.layers[v]) && seed % 5 == 0;
    }
    return true;
}

static void check_step(struct ghp_lowering lowering, const struct ghp_profile *profile)
{
    struct ghp_prediction whole;
    double step_s = 0, both_s = 0;
    int64_t peak_bytes = 0;

    if (!CHECK_STATUS(ghp_plan_predict(&lowering, splits, profile, &whole), GHP_OK)) return;
    CHECK_STATUS(ghp_plan_predict_step(&lowering, splits, profile, &step_s, NULL), GHP_OK);
    CHECK_NEAR(step_s, whole.step_s, 1e-11 * whole.step_s);
    CHECK_STATUS(ghp_plan_predict_step(&lowering, splits, profile, &both_s, &peak_bytes), GHP_OK);
    CHECK_NEAR(both_s, whole.step_s, 1e-11 * whole.step_s);
    CHECK_EQ(peak_bytes, whole.peak_bytes);
}

static void check_network(const char *path, const struct ghp_profile *profile)
{
    static const int micro_batches[] = {1, 3, 4, 5, 8, 23, 64};

    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    for (unsigned k = 0; k < 2 * sizeof micro_batches / sizeof *micro_batches; k++) {
        int u = micro_batches[k / 2];
        struct ghp_staging staging = {.micro_batches = u,
                                      .recompute = k % 3 == 0 ? recompute : NULL};
        struct ghp_lowering lowering =
            ghp_lowering_of(&model, (struct ghp_problem){4, 8LL * u}, profile);

        lowering.staging = &staging;
        lowering.method.sync =
            (struct ghp_sync){.ops = k % 2 ? &ghp_sync_sharded : &ghp_sync_allreduce};
        lowering.method.bucket_bytes = k % 4 < 2 ? 0 : 1 << 16;
        if (!make_splits((struct ghp_problem){4, 8}, k)) break;
        check_step(lowering, profile);
    }
    ghp_model_release(&model);
}

CHECK_TEST(predict_step)
{
    static const double bandwidths_Bps[] = {1e6, 1e10, 1e8, 1e12};

    for (int i = 0; i < (check_full() ? 8 : 4); i++) {
        struct ghp_profile profile;

        if (!CHECK_STATUS(analytic_profile(1e11, bandwidths_Bps[i / 2], 1e-5, &profile), GHP_OK))
            return check_end();
        if (i % 2) {
            profile.overlap.compute = 1.3;
            profile.overlap.comm = 1.7;
            profile.overlap.link = 1.5;
        }
        check_network(GHP_SOURCE_DIR "/models/vgg-a-32.json", &profile);
        check_network(GHP_SOURCE_DIR "/models/gpt-nano.json", &profile);
        ghp_profile_release(&profile);
    }
    return check_end();
}
