/* An array keeps its items as it grows, grows only if it is full, and is as before where no larger one can be. */
#include "core/base/array.h"
#include "tests/check.h"

#include <limits.h>
#include <stdlib.h>

struct numbers {
    int64_t *of;
    int n, max;
};

static enum ghp_status add(struct numbers *numbers, int64_t number)
{
    GHP_TRY_ROOM(numbers->of, numbers->n, numbers->max);
    numbers->of[numbers->n++] = number;
    return GHP_OK;
}

CHECK_TEST(array)
{
    struct numbers numbers = {0}, large;

    for (int i = 0; i < 1000; i++) {
        int room = numbers.max;

        CHECK_STATUS(add(&numbers, i), GHP_OK);
        CHECK(numbers.max == room || (i == room && numbers.max >= 2 * room));
    }
    for (int i = 0; i < numbers.n; i++)
        CHECK_EQ(numbers.of[i], i);
    large = numbers;
    large.n = large.max = INT_MAX / 2 + 1; /* twice as many cannot be counted */
    CHECK_STATUS(add(&large, 0), GHP_ERR_NO_MEMORY);
    CHECK(large.of == numbers.of && large.n == INT_MAX / 2 + 1 && large.max == large.n);
    free(numbers.of);
    return check_end();
}
