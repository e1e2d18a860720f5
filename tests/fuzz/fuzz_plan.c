/* tests/fuzz/fuzz_plan.c - the plan reader: what is accepted is written, read and written again to equal bytes, and
 * can be lowered, simulated and checked (ghp-inspect --verify), whatever the answer. */
#include "core/plan/plan.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_plan, (void)ghp_plan_verify(&value, &value.profile))
