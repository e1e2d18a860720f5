/* core/base/leftover.c - see leftover.h. */
#include "core/base/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_BYTES = 256, PREFIX_BYTES = 1024 };

static void host_name(char host[HOST_BYTES])
{
    memset(host, 0, HOST_BYTES);
    if (gethostname(host, HOST_BYTES - 1) != 0) snprintf(host, HOST_BYTES, "unknown");
}

int ghp_leftover_name(const char *path, char *name, size_t n)
{
    char host[HOST_BYTES];

    host_name(host);
    return snprintf(name, n, "%s.tmp-%s-%ld", path, host, (long)getpid());
}

void ghp_leftover_hold(int file)
{
    (void)flock(file, LOCK_EX | LOCK_NB); /* if files cannot be locked nothing is ever removed */
}

bool ghp_leftover_lives(long number)
{
    char path[64], text[512] = "";
    const char *state;
    FILE *file;

    if (kill((pid_t)number, 0) != 0) return errno != ESRCH;
    snprintf(path, sizeof path, "/proc/%ld/stat", number);
    file = fopen(path, "r");
    if (file == NULL) return true;
    if (fread(text, 1, sizeof text - 1, file) == 0) text[0] = '\0';
    fclose(file);
    state = strrchr(text, ')'); /* NUMBER (NAME) STATE */
    return state == NULL || strncmp(state, ") Z", 3) != 0;
}

/* Whether a file of this host, by a writer of this number, is certainly nobody's: no process of that number lives, and
 * nobody holds the file. A lock alone would not do: between opening and locking a writer has none. */
static bool is_dead(int folder, const char *name, long number)
{
    struct stat about;
    int file;
    bool dead;

    if (number <= 0 || ghp_leftover_lives(number)) return false;
    file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    dead = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
           flock(file, LOCK_EX | LOCK_NB) == 0;
    close(file);
    return dead;
}

static void clean_folder(DIR *folder, const char *prefix)
{
    size_t n = strlen(prefix);
    struct dirent *file;

    while ((file = readdir(folder)) != NULL) {
        const char *number = file->d_name + n;
        char *end = NULL;
        long writer;

        if (strncmp(file->d_name, prefix, n) != 0 || *number < '0' || *number > '9') continue;
        errno = 0;
        writer = strtol(number, &end, 10);
        if (*end == '-' && end[1] != '\0') end += 1 + strspn(end + 1, "0123456789");
        if (*end != '\0' || errno == ERANGE || writer > INT_MAX) continue;
        if (is_dead(dirfd(folder), file->d_name, writer))
            (void)unlinkat(dirfd(folder), file->d_name, 0);
    }
}

void ghp_leftover_clean(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char host[HOST_BYTES], prefix[PREFIX_BYTES];
    char *folder_path = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *folder = folder_path != NULL ? opendir(folder_path) : NULL;
    int n;

    host_name(host);
    n = snprintf(prefix, sizeof prefix, "%s.tmp-%s-", name, host);
    if (folder != NULL && n > 0 && (size_t)n < sizeof prefix) clean_folder(folder, prefix);
    if (folder != NULL) closedir(folder);
    free(folder_path);
}
