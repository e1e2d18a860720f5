/* tests/fuzz/fuzz_run.c - the reader of run files, which prints what it reads (start it with stdout closed). */
#include "inspect/inspect.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_display tables;
    enum ghp_status status;

    (void)bytes;
    (void)n;
    ghp_display_begin(&tables, false);
    status = ghp_inspect_run(&tables, path, "ghp.run/2");
    (void)ghp_display_end(&tables);
    return status == GHP_OK;
}
