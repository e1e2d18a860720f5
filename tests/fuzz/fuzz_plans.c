/* tests/fuzz/fuzz_plans.c - the reader of sets of plans: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/plan/plan_set.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_plan_set)

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_plan_set set = {0};

    (void)bytes;
    (void)n;
    if (!written_again(path, &set)) return false;
    ghp_plan_set_release(&set);
    return true;
}
