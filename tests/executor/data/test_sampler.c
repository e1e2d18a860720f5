/* Importance sampling: chances are those that are said, and at least uniform / n; weighted gradients have the mean of
 * all; the tree's sums are those of its leaves after many changes. On logistic regression whose samples are of unlike
 * length the mean squared distance to the optimum is at most half of that of uniform draws, at the same rate; on
 * samples of one length it is the same. */
#include "executor/data/sampler.h"
#include "executor/platform/random.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double uniform(uint64_t stream, uint64_t index)
{
    return (double)(ghp_random_u64(5, stream, index) >> 11) * 0x1p-53;
}

/* ---- the tree ---- */

static double leaves(const struct ghp_sampler *s)
{
    double sum = 0;

    for (int64_t i = 0; i < s->n; i++)
        sum += ghp_sampler_norm(s, i);
    return sum;
}

static void check_draws(const struct ghp_sampler *s, const struct ghp_sampler *other)
{
    enum { DRAWS = 400000 };
    int64_t *seen = calloc((size_t)s->n, sizeof *seen);
    int differs = 0;

    CHECK(seen != NULL);
    for (uint64_t k = 0; k < DRAWS; k++) {
        struct ghp_draw d = ghp_sampler_draw(s, k);

        CHECK(d.sample >= 0 && d.sample < s->n);
        CHECK(d.weight == 1 / ghp_sampler_ratio(s, d.sample) && d.weight <= 2);
        seen[d.sample]++;
        differs += ghp_sampler_draw(other, k).sample != d.sample;
    }
    CHECK(differs > DRAWS / 2);
    for (int64_t i = 0; i < s->n; i++) { /* within 6 standard deviations of what the chance says */
        double expected = DRAWS * ghp_sampler_ratio(s, i) / (double)s->n;

        CHECK_NEAR(seen[i], expected, 6 * sqrt(expected));
    }
    free(seen);
}

static void check_tree(void)
{
    enum { N = 1000, CHANGES = 100000 };
    struct ghp_sampler s, other;
    double least = 1e9, mean = 0;

    CHECK_STATUS(ghp_sampler_init(&s, N, 0.5, 1, 2), GHP_OK);
    CHECK_STATUS(ghp_sampler_init(&other, N, 0.5, 1, 3), GHP_OK);
    CHECK(ghp_sampler_draw(&s, 0).measures); /* no norm is known: all are alike */
    CHECK(ghp_sampler_draw(&s, 0).weight == 1);
    for (uint64_t k = 0; k < CHANGES; k++)
        ghp_sampler_learn(&s, (int64_t)(uniform(1, k) * N), exp(8 * uniform(2, k) - 4));
    CHECK_NEAR(ghp_sampler_sum(&s), leaves(&s), 1e-9 * leaves(&s));
    ghp_sampler_learn(&s, 7, 0); /* a gradient of zeros */
    ghp_sampler_learn(&s, 8, NAN);
    ghp_sampler_learn(&s, 8, INFINITY);
    CHECK(ghp_sampler_norm(&s, 7) == 0 && isfinite(ghp_sampler_norm(&s, 8)));
    CHECK_NEAR(ghp_sampler_sum(&s), leaves(&s), 1e-9 * leaves(&s));
    for (int64_t i = 0; i < N; i++) {
        least = fmin(least, ghp_sampler_ratio(&s, i));
        mean += ghp_sampler_ratio(&s, i) / N;
        ghp_sampler_learn(&other, i, ghp_sampler_norm(&s, i));
    }
    CHECK(least >= 0.5);
    CHECK_NEAR(mean, 1, 1e-12);
    CHECK(ghp_sampler_sum(&other) == ghp_sampler_sum(&s)); /* of the norms alone, to the bit */
    check_draws(&s, &other);
    ghp_sampler_release(&s);
    ghp_sampler_release(&other);
}

static void check_alone(void)
{
    struct ghp_sampler s;

    CHECK_STATUS(ghp_sampler_init(&s, 1, 1, 1, 1), GHP_OK);
    ghp_sampler_learn(&s, 0, 3);
    for (uint64_t k = 0; k < 10; k++)
        CHECK(ghp_sampler_draw(&s, k).sample == 0 && ghp_sampler_draw(&s, k).weight == 1);
    ghp_sampler_release(&s);
}

/* ---- logistic regression ---- */

enum { SAMPLES = 1000, FEATURES = 20 };

struct problem {
    double x[SAMPLES][FEATURES], y[SAMPLES], decay, rate, optimum[FEATURES];
};

static double normal(uint64_t stream, uint64_t index)
{
    double radius = sqrt(-2 * log(1 - uniform(stream, 2 * index)));

    return radius * cos(6.283185307179586 * uniform(stream, 2 * index + 1));
}

static double dot(const double *a, const double *b)
{
    double sum = 0;

    for (int j = 0; j < FEATURES; j++)
        sum += a[j] * b[j];
    return sum;
}

/* The slope of sample i, without decay: its gradient is the slope times x_i. */
static double slope(const struct problem *p, int64_t i, const double *w)
{
    return -p->y[i] / (1 + exp(p->y[i] * dot(p->x[i], w)));
}

static double gradient_norm(const struct problem *p, int64_t i, const double *w)
{
    return fabs(slope(p, i, w)) * sqrt(dot(p->x[i], p->x[i]));
}

/* The least point of the whole function, by Nesterov's rule. */
static void find_optimum(struct problem *p, double rate)
{
    double before[FEATURES] = {0}, at[FEATURES], g[FEATURES], *w = p->optimum;

    memset(w, 0, sizeof p->optimum);
    for (int k = 1; k <= 6000; k++) {
        for (int j = 0; j < FEATURES; j++) {
            at[j] = w[j] + (k - 1) / (k + 2.0) * (w[j] - before[j]);
            before[j] = w[j];
            g[j] = p->decay * at[j];
        }
        for (int64_t i = 0; i < SAMPLES; i++) {
            double of = slope(p, i, at) / SAMPLES;

            for (int j = 0; j < FEATURES; j++)
                g[j] += of * p->x[i][j];
        }
        for (int j = 0; j < FEATURES; j++)
            w[j] = at[j] - rate * g[j];
    }
}

/* Rows of length e^(1.5 normal), at most 20, or all of length 1. */
static void make(struct problem *p, uint64_t seed, bool alike)
{
    double longest = 0, smooth, truth[FEATURES];

    for (int j = 0; j < FEATURES; j++)
        truth[j] = normal(100 * seed, (uint64_t)j);
    for (int64_t i = 0; i < SAMPLES; i++) {
        double length = alike ? 1 : fmin(20, exp(1.5 * normal(100 * seed + 1, (uint64_t)i))), own;

        for (int j = 0; j < FEATURES; j++)
            p->x[i][j] = normal(100 * seed + 2, (uint64_t)(i * FEATURES + j));
        own = sqrt(dot(p->x[i], p->x[i]));
        for (int j = 0; j < FEATURES; j++)
            p->x[i][j] *= length / own;
        own = 1 / (1 + exp(-dot(p->x[i], truth)));
        p->y[i] = uniform(100 * seed + 3, (uint64_t)i) < own ? 1 : -1;
        longest = fmax(longest, length);
    }
    p->decay = 1.0 / SAMPLES;
    smooth = longest * longest / 4 + p->decay;
    p->rate = ghp_sampler_uniform / (2 * smooth);
    find_optimum(p, 1 / smooth);
}

/* Mean squared distance to the optimum in steps 200 n to 400 n. */
static double distance(const struct problem *p, double uniform)
{
    struct ghp_sampler s;
    double w[FEATURES] = {0}, sum = 0;

    if (ghp_sampler_init(&s, SAMPLES, uniform, 9, 0) != GHP_OK) return NAN;
    for (int64_t i = 0; i < SAMPLES; i++)
        ghp_sampler_learn(&s, i, gradient_norm(p, i, w));
    for (int64_t k = 0; k < 400 * SAMPLES; k++) {
        struct ghp_draw d = ghp_sampler_draw(&s, (uint64_t)k);
        double of = slope(p, d.sample, w), norm = gradient_norm(p, d.sample, w), off = 0;

        for (int j = 0; j < FEATURES; j++)
            w[j] -= p->rate * (d.weight * of * p->x[d.sample][j] + p->decay * w[j]);
        if (d.measures) ghp_sampler_learn(&s, d.sample, norm);
        if (k < 200 * SAMPLES) continue;
        for (int j = 0; j < FEATURES; j++)
            off += (w[j] - p->optimum[j]) * (w[j] - p->optimum[j]);
        sum += off / (200.0 * SAMPLES);
    }
    ghp_sampler_release(&s);
    return sum;
}

/* The mean of weighted gradients over all draws is the whole gradient. */
static void check_mean(const struct problem *p)
{
    struct ghp_sampler s;
    double w[FEATURES], whole[FEATURES] = {0}, mean[FEATURES] = {0}, off = 0;

    CHECK_STATUS(ghp_sampler_init(&s, SAMPLES, ghp_sampler_uniform, 9, 0), GHP_OK);
    for (int j = 0; j < FEATURES; j++)
        w[j] = normal(77, (uint64_t)j);
    for (int64_t i = 0; i < SAMPLES; i++)
        ghp_sampler_learn(&s, i, gradient_norm(p, i, w) * (0.5 + uniform(78, (uint64_t)i)));
    for (int64_t i = 0; i < SAMPLES; i++) {
        double chance = (1 - ghp_sampler_uniform) * ghp_sampler_norm(&s, i) / leaves(&s) +
                        ghp_sampler_uniform / SAMPLES;

        for (int j = 0; j < FEATURES; j++) {
            double g = slope(p, i, w) * p->x[i][j];

            whole[j] += g / SAMPLES;
            mean[j] += chance * g / ghp_sampler_ratio(&s, i);
        }
    }
    for (int j = 0; j < FEATURES; j++)
        off = fmax(off, fabs(whole[j] - mean[j]));
    CHECK(off <= 1e-12 * sqrt(dot(whole, whole)));
    ghp_sampler_release(&s);
}

static void check_regression(void)
{
    struct problem *p = malloc(sizeof *p);

    CHECK(p != NULL);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        double ratio;

        make(p, seed, false);
        check_mean(p);
        ratio = distance(p, 1) / distance(p, ghp_sampler_uniform);
        printf("rows of unlike length, seed %d: uniform / srg %.2f\n", (int)seed, ratio);
        CHECK(ratio >= 2);
        make(p, seed, true);
        ratio = distance(p, ghp_sampler_uniform) / distance(p, 1);
        printf("rows of one length, seed %d: srg / uniform %.2f\n", (int)seed, ratio);
        CHECK(ratio <= 1.2);
    }
    free(p);
}

CHECK_TEST(sampler)
{
    check_tree();
    check_alone();
    check_regression();
    return check_end();
}
