/* Orders, quantiles, intervals and winners of small contests, worked out by hand. */
#include "executor/compare/candidates.h"
#include "tests/check.h"

enum { MOST = 3 };

/* Two: AB BA BA AB; three: six rounds are the six orders. */
static void test_order(void)
{
    static const int two[4][2] = {{0, 1}, {1, 0}, {1, 0}, {0, 1}};
    static const int three[6][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0},
                                    {0, 2, 1}, {2, 0, 1}, {1, 0, 2}};
    int order[MOST];

    for (int r = 0; r < 4; r++) {
        ghp_candidates_order(r, 2, order);
        CHECK_EQ(order[0], two[r][0]);
        CHECK_EQ(order[1], two[r][1]);
    }
    for (int r = 0; r < 6; r++) {
        ghp_candidates_order(r, 3, order);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(order[i], three[r][i]);
    }
}

static void test_quantiles(void)
{
    static const double values[5] = {1, 2, 3, 4, 5};

    CHECK_NEAR(ghp_candidates_quantile(values, 5, 0), 1, 0);
    CHECK_NEAR(ghp_candidates_quantile(values, 5, 1), 5, 0);
    CHECK_NEAR(ghp_candidates_quantile(values, 5, 0.125), 1.5, 1e-15);
    CHECK_NEAR(ghp_candidates_quantile(values, 4, 0.5), 2.5, 0);
    CHECK_NEAR(ghp_candidates_quantile(values, 1, 0.25), 1, 0);
}

/* The values 1 to n, shuffled by a step that n does not share a factor with. */
static struct ghp_interval interval_of(int n, int step)
{
    double values[GHP_CANDIDATES_ROUNDS];

    for (int i = 0; i < n; i++)
        values[i] = 1 + i * step % n;
    return ghp_candidates_interval(values, n);
}

/* 1 - 2 P(X < k), X binomial (n, 1/2): n = 6, k = 1: 1 - 2/64; 9, 2: 1 - 20/512; 10, 2: 1 - 22/1024;
 * 20, 6: 1 - 2 (1 + 20 + 190 + 1140 + 4845 + 15504) / 2^20. With k + 1 each would cover less than 0.95. */
static void test_intervals(void)
{
    struct ghp_interval i = interval_of(5, 2);

    CHECK_NEAR(i.median, 3, 0);
    CHECK(i.coverage == 0 && isnan(i.low) && isnan(i.high));
    i = interval_of(6, 5);
    CHECK_NEAR(i.median, 3.5, 0);
    CHECK(i.low == 1 && i.high == 6);
    CHECK_NEAR(i.coverage, 0.96875, 1e-15);
    i = interval_of(9, 2);
    CHECK(i.low == 2 && i.high == 8);
    CHECK_NEAR(i.coverage, 1 - 20.0 / 512, 1e-15);
    i = interval_of(10, 3);
    CHECK(i.low == 2 && i.high == 9);
    CHECK_NEAR(i.coverage, 1 - 22.0 / 1024, 1e-15);
    i = interval_of(20, 7);
    CHECK(i.low == 6 && i.high == 15);
    CHECK_NEAR(i.coverage, 1 - 2.0 * 21700 / 1048576, 1e-15);
    i = interval_of(GHP_CANDIDATES_ROUNDS, 7); /* no underflow: 500 -+ 1.96 sqrt(1000) / 2 */
    CHECK_NEAR(i.low, 469, 1);
    CHECK_NEAR(i.high, 532, 1);
    CHECK(i.coverage >= 0.95 && i.coverage < 0.96);
}

/* A machine that slows down from round to round, by more than the contestants differ: ratios see through it. */
static void test_judge(void)
{
    double seconds[6][2];
    struct ghp_standing standings[2];
    struct ghp_contest c = {.n = 2, .rounds = 6, .seconds = &seconds[0][0], .standings = standings};

    for (int r = 0; r < 6; r++) {
        seconds[r][0] = 1 + r;
        seconds[r][1] = (1 + r) * 0.75;
    }
    seconds[5][1] = 6 * 0.875;
    ghp_candidates_evaluate(&c);
    CHECK_EQ(c.winner, 1);
    CHECK(c.certain);
    CHECK_NEAR(standings[0].measured_s, 3.5, 0);
    CHECK_NEAR(standings[0].spread, (4.75 - 2.25) / 3.5, 1e-15);
    CHECK_NEAR(standings[1].measured_s, 2.625, 0);
    CHECK_NEAR(standings[0].ratio.median, 1, 0);
    CHECK(standings[0].ratio.low == 1 && standings[0].ratio.high == 1);
    CHECK_NEAR(standings[1].ratio.median, 0.75, 0);
    CHECK_NEAR(standings[1].ratio.low, 0.75, 0);
    CHECK_NEAR(standings[1].ratio.high, 0.875, 0);
    seconds[5][1] = 6.5; /* slower once in six rounds: the interval reaches beyond 1 */
    ghp_candidates_evaluate(&c);
    CHECK_EQ(c.winner, 1);
    CHECK(!c.certain);
    c.rounds = 5; /* always faster, but five rounds prove nothing */
    ghp_candidates_evaluate(&c);
    CHECK_EQ(c.winner, 1);
    CHECK(!c.certain);
}

/* The first is not the winner, and two others are too close. */
static void test_three(void)
{
    double seconds[6][3];
    struct ghp_standing standings[3];
    struct ghp_contest c = {.n = 3, .rounds = 6, .seconds = &seconds[0][0], .standings = standings};

    for (int r = 0; r < 6; r++) {
        seconds[r][0] = 4;
        seconds[r][1] = r % 2 == 0 ? 1.5 : 2.5;
        seconds[r][2] = 1.75;
    }
    ghp_candidates_evaluate(&c);
    CHECK_EQ(c.winner, 2);
    CHECK(!c.certain);
    CHECK_NEAR(standings[2].ratio.high, 1.75 / 4, 0);
    for (int r = 0; r < 6; r++)
        seconds[r][1] = 2.5;
    ghp_candidates_evaluate(&c);
    CHECK_EQ(c.winner, 2);
    CHECK(c.certain);
}

CHECK_TEST(candidates)
{
    test_order();
    test_quantiles();
    test_intervals();
    test_judge();
    test_three();
    return check_end();
}
