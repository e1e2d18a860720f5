/* executor/transport/mpi/leftover.c - shared memory that Open MPI left when a launcher was killed.
 *
 * ghp's own (shared_segment.c) has no name and goes with its processes. Open MPI's has: for each rank
 * /dev/shm/vader_segment.HOST.USER.JOB.RANK, and for each launcher a folder TMPDIR/ompi.HOST.USER/pid.NUMBER whose file
 * contact.txt begins with the number of its first job. The upper half of a job's number is its launcher's. A segment
 * goes if it is this user's, no launcher with its half lives, one that is dead had it, and no process has it
 * mapped. What another MPI leaves is not known here. */
#include "executor/transport/mpi/communicator.h"

#include "core/base/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, HOST_BYTES = 256, MOST_LAUNCHERS = 256, JOB_BITS = 16 };
static const char shared_folder[] = "/dev/shm";

struct launchers {
    int n;
    unsigned family[MOST_LAUNCHERS]; /* upper half of its jobs' numbers */
    bool lives[MOST_LAUNCHERS];
};

/* The launchers of this user and host; false if they cannot all be told. */
static bool find_launchers(const char *host, struct launchers *l)
{
    const char *base = getenv("TMPDIR");
    char path[PATH_BYTES], file[2 * PATH_BYTES];
    struct dirent *entry;
    bool known = true;
    DIR *folder;

    snprintf(path, sizeof path, "%s/ompi.%s.%u", base != NULL ? base : "/tmp", host,
             (unsigned)geteuid());
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        unsigned job = 0;
        long number = 0;
        FILE *contact;
        int fd;

        if (sscanf(entry->d_name, "pid.%ld", &number) != 1) continue;
        snprintf(file, sizeof file, "%s/%s/contact.txt", path, entry->d_name);
        fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe is not waited for */
        contact = fd >= 0 ? fdopen(fd, "r") : NULL;
        if (contact == NULL && fd >= 0) close(fd);
        if (contact == NULL) continue; /* it has not started anything */
        if (fscanf(contact, "%u.", &job) != 1) job = 0;
        fclose(contact);
        if (job == 0) continue;
        known = l->n < MOST_LAUNCHERS;
        if (!known) break;
        l->family[l->n] = job >> JOB_BITS;
        l->lives[l->n++] = ghp_leftover_lives(number);
    }
    if (folder != NULL) closedir(folder);
    return known;
}

static bool is_of_the_dead(const struct launchers *l, unsigned family)
{
    bool dead = false;

    for (int i = 0; i < l->n; i++) {
        if (l->family[i] != family) continue;
        if (l->lives[i]) return false;
        dead = true;
    }
    return dead;
}

/* Whether a process of this user has the file mapped. One that this user may not look into has other rights than those
 * with which a launcher starts workers. */
static bool is_mapped(const char *path)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    bool mapped = processes == NULL;

    while (!mapped && (entry = readdir(processes)) != NULL) {
        char name[64], line[PATH_MAX + 128];
        struct stat about;
        FILE *maps;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        snprintf(name, sizeof name, "/proc/%.32s/maps", entry->d_name);
        if (stat(name, &about) != 0 || about.st_uid != geteuid()) continue;
        maps = fopen(name, "r");
        while (maps != NULL && !mapped && fgets(line, sizeof line, maps) != NULL)
            mapped = strstr(line, path) != NULL;
        if (maps != NULL) fclose(maps);
    }
    if (processes != NULL) closedir(processes);
    return mapped;
}

void ghp_mpi_clean(void)
{
    struct launchers launchers = {.n = 0};
    char host[HOST_BYTES] = "", prefix[HOST_BYTES + 64], path[PATH_BYTES];
    DIR *folder = opendir(shared_folder);
    struct dirent *entry;
    size_t n;

    if (folder == NULL) return;
    if (gethostname(host, sizeof host - 1) != 0 || !find_launchers(host, &launchers)) goto done;
    n = (size_t)snprintf(prefix, sizeof prefix, "vader_segment.%s.%u.", host, (unsigned)geteuid());
    while ((entry = readdir(folder)) != NULL) {
        struct stat about;
        unsigned job;

        if (strncmp(entry->d_name, prefix, n) != 0 || sscanf(entry->d_name + n, "%x.", &job) != 1)
            continue;
        if (!is_of_the_dead(&launchers, job >> JOB_BITS)) continue;
        snprintf(path, sizeof path, "%s/%s", shared_folder, entry->d_name);
        if (lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
            !is_mapped(path))
            (void)unlink(path);
    }
done:
    closedir(folder);
}
