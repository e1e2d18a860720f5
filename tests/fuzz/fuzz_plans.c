/* tests/fuzz/fuzz_plans.c - the reader of sets of plans: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/plan/plan_set.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_plan_set, (void)0)
