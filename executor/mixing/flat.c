/* executor/mixing/flat.c - see flat.h. */
#include "executor/mixing/flat.h"

#include "core/base/status.h"

#include <string.h>

void ghp_flat_copy(struct ghp_flat to, struct ghp_flat from)
{
    GHP_ASSERT(to.n == from.n && to.element_bytes == from.element_bytes);
    memcpy(to.at, from.at, (size_t)to.n * (size_t)to.element_bytes);
}

void ghp_flat_clear(struct ghp_flat x)
{
    memset(x.at, 0, (size_t)x.n * (size_t)x.element_bytes);
}

void ghp_flat_scale(struct ghp_flat to, double by, struct ghp_flat from)
{
    double *wide = to.at;
    const double *wide_from = from.at;
    float *narrow = to.at, factor = (float)by;
    const float *narrow_from = from.at;

    GHP_ASSERT(to.n == from.n && to.element_bytes == from.element_bytes);
    for (int64_t i = 0; i < to.n && to.element_bytes == 8; i++)
        wide[i] = by * wide_from[i];
    for (int64_t i = 0; i < to.n && to.element_bytes != 8; i++)
        narrow[i] = factor * narrow_from[i];
}

void ghp_flat_combine(struct ghp_flat x, double of_x, struct ghp_flat y, double of_y)
{
    double *wide = x.at;
    const double *wide_y = y.at;
    float *narrow = x.at;
    const float *narrow_y = y.at;

    GHP_ASSERT(x.n == y.n && x.element_bytes == y.element_bytes);
    for (int64_t i = 0; i < x.n && x.element_bytes == 8; i++)
        wide[i] = of_x * wide[i] + of_y * wide_y[i];
    for (int64_t i = 0; i < x.n && x.element_bytes != 8; i++)
        narrow[i] = (float)(of_x * (double)narrow[i] + of_y * (double)narrow_y[i]);
}

void ghp_flat_add(struct ghp_flat x, double by, struct ghp_flat y)
{
    double *wide = x.at;
    const double *wide_y = y.at;
    float *narrow = x.at, factor = (float)by;
    const float *narrow_y = y.at;

    GHP_ASSERT(x.n == y.n && x.element_bytes == y.element_bytes);
    for (int64_t i = 0; i < x.n && x.element_bytes == 8; i++)
        wide[i] += by * wide_y[i];
    for (int64_t i = 0; i < x.n && x.element_bytes != 8; i++)
        narrow[i] += factor * narrow_y[i];
}

void ghp_flat_subtract(struct ghp_flat to, struct ghp_flat a, struct ghp_flat b)
{
    double *wide = to.at;
    const double *wide_a = a.at, *wide_b = b.at;
    float *narrow = to.at;
    const float *narrow_a = a.at, *narrow_b = b.at;

    GHP_ASSERT(to.n == a.n && to.n == b.n && to.element_bytes == a.element_bytes);
    for (int64_t i = 0; i < to.n && to.element_bytes == 8; i++)
        wide[i] = wide_a[i] - wide_b[i];
    for (int64_t i = 0; i < to.n && to.element_bytes != 8; i++)
        narrow[i] = narrow_a[i] - narrow_b[i];
}

void ghp_flat_pull(struct ghp_flat x, double by, struct ghp_flat y)
{
    double *wide = x.at;
    const double *wide_y = y.at;
    float *narrow = x.at, factor = (float)by;
    const float *narrow_y = y.at;

    GHP_ASSERT(x.n == y.n && x.element_bytes == y.element_bytes);
    for (int64_t i = 0; i < x.n && x.element_bytes == 8; i++)
        wide[i] += by * (wide_y[i] - wide[i]);
    for (int64_t i = 0; i < x.n && x.element_bytes != 8; i++)
        narrow[i] += factor * (narrow_y[i] - narrow[i]);
}

void ghp_flat_draw(struct ghp_flat x, struct ghp_flat y, double by)
{
    double *wide = x.at, *wide_y = y.at;
    float *narrow = x.at, *narrow_y = y.at, factor = (float)by;

    GHP_ASSERT(x.n == y.n && x.element_bytes == y.element_bytes);
    for (int64_t i = 0; i < x.n && x.element_bytes == 8; i++) {
        double e = by * (wide[i] - wide_y[i]);

        wide_y[i] += e;
        wide[i] -= e;
    }
    for (int64_t i = 0; i < x.n && x.element_bytes != 8; i++) {
        float e = factor * (narrow[i] - narrow_y[i]);

        narrow_y[i] += e;
        narrow[i] -= e;
    }
}

void ghp_flat_meet(struct ghp_flat x, struct ghp_flat moved, struct ghp_flat mine,
                   struct ghp_flat other)
{
    double *wide = x.at, *wide_moved = moved.at;
    const double *wide_mine = mine.at, *wide_other = other.at;
    float *narrow = x.at, *narrow_moved = moved.at;
    const float *narrow_mine = mine.at, *narrow_other = other.at;

    GHP_ASSERT(x.n == moved.n && x.n == mine.n && x.n == other.n);
    for (int64_t i = 0; i < x.n && x.element_bytes == 8; i++) {
        double e = (wide_other[i] - wide_mine[i]) / 2;

        wide[i] += e;
        wide_moved[i] += e;
    }
    for (int64_t i = 0; i < x.n && x.element_bytes != 8; i++) {
        float e = (narrow_other[i] - narrow_mine[i]) / 2;

        narrow[i] += e;
        narrow_moved[i] += e;
    }
}
