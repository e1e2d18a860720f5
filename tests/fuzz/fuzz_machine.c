/* tests/fuzz/fuzz_machine.c - the machine reader: what is accepted is written, read and written again to equal
 * bytes. */
#include "core/cost/machine.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_machine machine = {0}, again = {0};
    char first[512], second[512];

    (void)bytes;
    (void)n;
    if (ghp_machine_load(path, &machine) != GHP_OK) return false;
    fuzz_path("first", first, sizeof(first));
    fuzz_path("second", second, sizeof(second));
    GHP_ASSERT_EQ(ghp_machine_save(first, &machine), GHP_OK);
    GHP_ASSERT_EQ(ghp_machine_load(first, &again), GHP_OK);
    GHP_ASSERT_EQ(ghp_machine_save(second, &again), GHP_OK);
    fuzz_equal(first, second);
    ghp_machine_release(&again);
    ghp_machine_release(&machine);
    return true;
}
