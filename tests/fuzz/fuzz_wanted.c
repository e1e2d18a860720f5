/* tests/fuzz/fuzz_wanted.c - the reader of what is to be measured: what is accepted is written, read and written again
 * to equal bytes. */
#include "core/cost/wanted.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_wanted)

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_wanted wanted = {0};

    (void)bytes;
    (void)n;
    if (!written_again(path, &wanted)) return false;
    ghp_wanted_release(&wanted);
    return true;
}
