/* tests/profiler/worklist/test_trials.c - an algorithm is not tried again where it lost by far for an operation much
 * alike; the nearest one counts, what is not alike says nothing, and one always stays. */
#include "profiler/worklist/trials.h"
#include "tests/check.h"

#include <string.h>

static struct ghp_worklist_op conv(int64_t n, int64_t c, int64_t k, int64_t size)
{
    struct ghp_worklist_op op = {.local = {.op = GHP_OP_CONV2D,
                                           .n = n,
                                           .c = c,
                                           .h = size,
                                           .w = size,
                                           .k = k,
                                           .p = size,
                                           .q = size},
                                 .pass = GHP_PASS_FORWARD,
                                 .n_variants = 2};

    op.local.window =
        (struct ghp_window){.r = 3, .s = 3, .stride_h = 1, .stride_w = 1, .groups = 1};
    op.variants[0].x = op.variants[0].y = true;
    return op;
}

static void add(struct ghp_trials *trials, const struct ghp_worklist_op *op, int which,
                const char *name, double times)
{
    CHECK_STATUS(ghp_trials_add(trials, op, which, name, (const double[]){times * 1e-3, 1e-3}),
                 GHP_OK);
}

static const struct ghp_algorithms all = {3, {"direct", "winograd", "gemm"}};

/* What of all is left, in its order. */
static const char *narrowed(const struct ghp_trials *trials, const struct ghp_worklist_op *op)
{
    static char text[64];
    struct ghp_algorithms list = all;

    text[0] = '\0';
    ghp_trials_narrow(trials, op, 0, &list);
    for (int i = 0; i < list.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", list.names[i]);
    return text;
}

static void check_narrow(void)
{
    struct ghp_trials trials = {0};
    struct ghp_worklist_op tried = conv(32, 64, 64, 16), same = tried, other = tried;

    CHECK_TEXT(narrowed(&trials, &same), "direct winograd gemm ");
    add(&trials, &tried, 0, "direct", 1.6);
    add(&trials, &tried, 0, "winograd", 1);
    add(&trials, &tried, 0, "gemm", 4);
    CHECK_TEXT(narrowed(&trials, &same), "winograd ");
    other = conv(64, 64, 32, 16); /* two doublings: less than 1.75 times may have changed */
    CHECK_TEXT(narrowed(&trials, &other), "winograd direct ");
    other = conv(32, 64, 8, 16); /* three of one size */
    CHECK_TEXT(narrowed(&trials, &other), "direct winograd gemm ");
    other = conv(32, 64, 64, 8); /* half the side */
    CHECK_TEXT(narrowed(&trials, &other), "direct winograd gemm ");
    other = same;
    other.pass = GHP_PASS_BACKWARD_DATA;
    CHECK_TEXT(narrowed(&trials, &other), "direct winograd gemm ");
    other = same;
    other.local.window.r = 1;
    CHECK_TEXT(narrowed(&trials, &other), "direct winograd gemm ");
    other = same;
    other.variants[0].y = false;
    CHECK_TEXT(narrowed(&trials, &other), "direct winograd gemm ");
    other = conv(32, 64, 32, 16); /* it is nearer to what was tried with as many channels */
    add(&trials, &other, 0, "direct", 1);
    add(&trials, &other, 0, "winograd", 1.3);
    CHECK_TEXT(narrowed(&trials, &other), "direct ");
    ghp_trials_release(&trials);
}

static void check_one_stays(void)
{
    struct ghp_trials trials = {0};
    const struct ghp_worklist_op op = conv(32, 64, 64, 16);

    for (int i = 0; i < all.n; i++)
        add(&trials, &op, 0, all.names[i], 9);
    CHECK_TEXT(narrowed(&trials, &op), "direct winograd gemm ");
    ghp_trials_release(&trials);
}

/* In plain formats it cannot be quicker than in blocked ones, unless it reorders there. */
static void check_least(void)
{
    struct ghp_trials trials = {0};
    const struct ghp_worklist_op op = conv(32, 64, 64, 16), other = conv(16, 64, 64, 16);

    add(&trials, &op, 0, "direct", 2);
    add(&trials, &op, 0, "gemm+reorder", 3);
    CHECK_NEAR(ghp_trials_least_s(&trials, &op, 1, "direct+reorder"), 2e-3, 1e-12);
    CHECK(!(ghp_trials_least_s(&trials, &op, 1, "gemm") > 0));
    CHECK(!(ghp_trials_least_s(&trials, &op, 0, "direct") > 0));
    CHECK(!(ghp_trials_least_s(&trials, &other, 1, "direct") > 0));
    ghp_trials_release(&trials);
}

CHECK_TEST(trials)
{
    (void)argc;
    (void)argv;
    check_narrow();
    check_one_stays();
    check_least();
    return check_end();
}
