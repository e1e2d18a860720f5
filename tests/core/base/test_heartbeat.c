/* tests/core/base/test_heartbeat.c - what is written is what is read, each beat over the one before; nothing is read
 * from a file that is not there, empty or of another kind. */
#include "core/base/heartbeat.h"

#include "tests/check.h"

#include <sys/stat.h>
#include <unistd.h>

CHECK_TEST(heartbeat)
{
    struct ghp_heartbeat h = {0};
    char path[64];
    FILE *file;

    (void)argc, (void)argv;
    snprintf(path, sizeof path, "/tmp/ghp-test-heartbeat-%ld", (long)getpid());
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
    CHECK_EQ(ghp_heartbeat_read(path).change.number, 0);
    h.step = 7;
    h.of = INT64_MAX;
    h.change = (struct ghp_beat_change){3, GHP_BEAT_SLOW_WORKER, 11, 2.5, 0.25, 0.125};
    ghp_heartbeat_write(&h);
    CHECK_EQ(ghp_heartbeat_read(path).step, 7);
    CHECK_EQ(ghp_heartbeat_read(path).of, INT64_MAX);
    CHECK_EQ(ghp_heartbeat_read(path).change.number, 3);
    CHECK_EQ(ghp_heartbeat_read(path).change.cause, GHP_BEAT_SLOW_WORKER);
    CHECK_EQ(ghp_heartbeat_read(path).change.worker, 11);
    CHECK_NEAR(ghp_heartbeat_read(path).change.times, 2.5, 0);
    CHECK_NEAR(ghp_heartbeat_read(path).change.now_s, 0.25, 0);
    CHECK_NEAR(ghp_heartbeat_read(path).change.before_s, 0.125, 0);
    h.change.cause = GHP_BEAT_SLOW_LINKS;
    ghp_heartbeat_write(&h);
    CHECK_EQ(ghp_heartbeat_read(path).change.cause, GHP_BEAT_SLOW_LINKS);
    ghp_heartbeat_close(&h);
    ghp_heartbeat_write(&h);
    file = fopen(path, "w");
    CHECK(file != NULL && fputs("step by step", file) >= 0 && fclose(file) == 0);
    CHECK_EQ(ghp_heartbeat_read(path).step, 0);
    file = fopen(path, "w");
    CHECK(file != NULL && fputs("step 1 kept 1 of 2\nchange 1 slow-worker 3\n", file) >= 0 &&
          fclose(file) == 0);
    CHECK_EQ(ghp_heartbeat_read(path).step, 1);
    CHECK_EQ(ghp_heartbeat_read(path).change.number, 0);
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0); /* nobody writes: it is not waited for */
    CHECK_EQ(ghp_heartbeat_read(path).step, 0);
    CHECK(!(ghp_heartbeat_read(path).changed_s > 0));
    unlink(path);
    CHECK_STATUS(ghp_heartbeat_open("/nowhere/beat", &h), GHP_ERR_IO);
    CHECK_MESSAGE("/nowhere/beat");
    return check_end();
}
