/* What control groups of both versions leave a process: read from folders that stand for a machine's /proc and /sys. */
#include "executor/platform/limits.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 };
static char root[] = "limits.XXXXXX";
static char written[MOST][256];
static int n_written;

/* Writes a file of the machine, with the folders above it. */
static void put(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = strchr(path + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0777) == 0) snprintf(written[n_written++], sizeof written[0], "%s", path);
        *at = '/';
    }
    if (access(path, F_OK) != 0) snprintf(written[n_written++], sizeof written[0], "%s", path);
    file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fputs(text, file);
    fclose(file);
}

static void clear(void)
{
    while (n_written > 0)
        CHECK(remove(written[--n_written]) == 0);
}

static void check_version_2(void)
{
    struct ghp_limits limits;

    put("/proc/self/cgroup", "0::/job/step\n");
    put("/proc/self/mountinfo",
        "30 23 0:27 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/job/memory.max", "1048576000\n");
    put("/sys/fs/cgroup/job/memory.current", "900000000\n");
    put("/sys/fs/cgroup/job/memory.stat", "anon 500\ninactive_file 100000\nactive_file 7\n");
    put("/sys/fs/cgroup/job/step/memory.max", "max\n");
    ghp_limits_read(root, &limits);
    CHECK_NEAR(limits.cores, 1.5, 1e-12);
    CHECK_TEXT(limits.cores_by, "/sys/fs/cgroup/job/cpu.max");
    CHECK_EQ(limits.memory_bytes, 1048576000);
    CHECK_EQ(limits.memory_left_bytes, 1048576000 - 900000000 + 100000);
    CHECK_TEXT(limits.memory_by, "/sys/fs/cgroup/job/memory.max");
    CHECK_EQ(ghp_limits_cores(&limits, 8), 1);
    put("/sys/fs/cgroup/job/step/cpu.max", "50000 100000\n"); /* the tightest counts */
    ghp_limits_read(root, &limits);
    CHECK_NEAR(limits.cores, 0.5, 1e-12);
    CHECK_EQ(ghp_limits_cores(&limits, 8), 1);
    put("/sys/fs/cgroup/job/step/cpu.max", "900000 100000\n");
    put("/sys/fs/cgroup/job/cpu.max", "250000 100000\n");
    ghp_limits_read(root, &limits);
    CHECK_EQ(ghp_limits_cores(&limits, 8), 2);
    CHECK_EQ(ghp_limits_cores(&limits, 2), 2);
    clear();
}

/* A container's own groups stand at the top, whatever the host calls them. */
static void check_container(void)
{
    struct ghp_limits limits;

    put("/proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:cpuset:/\n0::/\n");
    put("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n"
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "33 31 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "736870912\n");
    ghp_limits_read(root, &limits);
    CHECK_NEAR(limits.cores, 3, 1e-12);
    CHECK_EQ(limits.memory_bytes, 536870912);
    CHECK_EQ(limits.memory_left_bytes, 0);
    CHECK_TEXT(limits.cores_by, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    ghp_limits_read(root, &limits);
    CHECK(limits.cores <= 0);
    CHECK_EQ(limits.memory_bytes, 0);
    CHECK_EQ(limits.memory_left_bytes, -1);
    CHECK_TEXT(limits.cores_by, "");
    clear();
}

static void check_none(void)
{
    struct ghp_limits limits;
    char text[3 * GHP_LIMITS_TEXT_BYTES];

    ghp_limits_read(root, &limits);
    CHECK(limits.cores <= 0);
    CHECK_EQ(limits.memory_left_bytes, -1);
    CHECK_EQ(ghp_limits_cores(&limits, 5), 5);
    CHECK_TEXT(ghp_limits_text(&limits, text, sizeof text), "");
    limits.cores = 0.7;
    limits.memory_bytes = 1 << 20;
    snprintf(limits.cores_by, sizeof limits.cores_by, "here");
    snprintf(limits.memory_by, sizeof limits.memory_by, "there");
    ghp_limits_text(&limits, text, sizeof text);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        CHECK_TEXT(text, "1 core by here and 1.00 MiB of memory by there");
}

/* What Slurm says counts on this machine alone, and only inside a job. */
static void check_slurm(void)
{
    struct ghp_limits limits;

    setenv("SLURM_MEM_PER_NODE", "1", 1);
    ghp_limits_read("", &limits);
    CHECK(strcmp(limits.memory_by, "SLURM_MEM_PER_NODE") != 0);
    setenv("SLURM_JOB_ID", "7", 1);
    ghp_limits_read("", &limits);
    CHECK_TEXT(limits.memory_by, "SLURM_MEM_PER_NODE");
    CHECK_EQ(limits.memory_bytes, 1 << 20);
    CHECK(limits.memory_left_bytes >= 0 && limits.memory_left_bytes <= 1 << 20);
    ghp_limits_read(root, &limits);
    CHECK_EQ(limits.memory_left_bytes, -1);
    setenv("SLURM_MEM_PER_NODE", "0", 1); /* all of the node's */
    ghp_limits_read("", &limits);
    CHECK(strcmp(limits.memory_by, "SLURM_MEM_PER_NODE") != 0);
    unsetenv("SLURM_MEM_PER_NODE");
    setenv("SLURM_MEM_PER_CPU", "1", 1);
    setenv("SLURM_CPUS_ON_NODE", "2", 1);
    ghp_limits_read("", &limits);
    CHECK_TEXT(limits.memory_by, "SLURM_MEM_PER_CPU");
    CHECK_EQ(limits.memory_bytes, 2 << 20);
    unsetenv("SLURM_MEM_PER_CPU");
    unsetenv("SLURM_CPUS_ON_NODE");
    unsetenv("SLURM_JOB_ID");
}

CHECK_TEST(limits)
{
    if (!CHECK(mkdtemp(root) != NULL)) return check_end();
    check_version_2();
    check_container();
    check_none();
    check_slurm();
    CHECK(rmdir(root) == 0);
    return check_end();
}
