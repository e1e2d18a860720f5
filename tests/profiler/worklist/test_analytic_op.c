/* tests/profiler/worklist/test_analytic_op.c - the analytic model of a kind finds the two rates that made its
 * measurements, stays above nothing, and knows what it does not know. */
#include "profiler/worklist/analytic_op.h"
#include "tests/check.h"

static const double flop_s = 1e-11, byte_s = 4e-10;

static struct ghp_op_work conv(double flops, double bytes)
{
    return (struct ghp_op_work){GHP_OP_CONV2D, GHP_PASS_FORWARD, flops, bytes};
}

static void add(struct ghp_analytic_op *laws, double flops, double bytes, double seconds)
{
    const struct ghp_op_work work = conv(flops, bytes);

    ghp_analytic_op_add(laws, &work, seconds);
}

static double seconds(const struct ghp_analytic_op *laws, double flops, double bytes)
{
    const struct ghp_op_work work = conv(flops, bytes);

    return ghp_analytic_op_seconds(laws, &work);
}

static void check_two_terms(void)
{
    struct ghp_analytic_op laws = {0};
    const double work[][2] = {{1e9, 1e6}, {5e8, 2e7}, {2e7, 9e6}, {1e8, 4e7}};

    for (size_t i = 0; i < sizeof work / sizeof work[0]; i++)
        add(&laws, work[i][0], work[i][1], flop_s * work[i][0] + byte_s * work[i][1]);
    CHECK_NEAR(seconds(&laws, 3e9, 1e6), flop_s * 3e9 + byte_s * 1e6, 1e-9);
    CHECK_NEAR(seconds(&laws, 1e6, 1e7), flop_s * 1e6 + byte_s * 1e7, 1e-9);
}

/* All in one proportion, or one alone: nothing tells the terms apart. */
static void check_one_term(void)
{
    struct ghp_analytic_op laws = {0};

    CHECK(!(seconds(&laws, 1e9, 1e6) > 0));
    add(&laws, 1e9, 1e6, 1e-2);
    CHECK_NEAR(seconds(&laws, 2e9, 5e6), 2e-2, 1e-9);
    add(&laws, 4e9, 4e6, 4e-2);
    CHECK_NEAR(seconds(&laws, 2e9, 5e6), 2e-2, 1e-9);
}

/* If bytes seem to save time, the term is left out. */
static void check_signs(void)
{
    struct ghp_analytic_op laws = {0};

    add(&laws, 1e9, 1e6, 1e-2);
    add(&laws, 1e9, 2e6, 0.5e-2);
    CHECK(seconds(&laws, 1e9, 1e9) < 1e-2);
    CHECK(seconds(&laws, 1e9, 1e9) > 0.5e-2);
}

static void check_bytes(void)
{
    struct ghp_analytic_op laws = {0};
    struct ghp_op_work relu = {GHP_OP_RELU, GHP_PASS_FORWARD, 0, 1e6};

    ghp_analytic_op_add(&laws, &relu, byte_s * 1e6);
    relu.bytes = 3e7;
    CHECK_NEAR(ghp_analytic_op_seconds(&laws, &relu), byte_s * 3e7, 1e-9);
    relu.pass = GHP_PASS_BACKWARD_DATA;
    CHECK(!(ghp_analytic_op_seconds(&laws, &relu) > 0));
}

CHECK_TEST(analytic_op)
{
    check_two_terms();
    check_one_term();
    check_signs();
    check_bytes();
    return check_end();
}
