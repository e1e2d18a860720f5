/* tests/core/optimizer/test_lr_scaling.c - learning rates by norms, on vectors of a few numbers: equal gradients have
 * ratio 1, orthogonal ones of equal length n, opposed ones are cut to n; what is summed up never falls, and rises to
 * whole rates after its ramp; lars and lamb by their formulas, and where a norm is 0. */
#include "core/optimizer/lr_scaling.h"
#include "tests/check.h"

#include <math.h>

enum { TENSORS = 2, BATCHES = 4, LENGTH = 8 };

/* Worker batches' gradients of two tensors, one after the other. */
struct gradients {
    double of[BATCHES][TENSORS][LENGTH];
};

static struct ghp_lr_scaling_norms norms_of(const struct gradients *g, double *mean, double *own)
{
    for (int j = 0; j < TENSORS; j++) {
        mean[j] = own[j] = 0;
        for (int e = 0; e < LENGTH; e++) {
            double sum = 0;

            for (int i = 0; i < BATCHES; i++) {
                sum += g->of[i][j][e];
                own[j] += g->of[i][j][e] * g->of[i][j][e];
            }
            mean[j] += (sum / BATCHES) * (sum / BATCHES);
        }
    }
    return (struct ghp_lr_scaling_norms){mean, own};
}

static const struct ghp_lr_scaling *named(const char *name)
{
    for (int i = 1; ghp_lr_scaling_names[i] != NULL; i++)
        if (strcmp(ghp_lr_scaling_names[i], name) == 0) return ghp_lr_scaling_at(i);
    return NULL;
}

/* Factors after some steps of the same gradients. */
static void factors(const char *name, const struct gradients *g, double ramp, int steps,
                    double out[TENSORS])
{
    const struct ghp_hyperparameters h = {.ramp = ramp};
    struct ghp_lr_scaling_state state;
    double mean[TENSORS], own[TENSORS], gain = 0;
    struct ghp_lr_scaling_norms norms = norms_of(g, mean, own);

    CHECK_STATUS(ghp_lr_scaling_open(TENSORS, &state), GHP_OK);
    for (int t = 0; t < steps; t++) {
        ghp_lr_scaling_advance(named(name), &state, BATCHES, &h, &norms);
        CHECK(state.values[2 * TENSORS] >= gain + 1 - 1e-12); /* S of the first tensor */
        gain = state.values[2 * TENSORS];
    }
    memcpy(out, state.factors, sizeof state.values[0] * TENSORS);
    ghp_lr_scaling_close(&state);
}

static void check_ratios(void)
{
    struct gradients equal = {0}, orthogonal = {0}, opposed = {0};
    double out[TENSORS];

    for (int i = 0; i < BATCHES; i++)
        for (int j = 0; j < TENSORS; j++) {
            for (int e = 0; e < LENGTH; e++)
                equal.of[i][j][e] = 1000 * (e + 1);
            orthogonal.of[i][j][i] = 1e6;
            opposed.of[i][j][0] = i % 2 == 0 ? 1000 : -1000;
        }
    factors("lena", &equal, 0, 5, out);
    CHECK_NEAR(out[0], 1, 1e-9);
    factors("lena", &orthogonal, 0, 5, out);
    CHECK_NEAR(out[0], BATCHES, 1e-9);
    factors("lena", &opposed, 0, 5, out);
    CHECK_NEAR(out[0], BATCHES, 0);
    factors("lena", &equal, 8, 5, out); /* S is 4 at the fifth step */
    CHECK_NEAR(out[1], 0.5, 1e-9);
    factors("lena", &equal, 8, 20, out);
    CHECK_NEAR(out[1], 1, 1e-9);
}

/* One tensor equal, one orthogonal: lena has a factor each, adascale one of both. */
static void check_each(void)
{
    struct gradients g = {0};
    double out[TENSORS];

    for (int i = 0; i < BATCHES; i++) {
        g.of[i][0][0] = 1e4;
        g.of[i][1][i] = 1e4;
    }
    factors("lena", &g, 0, 9, out);
    CHECK_NEAR(out[0], 1, 1e-9);
    CHECK_NEAR(out[1], 4, 1e-6);
    factors("adascale", &g, 0, 9, out);
    CHECK_NEAR(out[0], 2 / 1.25, 1e-9);
    CHECK_NEAR(out[1], 2 / 1.25, 1e-9);
}

static void check_weights(void)
{
    const struct ghp_hyperparameters h = {.weight_decay = 0.1};
    const double gradients[TENSORS] = {16, 0}, weights[TENSORS] = {9, 4};
    struct ghp_lr_scaling_norms norms = {gradients, weights};
    struct ghp_lr_scaling_state state;

    CHECK_STATUS(ghp_lr_scaling_open(TENSORS, &state), GHP_OK);
    ghp_lr_scaling_advance(named("lars"), &state, BATCHES, &h, &norms);
    CHECK_NEAR(state.factors[0], 0.001 * 3 / (4 + 0.1 * 3), 1e-15);
    CHECK_NEAR(state.factors[1], 0.001, 0);
    ghp_lr_scaling_advance(named("lamb"), &state, BATCHES, &h, &norms);
    CHECK_NEAR(state.factors[0], 0.75, 1e-15);
    CHECK_NEAR(state.factors[1], 1, 0);
    ghp_lr_scaling_close(&state);
}

static void refuse(const char *name, const struct ghp_optimizer *optimizer, bool clips,
                   const char *word)
{
    CHECK_STATUS(ghp_lr_scaling_check(named(name), optimizer, clips), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), word) != NULL);
}

CHECK_TEST(lr_scaling)
{
    check_ratios();
    check_each();
    check_weights();
    CHECK(ghp_lr_scaling_at(0) == NULL && named("lena") != NULL);
    CHECK_NEAR(ghp_lr_scaling_whole(named("linear"), 8), 8, 0);
    CHECK_NEAR(ghp_lr_scaling_whole(named("lars"), 8), 1, 0);
    CHECK_NEAR(ghp_lr_scaling_whole(NULL, 8), 1, 0);
    refuse("lamb", NULL, false, "--optimizer adamw");
    refuse("lena", &ghp_optimizer_adamw, false, "--optimizer sgd");
    refuse("adascale", &ghp_optimizer_sgd, true, "--clip-norm");
    CHECK_STATUS(ghp_lr_scaling_check(named("linear"), &ghp_optimizer_adamw, true), GHP_OK);
    return check_end();
}
