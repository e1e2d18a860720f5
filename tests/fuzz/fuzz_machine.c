/* tests/fuzz/fuzz_machine.c - the machine reader: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/cost/machine.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_machine)

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_machine machine = {0};

    (void)bytes;
    (void)n;
    if (!written_again(path, &machine)) return false;
    ghp_machine_release(&machine);
    return true;
}
