/* core/base/file.c - whole files in, whole files out, and the hash that names their content. */
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_CHUNK = 1 << 16, HEAD_BYTES = 128, TEMPORARY_TRIES = 100 };

/* What the user can do about an errno of opening, reading or writing. */
static const char *remedy(int error, bool writing)
{
    switch (error) {
    case ENOENT:
        return writing ? "create its folder first, or choose another one" : "check the name";
    case ENOTDIR: return "a part of the name is a file, not a folder; check the name";
    case EISDIR: return "this is a folder; give the name of a file";
    case EACCES:
    case EPERM:
    case EROFS:
        return writing ? "choose a place that you may write to" : "ask for the right to read it";
    case ENOSPC:
    case EDQUOT: return "free some space, or choose another place";
    case ENAMETOOLONG: return "choose a shorter name";
    default: return writing ? "choose another place" : "check the file";
    }
}

static enum ghp_status fail_io(const char *verb, const char *path, int error, bool writing)
{
    if (error == ENOMEM) return GHP_NO_MEMORY();
    return GHP_FAIL(GHP_ERR_IO, "cannot %s '%s': %s; %s", verb, path, strerror(error),
                    remedy(error, writing));
}

/* Makes room for one more chunk and a NUL behind *n bytes. */
static enum ghp_status reserve(char **text, size_t n, size_t *capacity)
{
    if (*capacity - n > READ_CHUNK) return GHP_OK;
    size_t larger = *capacity * 2 + READ_CHUNK;
    char *moved = realloc(*text, larger);
    if (moved == NULL) return GHP_NO_MEMORY();
    *text = moved;
    *capacity = larger;
    return GHP_OK;
}

/* Reads to the end of the open file. */
static enum ghp_status read_all(int fd, const char *path, char **text, size_t *n)
{
    size_t capacity = READ_CHUNK + 1;
    struct stat about;

    if (fstat(fd, &about) != 0) return fail_io("read", path, errno, false);
    if (S_ISDIR(about.st_mode)) return fail_io("read", path, EISDIR, false);
    if (S_ISREG(about.st_mode) && about.st_size > 0) capacity += (size_t)about.st_size;
    *text = malloc(capacity);
    if (*text == NULL) return GHP_NO_MEMORY();
    for (;;) {
        GHP_TRY(reserve(text, *n, &capacity));
        ssize_t got = read(fd, *text + *n, capacity - *n - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_io("read", path, errno, false);
        if (got == 0) break;
        *n += (size_t)got;
    }
    (*text)[*n] = '\0';
    return GHP_OK;
}

enum ghp_status ghp_file_read(const char *path, char **text, size_t *n)
{
    enum ghp_status status;
    char *bytes = NULL;
    size_t count = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    *text = NULL;
    if (n != NULL) *n = 0;
    if (fd < 0) return fail_io("open", path, errno, false);
    status = read_all(fd, path, &bytes, &count);
    close(fd);
    if (status != GHP_OK) {
        free(bytes);
        return status;
    }
    *text = bytes;
    if (n != NULL) *n = count;
    return GHP_OK;
}

/* Whether one of the marks is among the n bytes. */
static bool has_mark(const char *bytes, size_t n, const char *marks)
{
    for (const char *mark = marks;; ++mark) {
        size_t length = strcspn(mark, "|");

        if (memmem(bytes, n, mark, length) != NULL) return true;
        mark += length;
        if (*mark == '\0') return false;
    }
}

enum ghp_status ghp_file_check_replaced(const char *path, const char *marks)
{
    char head[HEAD_BYTES];
    struct stat about;
    ssize_t n;
    int fd;

    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return GHP_OK;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return GHP_OK;
    n = read(fd, head, sizeof head);
    close(fd);
    if (n <= 0 || has_mark(head, (size_t)n, marks)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "'%s' is there and of another kind than what would be written; give another "
                    "name, or remove it first",
                    path);
}

/* Writes n bytes; 0 or an errno. */
static int write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(fd, bytes, n);

        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return errno;
        bytes += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

/* Devices and pipes have no temporary name: written in place. */
static enum ghp_status write_in_place(const char *path, const void *bytes, size_t n)
{
    int error, fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0) return fail_io("open", path, errno, true);
    error = write_all(fd, bytes, n);
    if (close(fd) != 0 && error == 0) error = errno;
    return error == 0 ? GHP_OK : fail_io("write", path, error, true);
}

/* Opens a new file beside `path`, its name in `name` (n bytes); -1 and errno on failure.  The process id and a
 * counter name it; O_EXCL makes it ours. */
static int open_temporary(const char *path, char *name, size_t n)
{
    for (int i = 0; i < TEMPORARY_TRIES; ++i) {
        int length = snprintf(name, n, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        if (length < 0 || (size_t)length >= n) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

void ghp_file_sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int fd;

    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* Writes beside `target` and renames; old is the file it replaces, or NULL. */
static enum ghp_status write_and_rename(const char *target, const struct stat *old,
                                        const void *bytes, size_t n)
{
    char name[PATH_MAX];
    int error = 0, fd = open_temporary(target, name, sizeof name);

    if (fd < 0) return fail_io("write", target, errno, true);
    if (old != NULL && fchmod(fd, old->st_mode & 07777) != 0) error = errno;
    if (error == 0) error = write_all(fd, bytes, n);
    if (error == 0 && fsync(fd) != 0) error = errno;
    if (close(fd) != 0 && error == 0) error = errno;
    if (error == 0 && rename(name, target) != 0) error = errno;
    if (error != 0) {
        (void)unlink(name);
        return fail_io("write", target, error, true);
    }
    ghp_file_sync_folder(target);
    return GHP_OK;
}

enum ghp_status ghp_file_write_atomic(const char *path, const void *bytes, size_t n)
{
    enum ghp_status status;
    struct stat old;
    char *target;

    if (stat(path, &old) != 0) return write_and_rename(path, NULL, bytes, n);
    if (S_ISDIR(old.st_mode)) return fail_io("write", path, EISDIR, true);
    if (!S_ISREG(old.st_mode)) return write_in_place(path, bytes, n);
    if (access(path, W_OK) != 0) return fail_io("write", path, errno, true);
    target = realpath(path, NULL); /* a symbolic link stays one */
    if (target == NULL) return fail_io("write", path, errno, true);
    status = write_and_rename(target, &old, bytes, n);
    free(target);
    return status;
}
