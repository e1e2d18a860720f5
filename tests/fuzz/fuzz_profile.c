/* tests/fuzz/fuzz_profile.c - the profile reader: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/cost/profile.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WRITTEN_AGAIN(ghp_profile)

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_profile profile = {0};

    (void)bytes;
    (void)n;
    if (!written_again(path, &profile)) return false;
    ghp_profile_release(&profile);
    return true;
}
