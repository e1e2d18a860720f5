/* tests/fuzz/fuzz_plan.c - the plan reader: what is accepted is written, read and written again to equal bytes, and
 * can be lowered, simulated and checked (ghp-inspect --verify), whatever the answer. */
#include "core/plan/plan.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_plan plan = {0}, again = {0};
    char first[512], second[512];

    (void)bytes;
    (void)n;
    if (ghp_plan_load(path, &plan) != GHP_OK) return false;
    fuzz_path("first", first, sizeof(first));
    fuzz_path("second", second, sizeof(second));
    GHP_ASSERT_EQ(ghp_plan_save(first, &plan), GHP_OK);
    GHP_ASSERT_EQ(ghp_plan_load(first, &again), GHP_OK);
    GHP_ASSERT_EQ(ghp_plan_save(second, &again), GHP_OK);
    fuzz_equal(first, second);
    (void)ghp_plan_verify(&plan, &plan.profile);
    ghp_plan_release(&again);
    ghp_plan_release(&plan);
    return true;
}
