/* tests/fuzz/fuzz_profile.c - the profile reader: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/cost/profile.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_profile profile = {0}, again = {0};
    char first[512], second[512];

    (void)bytes;
    (void)n;
    if (ghp_profile_load(path, &profile) != GHP_OK) return false;
    fuzz_path("first", first, sizeof(first));
    fuzz_path("second", second, sizeof(second));
    GHP_ASSERT_EQ(ghp_profile_save(first, &profile), GHP_OK);
    GHP_ASSERT_EQ(ghp_profile_load(first, &again), GHP_OK);
    GHP_ASSERT_EQ(ghp_profile_save(second, &again), GHP_OK);
    fuzz_equal(first, second);
    ghp_profile_release(&again);
    ghp_profile_release(&profile);
    return true;
}
