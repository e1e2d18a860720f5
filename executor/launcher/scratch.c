/* executor/launcher/scratch.c - see launcher/scratch.h. */
#include "executor/launcher/scratch.h"

#include "core/base/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char variable[] = "TMPDIR"; /* ghp-run looks there, too, for what others left */
static const char *const others[] = {"OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_orte_local_tmpdir_base",
                                     "OMPI_MCA_orte_remote_tmpdir_base"};

/* Open MPI names a worker's segment vader_segment.HOST.USER.JOB.RANK, with the job in hexadecimal digits. */
void ghp_scratch_remove_segments(const char *folder, unsigned job)
{
    static const char begin[] = "vader_segment.";
    DIR *all = opendir(folder);
    const struct dirent *entry;
    char job_text[16], path[4096];

    snprintf(job_text, sizeof job_text, ".%x.", job);
    while (all != NULL && (entry = readdir(all)) != NULL) {
        if (strncmp(entry->d_name, begin, sizeof begin - 1) != 0 ||
            strstr(entry->d_name, job_text) == NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path); /* refused if it is another user's */
    }
    if (all != NULL) closedir(all);
}

/* Removes what is in a folder, and the folder. Links are not followed. */
static void remove_all(const char *path, int deepest)
{
    DIR *all = opendir(path);
    const struct dirent *entry;

    while (all != NULL && (entry = readdir(all)) != NULL) {
        char inner[4096 + 256];
        unsigned job;
        struct stat is;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (sscanf(entry->d_name, "smseg-%u-", &job) == 1)
            ghp_scratch_remove_segments("/dev/shm", job);
        snprintf(inner, sizeof inner, "%.4095s/%s", path, entry->d_name);
        if (lstat(inner, &is) == 0 && S_ISDIR(is.st_mode) && deepest > 0)
            remove_all(inner, deepest - 1);
        else
            unlink(inner);
    }
    if (all != NULL) closedir(all);
    rmdir(path);
}

/* Removes the folders of this user's ghp-launch of which no process lives, and which nobody has locked. */
static void clean(const char *folder)
{
    static const char begin[] = "ghp-launch-";
    DIR *all = opendir(folder);
    const struct dirent *entry;

    while (all != NULL && (entry = readdir(all)) != NULL) {
        const char *number = entry->d_name + sizeof begin - 1;
        char path[4096 + 256], *end = NULL;
        struct stat is;
        long process;
        int hold;

        if (strncmp(entry->d_name, begin, sizeof begin - 1) != 0 || *number < '0' || *number > '9')
            continue;
        process = strtol(number, &end, 10);
        if (*end != '-' || process <= 0 || process > INT_MAX || ghp_leftover_lives(process))
            continue;
        snprintf(path, sizeof path, "%.4095s/%s", folder, entry->d_name);
        hold = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (hold < 0) continue;
        if (fstat(hold, &is) == 0 && is.st_uid == geteuid() && flock(hold, LOCK_EX | LOCK_NB) == 0)
            remove_all(path, 8);
        close(hold);
    }
    if (all != NULL) closedir(all);
}

void ghp_scratch_open(struct ghp_scratch *s)
{
    const char *before = getenv(variable),
               *folder = before != NULL && before[0] == '/' ? before : "/tmp";
    int n;

    *s = (struct ghp_scratch){.before = NULL};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (getenv(others[i]) != NULL) return;
    clean(folder);
    if (before != NULL) s->before = strdup(before);
    n = snprintf(s->path, sizeof s->path, "%s/ghp-launch-%ld-XXXXXX", folder, (long)getpid());
    if ((before == NULL || s->before != NULL) && n > 0 && (size_t)n < sizeof s->path &&
        mkdtemp(s->path) != NULL && setenv(variable, s->path, 1) == 0) {
        s->hold = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->hold >= 0) ghp_leftover_hold(s->hold);
        return;
    }
    free(s->before);
    *s = (struct ghp_scratch){.before = NULL};
}

void ghp_scratch_close(struct ghp_scratch *s)
{
    if (s->path[0] == '\0') return;
    remove_all(s->path, 8);
    if (s->hold >= 0) close(s->hold);
    s->path[0] = '\0';
    if (s->before == NULL)
        unsetenv(variable);
    else
        (void)setenv(variable, s->before, 1);
    free(s->before);
}
