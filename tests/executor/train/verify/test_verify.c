/* What a verification makes of given runs: other rounding passes; a tensor whose gradient is wrong by more does not,
 * however small it is, nor do all of them by less, nor does anything that is not a number. By what weights differ it is
 * asked layer by layer: beyond the limit, and within a wide one where a wrong update could hide. */
#include "executor/platform/random.h"
#include "executor/train/verify/verify.h"
#include "tests/check.h"

#include <math.h>

static struct ghp_model model;

/* Normal numbers, each off by `noise` times another one. */
static void fill(struct ghp_snapshot *s, double noise, uint64_t seed)
{
    if (!CHECK_STATUS(ghp_snapshot_init(&model, true, s), GHP_OK)) exit(check_end());
    for (int i = 0; i < 2 * s->list.n; i++) {
        int tensor = i / 2;
        int64_t n = s->list.items[tensor].param->elements;
        double *values = i % 2 == 0 ? s->weights[tensor] : NULL;
        double *right = ghp_alloc((size_t)n, sizeof(double));
        double *off = ghp_alloc((size_t)n, sizeof(double));

        if (i % 2 == 1 && tensor < s->list.n_trained) values = s->gradients[tensor];
        ghp_random_fill_normal(1, (uint64_t)i, 0, n, 1, 8, right);
        ghp_random_fill_normal(seed, (uint64_t)i, 0, n, 1, 8, off);
        for (int64_t e = 0; values != NULL && e < n; e++)
            values[e] = right[e] * (1 + noise * off[e]);
        free(off);
        free(right);
    }
}

static bool passes(const struct ghp_snapshot *plan, const struct ghp_snapshot *alone, int precision)
{
    struct ghp_verification v;
    bool passed;

    CHECK_STATUS(ghp_verify_compare(plan, alone, ghp_precision_of(precision), &v), GHP_OK);
    passed = v.passed;
    ghp_verification_release(&v);
    return passed;
}

static void scale(struct ghp_snapshot *s, int tensor, double by)
{
    for (int64_t e = 0; e < s->list.items[tensor].param->elements; e++)
        s->gradients[tensor][e] *= by;
}

/* Runs that differ by rounding pass; one tensor off by the share `one` of itself fails, and all of them by `all`. */
static void check_precision(int precision, double noise, double one, double all)
{
    struct ghp_snapshot plan, alone;

    fill(&alone, noise, 3);
    fill(&plan, noise, 4);
    CHECK(passes(&plan, &alone, precision));
    CHECK(passes(&alone, &alone, precision));
    for (int i = 0; i < plan.list.n_trained; i++) {
        scale(&plan, i, 1 + one);
        if (!CHECK(!passes(&plan, &alone, precision)))
            fprintf(stderr, "  %s\n", plan.list.items[i].param->name);
        scale(&plan, i, 1 / (1 + one));
    }
    for (int i = 0; i < plan.list.n_trained; i++)
        scale(&plan, i, 1 + all);
    CHECK(!passes(&plan, &alone, precision));
    for (int i = 0; i < plan.list.n_trained; i++)
        scale(&plan, i, 1 / (1 + all));
    CHECK(passes(&plan, &alone, precision));
    plan.weights[0][0] = NAN;
    CHECK(!passes(&plan, &alone, precision));
    plan.weights[0][0] = alone.weights[0][0];
    alone.gradients[0][0] = NAN;
    CHECK(!passes(&plan, &alone, precision));
    ghp_snapshot_release(&plan);
    ghp_snapshot_release(&alone);
}

/* A tensor whose gradient is zero but for rounding passes however its rounding fell, and fails if it is not zero. */
static void check_zero(int precision, double noise, double zero)
{
    struct ghp_snapshot plan, alone;
    double all = 0;

    fill(&alone, noise, 3);
    fill(&plan, noise, 4);
    for (int i = 0; i < alone.list.n_trained; i++)
        for (int64_t e = 0; e < alone.list.items[i].param->elements; e++)
            all += alone.gradients[i][e] * alone.gradients[i][e];
    for (int i = 0; i < alone.list.n_trained; i++) {
        int64_t n = alone.list.items[i].param->elements;
        double each = zero * sqrt(all / (double)n); /* a norm of `zero` of all */
        double *kept = ghp_alloc(2 * (size_t)n, sizeof(double));

        if (alone.list.items[i].param->elements > 1000) { /* much of all: another whole */
            free(kept);
            continue;
        }
        memcpy(kept, alone.gradients[i], (size_t)n * sizeof(double));
        memcpy(kept + n, plan.gradients[i], (size_t)n * sizeof(double));
        for (int64_t e = 0; e < n; e++) {
            alone.gradients[i][e] = 0.3 * each * (e % 2 == 0 ? 1 : -1);
            plan.gradients[i][e] = 0.3 * each * (e % 3 == 0 ? 1 : -1);
        }
        if (!CHECK(passes(&plan, &alone, precision)))
            fprintf(stderr, "  %s\n", plan.list.items[i].param->name);
        for (int64_t e = 0; e < n; e++)
            plan.gradients[i][e] = 3 * each;
        CHECK(!passes(&plan, &alone, precision));
        memset(alone.gradients[i], 0, (size_t)n * sizeof(double));
        CHECK(!passes(&plan, &alone, precision));
        memcpy(alone.gradients[i], kept, (size_t)n * sizeof(double));
        memcpy(plan.gradients[i], kept + n, (size_t)n * sizeof(double));
        free(kept);
    }
    ghp_snapshot_release(&plan);
    ghp_snapshot_release(&alone);
}

/* Weights that are off by `noise`: asked or not, where they may be replicas of their own. */
static void check_asks(const struct ghp_optimizer *optimizer, int precision, double noise,
                       bool asks, bool asks_of_replicas)
{
    struct ghp_snapshot plan, alone;
    struct ghp_verification v;

    fill(&alone, 0, 3);
    fill(&plan, 0, 3);
    alone.optimizer = optimizer;
    plan.weights[1][0] += noise;
    CHECK_STATUS(ghp_verify_compare(&plan, &alone, ghp_precision_of(precision), &v), GHP_OK);
    CHECK_EQ(ghp_verification_asks(&v, false), asks);
    CHECK_EQ(ghp_verification_asks(&v, true), asks_of_replicas);
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    ghp_snapshot_release(&alone);
}

CHECK_TEST(verify)
{
    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &model), GHP_OK))
        return check_end();
    check_precision(0, 1e-6, 2e-4, 2e-4);
    check_precision(1, 1e-13, 2e-11, 2e-11);
    check_precision(2, 1e-3, 2e-2, 2e-2);
    check_precision(3, 0x1p-6, 0.5, 0.3);
    check_zero(0, 1e-6, 1e-6);
    check_zero(1, 1e-13, 1e-14);
    check_zero(2, 1e-3, 1e-6);
    check_zero(3, 0x1p-6, 1e-3);
    check_asks(&ghp_optimizer_sgd, 0, 1e-6, false, false);
    check_asks(&ghp_optimizer_sgd, 0, 0.1, true, true);
    check_asks(&ghp_optimizer_adamw, 0, 1e-6, false, false);
    check_asks(&ghp_optimizer_adamw, 0, 0.1, true, false);
    check_asks(&ghp_optimizer_lion, 1, 0.1, true, false);
    check_asks(&ghp_optimizer_adamw, 2, 0.1, false, false); /* tf32 */
    check_asks(&ghp_optimizer_adamw, 3, 0.1, false, false); /* bf16 */
    ghp_model_release(&model);
    return check_end();
}
