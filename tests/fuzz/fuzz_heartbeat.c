/* tests/fuzz/fuzz_heartbeat.c - the reader of heartbeats, which takes what it can of any file: what was read of one is
 * written, and read again as the same. */
#include "core/base/heartbeat.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_beat beat = ghp_heartbeat_read(path), again;
    struct ghp_heartbeat written = {0};
    char own[512];

    (void)bytes;
    (void)n;
    fuzz_path("heartbeat", own, sizeof own);
    GHP_ASSERT_EQ(ghp_heartbeat_open(own, &written), GHP_OK);
    written.step = beat.step;
    written.kept = beat.kept;
    written.of = beat.of;
    written.change = beat.change;
    ghp_heartbeat_write(&written);
    ghp_heartbeat_close(&written);
    again = ghp_heartbeat_read(own);
    GHP_ASSERT(again.step == beat.step && again.kept == beat.kept && again.of == beat.of);
    GHP_ASSERT(again.change.number == beat.change.number &&
               again.change.worker == beat.change.worker &&
               again.change.cause == beat.change.cause);
    return beat.of > 0;
}
