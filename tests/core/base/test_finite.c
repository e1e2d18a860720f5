/* One number that is not finite among many is seen at every place and in every length, as NaN and as either infinity;
 * the largest and smallest finite numbers count as finite. */
#include "core/base/finite.h"
#include "tests/check.h"

#include <float.h>
#include <math.h>

enum { MOST = 67 };

CHECK_TEST(finite)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const double good[] = {FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45, -0.0};
    float floats[MOST];
    double doubles[MOST];

    for (int n = 0; n <= MOST; n++) {
        for (int i = 0; i < n; i++)
            doubles[i] = floats[i] = (float)good[i % 5];
        CHECK(ghp_are_finite(floats, n, 4) && ghp_are_finite(doubles, n, 8));
        for (int i = 0; i < n; i++) {
            float before = floats[i];

            doubles[i] = floats[i] = (float)bad[i % 3];
            CHECK(!ghp_are_finite(floats, n, 4) && !ghp_are_finite(doubles, n, 8));
            CHECK_EQ(ghp_count_not_finite(floats, n, 4), 1);
            CHECK_EQ(ghp_count_not_finite(doubles, n, 8), 1);
            doubles[i] = floats[i] = before;
        }
    }
    doubles[0] = DBL_MAX;
    CHECK(ghp_are_finite(doubles, 1, 8));
    return check_end();
}
