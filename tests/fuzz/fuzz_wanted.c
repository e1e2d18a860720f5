/* tests/fuzz/fuzz_wanted.c - the reader of what is to be measured: what is accepted is written, read and written again
 * to equal bytes. */
#include "core/cost/missing.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_missing, (void)0)
