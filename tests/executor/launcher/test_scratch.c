/* The folder of an attempt: it is named to what is started, goes with all in it, and so does the shared memory of its
 * jobs, but nobody else's; where somebody has said where files are, there is none. */
#include "executor/launcher/scratch.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void make(const char *folder, const char *name)
{
    char path[5000];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

static int count(const char *folder)
{
    DIR *all = opendir(folder);
    const struct dirent *entry;
    int n = 0;

    while (all != NULL && (entry = readdir(all)) != NULL)
        n += entry->d_name[0] != '.';
    if (all != NULL) closedir(all);
    return n;
}

static bool is_there(const char *folder, const char *name)
{
    char path[5000];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* A process makes one and is killed; the next one removes it, but not that of a living process or of no process. */
static void check_killed(const char *folder)
{
    struct ghp_scratch mine, other;
    char living[64], odd[5000];
    int said[2];
    char byte = 0;
    pid_t child;

    if (pipe(said) != 0 || (child = fork()) < 0) exit(1);
    if (child == 0) {
        ghp_scratch_open(&other);
        make(other.path, "file");
        if (write(said[1], &byte, 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    if (read(said[0], &byte, 1) != 1) exit(1);
    snprintf(living, sizeof living, "ghp-launch-%ld-", (long)child);
    snprintf(odd, sizeof odd, "%s/ghp-launch-abcdef", folder);
    CHECK_EQ(mkdir(odd, 0700), 0);
    ghp_scratch_open(&mine);
    CHECK_EQ(count(folder), 3);
    ghp_scratch_close(&mine);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK_EQ(count(folder), 2);
    ghp_scratch_open(&mine);
    CHECK_EQ(count(folder), 2); /* its own, and that of no process */
    CHECK(strstr(mine.path, living) == NULL);
    ghp_scratch_close(&mine);
    CHECK_EQ(rmdir(odd), 0);
    CHECK_EQ(count(folder), 0);
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
    snprintf(inner, sizeof inner, "%s/pid.7", scratch.path);
    CHECK_EQ(mkdir(inner, 0700), 0);
    snprintf(mine, sizeof mine, "smseg-%u-0", 0xfade0001u + (unsigned)getpid());
    make(inner, mine);
    snprintf(mine, sizeof mine, "vader_segment.test.0.%x.1", 0xfade0001u + (unsigned)getpid());
    snprintf(other, sizeof other, "vader_segment.test.0.%x.1", 0xdeaf0001u + (unsigned)getpid());
    make("/dev/shm", mine);
    make("/dev/shm", other);
    ghp_scratch_close(&scratch);
    CHECK_TEXT(scratch.path, "");
    CHECK_TEXT(getenv("TMPDIR"), kept);
    CHECK(!is_there("/dev/shm", mine));
    CHECK(is_there("/dev/shm", other));
    ghp_scratch_remove_segments("/dev/shm", 0xdeaf0001u + (unsigned)getpid());
    CHECK(!is_there("/dev/shm", other));
    check_killed(kept);
    CHECK_EQ(rmdir(kept), 0); /* nothing is left in it */

    setenv("OMPI_MCA_orte_tmpdir_base", "/tmp", 1);
    ghp_scratch_open(&scratch);
    CHECK_TEXT(scratch.path, "");
    ghp_scratch_close(&scratch);
    return check_end();
}
