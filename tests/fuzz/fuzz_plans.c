/* tests/fuzz/fuzz_plans.c - the reader of sets of plans: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/plan/plan_set.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_plan_set set = {0}, again = {0};
    char first[512], second[512];

    (void)bytes;
    (void)n;
    if (ghp_plan_set_load(path, &set) != GHP_OK) return false;
    fuzz_path("first", first, sizeof(first));
    fuzz_path("second", second, sizeof(second));
    GHP_ASSERT_EQ(ghp_plan_set_save(first, &set), GHP_OK);
    GHP_ASSERT_EQ(ghp_plan_set_load(first, &again), GHP_OK);
    GHP_ASSERT_EQ(ghp_plan_set_save(second, &again), GHP_OK);
    fuzz_equal(first, second);
    ghp_plan_set_release(&again);
    ghp_plan_set_release(&set);
    return true;
}
