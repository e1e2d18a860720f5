/* core/base/finite.c - see base/finite.h. x - x is 0, or NaN if x is not finite: a sum of those needs no comparison
 * each, and vectors can do it. */
#include "core/base/finite.h"

#include <math.h>

enum { LANES = 16 };

#define FINITE(number)                                                                             \
    static bool are_finite_##number(const number *x, int64_t n)                                    \
    {                                                                                              \
        number lanes[LANES] = {0}, sum = 0;                                                        \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int lane = 0; lane < LANES; lane++)                                               \
                lanes[lane] += x[i + lane] - x[i + lane];                                          \
        for (; i < n; i++)                                                                         \
            sum += x[i] - x[i];                                                                    \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            sum += lanes[lane];                                                                    \
        return !isnan(sum);                                                                        \
    }
FINITE(float)
FINITE(double)

bool ghp_are_finite(const void *numbers, int64_t n, int bytes)
{
    return bytes == 8 ? are_finite_double(numbers, n) : are_finite_float(numbers, n);
}

int64_t ghp_count_not_finite(const void *numbers, int64_t n, int bytes)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        count += bytes == 8 ? !isfinite(((const double *)numbers)[i])
                            : !isfinite(((const float *)numbers)[i]);
    return count;
}
