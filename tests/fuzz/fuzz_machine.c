/* tests/fuzz/fuzz_machine.c - the machine reader: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/cost/machine.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_machine, (void)0)
