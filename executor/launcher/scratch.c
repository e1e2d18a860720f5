/* executor/launcher/scratch.c - see launcher/scratch.h. */
#include "executor/launcher/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char variable[] = "TMPDIR"; /* ghp-run looks there, too, for what others left */
static const char *const others[] = {"OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_orte_local_tmpdir_base",
                                     "OMPI_MCA_orte_remote_tmpdir_base"};

void ghp_scratch_open(struct ghp_scratch *s)
{
    const char *folder = getenv(variable);
    int n;

    *s = (struct ghp_scratch){.before = NULL};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (getenv(others[i]) != NULL) return;
    if (folder != NULL) s->before = strdup(folder);
    n = snprintf(s->path, sizeof(s->path), "%s/ghp-launch-XXXXXX",
                 folder != NULL && folder[0] == '/' ? folder : "/tmp");
    if ((folder == NULL || s->before != NULL) && n > 0 && (size_t)n < sizeof(s->path) &&
        mkdtemp(s->path) != NULL && setenv(variable, s->path, 1) == 0)
        return;
    free(s->before);
    *s = (struct ghp_scratch){.before = NULL};
}

/* Open MPI names a worker's segment vader_segment.HOST.USER.JOB.RANK, with the job in hexadecimal digits. */
void ghp_scratch_remove_segments(const char *folder, unsigned job)
{
    static const char begin[] = "vader_segment.";
    DIR *all = opendir(folder);
    const struct dirent *entry;
    char job_text[16], path[4096];

    snprintf(job_text, sizeof(job_text), ".%x.", job);
    while (all != NULL && (entry = readdir(all)) != NULL) {
        if (strncmp(entry->d_name, begin, sizeof(begin) - 1) != 0 ||
            strstr(entry->d_name, job_text) == NULL)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path); /* refused where it is another user's */
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
        snprintf(inner, sizeof(inner), "%.4095s/%s", path, entry->d_name);
        if (lstat(inner, &is) == 0 && S_ISDIR(is.st_mode) && deepest > 0)
            remove_all(inner, deepest - 1);
        else
            unlink(inner);
    }
    if (all != NULL) closedir(all);
    rmdir(path);
}

void ghp_scratch_close(struct ghp_scratch *s)
{
    if (s->path[0] == '\0') return;
    remove_all(s->path, 8);
    s->path[0] = '\0';
    if (s->before == NULL)
        unsetenv(variable);
    else
        (void)setenv(variable, s->before, 1);
    free(s->before);
}
