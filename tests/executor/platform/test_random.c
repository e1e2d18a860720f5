/* tests/executor/platform/test_random.c - random numbers: published vectors, slices, moments, independence of
 * the uses. */
#include "executor/platform/random.h"
#include "tests/check.h"

/* Random123's known answers for philox4x32-10 (kat_vectors); the first use's key is the seed itself. */
static void check_vectors(void)
{
    struct ghp_random_block r = ghp_random_philox(0, 0, 0, 0, 0);
    CHECK_EQ(r.v[0], 0x6627e8d5u);
    CHECK_EQ(r.v[1], 0xe169c58du);
    CHECK_EQ(r.v[2], 0xbc57ac4cu);
    CHECK_EQ(r.v[3], 0x9b00dbd8u);
    r = ghp_random_philox(UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX);
    CHECK_EQ(r.v[0], 0x408f276du);
    CHECK_EQ(r.v[1], 0x41c83b0eu);
    CHECK_EQ(r.v[2], 0xa20bc7c6u);
    CHECK_EQ(r.v[3], 0x6d5451fdu);
    r = ghp_random_philox(UINT64_C(0x299f31d0a4093822), 0x243f6a88u, 0x85a308d3u, 0x13198a2eu,
                          0x03707344u);
    CHECK_EQ(r.v[0], 0xd16cfe09u);
    CHECK_EQ(r.v[1], 0x94fdccebu);
    CHECK_EQ(r.v[2], 0x5001e420u);
    CHECK_EQ(r.v[3], 0x24126ea1u);
}

static void check_fill(void)
{
    const uint32_t counter[4] = {UINT32_MAX - 2, 7, 8, 9};
    uint32_t numbers[4 * 6];
    ghp_random_fill(5, counter, 6, numbers);
    for (uint32_t i = 0; i < 6; i++) {
        struct ghp_random_block r = ghp_random_philox(5, counter[0] + i, 7, 8, 9);
        for (int j = 0; j < 4; j++)
            CHECK_EQ(numbers[4 * i + (uint32_t)j], r.v[j]);
    }
}

typedef void fill_type(uint64_t, uint64_t, int64_t, int64_t, double, int, void *);

/* Any slice has the values of the whole, bit for bit; floats are the rounded doubles. */
static void check_slices(fill_type *fill)
{
    enum { N = 103 };
    double whole[N], slice[N];
    float floats[N];
    fill(11, 12, 0, N, 0.5, 8, whole);
    for (int64_t first = 0; first < 12; first++)
        for (int64_t n = 0; n <= N - first; n += 13) {
            memset(slice, 0, sizeof slice);
            fill(11, 12, first, n, 0.5, 8, slice);
            CHECK(memcmp(slice, whole + first, (size_t)n * sizeof *slice) == 0);
            CHECK(n == N || slice[n] == 0.0);
        }
    fill(11, 12, 0, N, 0.5, 4, floats);
    for (int i = 0; i < N; i++)
        CHECK(floats[i] == (float)whole[i]);
}

/* Mean and square of 2^18 uniform numbers in [-2, 2), 6 standard errors: of the square sqrt(64/45/n). */
static void check_uniform(void)
{
    enum { N = 1 << 18 };
    double *x = malloc(N * sizeof *x), sum = 0.0, square = 0.0, next = 0.0;

    if (x == NULL) exit(1);
    ghp_random_fill_uniform(3, 4, 0, N, 2.0, 8, x);
    for (int i = 0; i < N; i++) {
        CHECK(x[i] >= -2.0 && x[i] < 2.0);
        sum += x[i];
        square += x[i] * x[i];
        next += x[i] * x[(i + 1) % N];
    }
    CHECK_NEAR(sum / N, 0.0, 6.0 * sqrt(4.0 / 3.0 / N));
    CHECK_NEAR(square / N, 4.0 / 3.0, 6.0 * sqrt(64.0 / 45.0 / N));
    CHECK_NEAR(next / N, 0.0, 6.0 * 4.0 / 3.0 / sqrt((double)N));
    free(x);
}

/* Moments of 2^18 deviates, 6 standard errors: 1/sqrt(n) of the mean, sqrt(2/n), sqrt(96/n) of the fourth. */
static void check_moments(void)
{
    enum { N = 1 << 18 };
    double *x = malloc(N * sizeof *x), sum = 0.0, square = 0.0, fourth = 0.0, next = 0.0;
    if (x == NULL) exit(1);
    ghp_random_fill_normal(3, 4, 0, N, 1.0, 8, x);
    for (int i = 0; i < N; i++) {
        sum += x[i];
        square += x[i] * x[i];
        fourth += x[i] * x[i] * x[i] * x[i];
        next += x[i] * x[(i + 1) % N];
    }
    CHECK_NEAR(sum / N, 0.0, 6.0 / sqrt((double)N));
    CHECK_NEAR(square / N, 1.0, 6.0 * sqrt(2.0 / N));
    CHECK_NEAR(fourth / N, 3.0, 6.0 * sqrt(96.0 / N));
    CHECK_NEAR(next / N, 0.0, 6.0 / sqrt((double)N));
    free(x);
}

/* Keys that differ in one part give different numbers; equal keys give equal ones. */
static void check_keys(void)
{
    double a, b;
    uint64_t number = ghp_random_u64(1, 2, 3);
    CHECK(number == ghp_random_u64(1, 2, 3));
    CHECK(number != ghp_random_u64(2, 2, 3));
    CHECK(number != ghp_random_u64(1, 3, 3));
    CHECK(number != ghp_random_u64(1, 2, 4));
    CHECK(number != ghp_random_u64(1, 2, UINT64_C(3) << 32));
    CHECK((uint32_t)number != ghp_random_philox(1, 3, 0, 2, 0).v[0]);
    ghp_random_fill_normal(1, 2, UINT64_C(1) << 34, 1, 1.0, 8, &a);
    ghp_random_fill_normal(1, 2, 0, 1, 1.0, 8, &b);
    CHECK(a != b);
    ghp_random_fill_normal(1, UINT64_C(2) << 32, 0, 1, 1.0, 8, &a);
    CHECK(a != b);
}

CHECK_TEST(random)
{
    check_vectors();
    check_fill();
    check_slices(ghp_random_fill_normal);
    check_slices(ghp_random_fill_uniform);
    check_uniform();
    check_moments();
    check_keys();
    return check_end();
}
