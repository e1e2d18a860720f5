/* Arithmetic on weights in a row, of floats and of doubles, by the formulas of executor/mixing/flat.h: sums that must
 * stay do, and a pull of x to itself leaves its bits. */
#include "executor/mixing/flat.h"
#include "tests/check.h"

enum { N = 5 };

struct row {
    float narrow[N];
    double wide[N];
};

static struct ghp_flat flat_of(struct row *row, int bytes)
{
    return bytes == 8 ? (struct ghp_flat){row->wide, N, 8} : (struct ghp_flat){row->narrow, N, 4};
}

static double value(struct ghp_flat x, int i)
{
    return x.element_bytes == 8 ? ((const double *)x.at)[i] : (double)((const float *)x.at)[i];
}

/* Sixteenths: every result below is exact in either precision. */
static double first(int row, int i)
{
    return row * 2.0 + i / 16.0 - 1;
}

static struct ghp_flat fill(struct row *rows, int k, int bytes)
{
    for (int i = 0; i < N; i++) {
        rows[k].wide[i] = first(k, i);
        rows[k].narrow[i] = (float)first(k, i);
    }
    return flat_of(&rows[k], bytes);
}

static void check_bytes(int bytes)
{
    struct row rows[4];
    struct ghp_flat x, y, mine, other;

#define EACH(call, expected)                                                                       \
    x = fill(rows, 0, bytes);                                                                      \
    y = fill(rows, 1, bytes);                                                                      \
    mine = fill(rows, 2, bytes);                                                                   \
    other = fill(rows, 3, bytes);                                                                  \
    call;                                                                                          \
    for (int i = 0; i < N; i++) {                                                                  \
        double a = first(0, i), b = first(1, i), c = first(2, i), d = first(3, i);                 \
                                                                                                   \
        (void)a, (void)b, (void)c, (void)d;                                                        \
        CHECK_NEAR(value(x, i), expected, 0);                                                      \
    }
    EACH(ghp_flat_copy(x, y), b)
    EACH(ghp_flat_clear(x), 0)
    EACH(ghp_flat_scale(x, .5, y), b / 2)
    EACH(ghp_flat_combine(x, .5, y, .25), a / 2 + b / 4)
    EACH(ghp_flat_add(x, -2, y), a - 2 * b)
    EACH(ghp_flat_subtract(x, y, mine), b - c)
    EACH(ghp_flat_pull(x, .5, y), a + (b - a) / 2)
    EACH(ghp_flat_draw(x, y, .25), a - (a - b) / 4)
    for (int i = 0; i < N; i++)
        CHECK_NEAR(value(x, i) + value(y, i), first(0, i) + first(1, i), 0);
    EACH(ghp_flat_meet(x, y, mine, other), a + (d - c) / 2)
    for (int i = 0; i < N; i++)
        CHECK_NEAR(value(y, i), first(1, i) + (first(3, i) - first(2, i)) / 2, 0);
#undef EACH
}

/* With numbers that are not sums of powers of two. */
static void check_pull_to_itself(void)
{
    float at[N] = {.1F, 1e-30F, 3e7F, -.7F, 1.0F / 3}, same[N];
    struct ghp_flat x = {at, N, 4}, y = {same, N, 4};

    ghp_flat_copy(y, x);
    ghp_flat_pull(x, .1, y);
    CHECK(memcmp(at, same, sizeof at) == 0);
}

CHECK_TEST(flat)
{
    check_bytes(8);
    check_bytes(4);
    check_pull_to_itself();
    return check_end();
}
