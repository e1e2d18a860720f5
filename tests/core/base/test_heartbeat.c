/* tests/core/base/test_heartbeat.c - what is written is what is read, each beat over the one before; nothing is read
 * from a file that is not there, empty or of another kind. */
#include "core/base/heartbeat.h"

#include "tests/check.h"

#include <unistd.h>

CHECK_TEST(heartbeat)
{
    struct ghp_heartbeat h = {0};
    char path[64];
    FILE *file;

    (void)argc, (void)argv;
    snprintf(path, sizeof(path), "/tmp/ghp-test-heartbeat-%ld", (long)getpid());
    CHECK_EQ(ghp_heartbeat_read(path).step, 0);
    CHECK(!(ghp_heartbeat_read(path).changed_s > 0));
    CHECK_STATUS(ghp_heartbeat_open(path, &h), GHP_OK);
    CHECK_EQ(ghp_heartbeat_read(path).kept, 0);
    CHECK(ghp_heartbeat_read(path).changed_s > 0);
    h.step = INT64_MAX;
    h.kept = 12;
    ghp_heartbeat_write(&h);
    CHECK_EQ(ghp_heartbeat_read(path).step, INT64_MAX);
    CHECK_EQ(ghp_heartbeat_read(path).kept, 12);
    h.step = 7;
    ghp_heartbeat_write(&h);
    CHECK_EQ(ghp_heartbeat_read(path).step, 7);
    ghp_heartbeat_close(&h);
    ghp_heartbeat_write(&h);
    file = fopen(path, "w");
    CHECK(file != NULL && fputs("step by step", file) >= 0 && fclose(file) == 0);
    CHECK_EQ(ghp_heartbeat_read(path).step, 0);
    unlink(path);
    CHECK_STATUS(ghp_heartbeat_open("/nowhere/beat", &h), GHP_ERR_IO);
    CHECK_MESSAGE("/nowhere/beat");
    return check_end();
}
