/* tests/fuzz/fuzz_profile.c - the profile reader: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/cost/profile.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_profile, (void)0)
