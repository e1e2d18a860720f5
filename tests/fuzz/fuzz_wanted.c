/* tests/fuzz/fuzz_wanted.c - the reader of what is to be measured: what is accepted is written, read and written again
 * to equal bytes. */
#include "core/cost/wanted.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_wanted wanted = {0}, again = {0};
    char first[512], second[512];

    (void)bytes;
    (void)n;
    if (ghp_wanted_load(path, &wanted) != GHP_OK) return false;
    fuzz_path("first", first, sizeof(first));
    fuzz_path("second", second, sizeof(second));
    GHP_ASSERT_EQ(ghp_wanted_save(first, &wanted), GHP_OK);
    GHP_ASSERT_EQ(ghp_wanted_load(first, &again), GHP_OK);
    GHP_ASSERT_EQ(ghp_wanted_save(second, &again), GHP_OK);
    fuzz_equal(first, second);
    ghp_wanted_release(&again);
    ghp_wanted_release(&wanted);
    return true;
}
