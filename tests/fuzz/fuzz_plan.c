/* tests/fuzz/fuzz_plan.c - the plan reader: what is accepted is written, read and written again to equal bytes, and
 * can be lowered, simulated and checked (ghp-inspect --verify), whatever the answer. */
#include "core/plan/plan.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_plan)

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_plan plan = {0};

    (void)bytes;
    (void)n;
    if (!written_again(path, &plan)) return false;
    (void)ghp_plan_verify(&plan, &plan.profile);
    ghp_plan_release(&plan);
    return true;
}
