/* tests/core/optimizer/test_tensor_rates.c - learning rates by norms, on vectors of a few numbers: equal gradients have
 * ratio 1, orthogonal ones of equal length n, opposed ones are cut to n; what is summed up never falls, and rises to
 * whole rates after its ramp; those by weights and directions by their formulas, and where a norm is 0. */
#include "core/optimizer/tensor_rates.h"
#include "tests/check.h"

#include <math.h>

enum { TENSORS = 2, BATCHES = 4, LENGTH = 8 };

/* Worker batches' gradients of two tensors, one after the other. */
struct gradients {
    double of[BATCHES][TENSORS][LENGTH];
};

static struct ghp_tensor_norms norms_of(const struct gradients *g, double *mean, double *own)
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
    return (struct ghp_tensor_norms){mean, own};
}

static const struct ghp_rate_rule by_weights = {.weights = true},
                                  by_directions = {.weights = true, .directions = true},
                                  by_batches = {.batches = true},
                                  by_batches_of_each = {.batches = true, .ramps = true};

/* Factors after some steps of the same gradients. */
static void factors(const struct ghp_rate_rule *rule, const struct gradients *g, double ramp,
                    int steps, double out[TENSORS])
{
    const struct ghp_hyperparameters h = {.ramp = ramp};
    struct ghp_tensor_rates rates;
    double mean[TENSORS], own[TENSORS], gain = 0;
    struct ghp_tensor_norms norms = norms_of(g, mean, own);

    CHECK_STATUS(ghp_tensor_rates_open(rule, TENSORS, &rates), GHP_OK);
    for (int t = 0; t < steps; t++) {
        ghp_tensor_rates_advance(&rates, BATCHES, &h, &norms);
        CHECK(rates.values[2 * TENSORS] >= gain + 1 - 1e-12); /* S of the first tensor */
        gain = rates.values[2 * TENSORS];
    }
    memcpy(out, rates.factors, sizeof rates.values[0] * TENSORS);
    ghp_tensor_rates_close(&rates);
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
    factors(&by_batches_of_each, &equal, 0, 5, out);
    CHECK_NEAR(out[0], 1, 1e-9);
    factors(&by_batches_of_each, &orthogonal, 0, 5, out);
    CHECK_NEAR(out[0], BATCHES, 1e-9);
    factors(&by_batches_of_each, &opposed, 0, 5, out);
    CHECK_NEAR(out[0], BATCHES, 0);
    factors(&by_batches_of_each, &equal, 8, 5, out); /* S is 4 at the fifth step */
    CHECK_NEAR(out[1], 0.5, 1e-9);
    factors(&by_batches_of_each, &equal, 8, 20, out);
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
    factors(&by_batches_of_each, &g, 0, 9, out);
    CHECK_NEAR(out[0], 1, 1e-9);
    CHECK_NEAR(out[1], 4, 1e-6);
    factors(&by_batches, &g, 0, 9, out);
    CHECK_NEAR(out[0], 2 / 1.25, 1e-9);
    CHECK_NEAR(out[1], 2 / 1.25, 1e-9);
}

/* Checks the rates of one tensor with gradients, and of one without. */
static void check_weights(const struct ghp_rate_rule *rule, double first, double second)
{
    const struct ghp_hyperparameters h = {.weight_decay = 0.1};
    const double gradients[TENSORS] = {16, 0}, weights[TENSORS] = {9, 4};
    struct ghp_tensor_norms norms = {gradients, weights};
    struct ghp_tensor_rates rates;

    CHECK_STATUS(ghp_tensor_rates_open(rule, TENSORS, &rates), GHP_OK);
    ghp_tensor_rates_advance(&rates, BATCHES, &h, &norms);
    CHECK_NEAR(rates.factors[0], first, 1e-15);
    CHECK_NEAR(rates.factors[1], second, 0);
    ghp_tensor_rates_close(&rates);
}

CHECK_TEST(tensor_rates)
{
    check_ratios();
    check_each();
    check_weights(&by_weights, 0.001 * 3 / (4 + 0.1 * 3), 0.001);
    check_weights(&by_directions, 0.75, 1);
    return check_end();
}
