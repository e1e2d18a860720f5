/* The folder of an attempt: it is named to what is started, goes with all in it, and so does the shared memory of its
 * jobs, but nobody else's; where somebody has said where files are, there is none. */
#include "executor/launcher/scratch.h"
#include "tests/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void make(const char *folder, const char *name)
{
    char path[5000];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

static bool is_there(const char *folder, const char *name)
{
    char path[5000];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

CHECK_TEST(scratch)
{
    struct ghp_scratch scratch = {0};
    char kept[64] = "/tmp/ghp-test-XXXXXX", inner[5000], mine[128], other[128];

    unsetenv("OMPI_MCA_orte_tmpdir_base");
    unsetenv("OMPI_MCA_orte_local_tmpdir_base");
    unsetenv("OMPI_MCA_orte_remote_tmpdir_base");
    CHECK(mkdtemp(kept) != NULL);
    setenv("TMPDIR", kept, 1);
    ghp_scratch_open(&scratch);
    CHECK(strncmp(scratch.path, kept, strlen(kept)) == 0);
    CHECK_TEXT(getenv("TMPDIR"), scratch.path);
    snprintf(inner, sizeof(inner), "%s/pid.7", scratch.path);
    CHECK_EQ(mkdir(inner, 0700), 0);
    snprintf(mine, sizeof(mine), "smseg-%u-0", 0xfade0001u + (unsigned)getpid());
    make(inner, mine);
    snprintf(mine, sizeof(mine), "vader_segment.test.0.%x.1", 0xfade0001u + (unsigned)getpid());
    snprintf(other, sizeof(other), "vader_segment.test.0.%x.1", 0xdeaf0001u + (unsigned)getpid());
    make("/dev/shm", mine);
    make("/dev/shm", other);
    ghp_scratch_close(&scratch);
    CHECK_TEXT(scratch.path, "");
    CHECK_TEXT(getenv("TMPDIR"), kept);
    CHECK(!is_there("/dev/shm", mine));
    CHECK(is_there("/dev/shm", other));
    ghp_scratch_remove_segments("/dev/shm", 0xdeaf0001u + (unsigned)getpid());
    CHECK(!is_there("/dev/shm", other));
    CHECK_EQ(rmdir(kept), 0); /* nothing is left in it */

    setenv("OMPI_MCA_orte_tmpdir_base", "/tmp", 1);
    ghp_scratch_open(&scratch);
    CHECK_TEXT(scratch.path, "");
    ghp_scratch_close(&scratch);
    return check_end();
}
