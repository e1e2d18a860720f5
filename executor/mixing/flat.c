/* executor/mixing/flat.c - see flat.h. */
#include "executor/mixing/flat.h"

#include "core/base/status.h"

#include <string.h>

static void check_alike(struct ghp_flat x, struct ghp_flat y)
{
    GHP_ASSERT(x.n == y.n && x.element_bytes == y.element_bytes);
}

/* A statement for each element: a[i] of the first, b[i] of the second; f is `by`. All are of type `number`, as are
 * elements of a third, ROW(z)[i]. */
#define EACH(first, second, by, STATEMENT)                                                         \
    check_alike(first, second);                                                                    \
    if ((first).element_bytes == 8)                                                                \
        EACH_NUMBER(double, first, second, by, STATEMENT)                                          \
    else                                                                                           \
        EACH_NUMBER(float, first, second, by, STATEMENT)
#define EACH_NUMBER(type, first, second, by, STATEMENT)                                            \
    {                                                                                              \
        typedef type number;                                                                       \
        number *a = (first).at, *b = (second).at, f = (number)(by);                                \
                                                                                                   \
        (void)f;                                                                                   \
        for (int64_t i = 0; i < (first).n; i++) {                                                  \
            STATEMENT                                                                              \
        }                                                                                          \
    }
#define ROW(z) ((const number *)(z).at)

void ghp_flat_copy(struct ghp_flat to, struct ghp_flat from)
{
    check_alike(to, from);
    memcpy(to.at, from.at, (size_t)to.n * (size_t)to.element_bytes);
}

void ghp_flat_clear(struct ghp_flat x)
{
    memset(x.at, 0, (size_t)x.n * (size_t)x.element_bytes);
}

void ghp_flat_scale(struct ghp_flat to, double by, struct ghp_flat from)
{
    EACH(to, from, by, a[i] = f * b[i];)
}

void ghp_flat_combine(struct ghp_flat x, double of_x, struct ghp_flat y, double of_y)
{
    EACH(x, y, 1, a[i] = (number)(of_x * (double)a[i] + of_y * (double)b[i]);)
}

void ghp_flat_add(struct ghp_flat x, double by, struct ghp_flat y)
{
    EACH(x, y, by, a[i] += f * b[i];)
}

void ghp_flat_subtract(struct ghp_flat to, struct ghp_flat x, struct ghp_flat y)
{
    check_alike(to, y);
    EACH(to, x, 1, a[i] = b[i] - ROW(y)[i];)
}

void ghp_flat_pull(struct ghp_flat x, double by, struct ghp_flat y)
{
    EACH(x, y, by, a[i] += f * (b[i] - a[i]);)
}

void ghp_flat_draw(struct ghp_flat x, struct ghp_flat y, double by)
{
    EACH(x, y, by, {
        number e = f * (a[i] - b[i]);

        b[i] += e;
        a[i] -= e;
    })
}

void ghp_flat_meet(struct ghp_flat x, struct ghp_flat moved, struct ghp_flat mine,
                   struct ghp_flat other)
{
    check_alike(x, mine);
    check_alike(x, other);
    EACH(x, moved, 1, {
        number e = (ROW(other)[i] - ROW(mine)[i]) / 2;

        a[i] += e;
        b[i] += e;
    })
}
