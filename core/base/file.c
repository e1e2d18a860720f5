/* core/base/file.c - whole files in, whole files out, and the hash that names their content. */
#include "core/base/file_private.h"

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

enum { READ_CHUNK = 1 << 16, HEAD_BYTES = 128 };
static const int64_t LARGEST = INT64_C(4) << 30; /* of a file that is read whole */

/* Makes room for one more chunk and a NUL after *n bytes. */
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

    if (fstat(fd, &about) != 0) return ghp_file_fail_read(path, errno);
    if (about.st_size > LARGEST) return ghp_file_fail_read(path, EFBIG);
    if (S_ISREG(about.st_mode) && about.st_size > 0) capacity += (size_t)about.st_size;
    *text = malloc(capacity);
    if (*text == NULL) return GHP_NO_MEMORY();
    for (;;) {
        GHP_TRY(reserve(text, *n, &capacity));
        ssize_t got = read(fd, *text + *n, capacity - *n - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ghp_file_fail_read(path, errno);
        if (got == 0) break;
        *n += (size_t)got;
        if ((int64_t)*n > LARGEST) return ghp_file_fail_read(path, EFBIG);
    }
    (*text)[*n] = '\0';
    return GHP_OK;
}

enum ghp_status ghp_file_read(const char *path, char **text, size_t *n)
{
    enum ghp_status status;
    char *bytes = NULL;
    size_t count = 0;
    int fd;

    *text = NULL;
    if (n != NULL) *n = 0;
    GHP_TRY(ghp_file_open_whole(path, &fd));
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
    for (const char *mark = marks;; mark++) {
        size_t length = strcspn(mark, "|");

        if (memmem(bytes, n, mark, length) != NULL) return true;
        mark += length;
        if (*mark == '\0') return false;
    }
}

enum ghp_status ghp_file_check_replaced(const char *path, const char *marks)
{
    char head[HEAD_BYTES];
    ssize_t n;
    int fd;

    if (ghp_file_open(path, &fd) != GHP_OK) return GHP_OK;
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

/* What a name stands for, to be written. */
struct target {
    char *path; /* owned; a link is resolved */
    bool is_there;
    struct stat old; /* if is_there */
};

/* Devices and pipes have no temporary name: written in place. */
static bool is_stream(const struct target *t)
{
    return t->is_there && !S_ISREG(t->old.st_mode);
}

static enum ghp_status find_target(const char *path, struct target *t)
{
    *t = (struct target){.path = NULL};
    t->is_there = stat(path, &t->old) == 0;
    if (t->is_there && S_ISDIR(t->old.st_mode)) return ghp_file_fail_write(path, EISDIR);
    GHP_TRY(ghp_file_check_link(path));
    if (t->is_there && access(path, W_OK) != 0) return ghp_file_fail_write(path, errno);
    /* a symbolic link stays one */
    t->path = t->is_there && !is_stream(t) ? realpath(path, NULL) : strdup(path);
    return t->path != NULL ? GHP_OK : ghp_file_fail_write(path, errno);
}

static enum ghp_status write_in_place(const char *path, const void *bytes, size_t n)
{
    int error, fd;

    GHP_TRY(ghp_file_open_output(path, true, &fd));
    error = write_all(fd, bytes, n);
    if (close(fd) != 0 && error == 0) error = errno;
    return error == 0 ? GHP_OK : ghp_file_fail_write(path, error);
}

/* Writes next to the target and renames. */
static enum ghp_status write_and_rename(const struct target *t, const void *bytes, size_t n)
{
    char name[PATH_MAX];
    int error = 0, fd = ghp_file_open_temporary(t->path, name, sizeof name);

    if (fd < 0) return ghp_file_fail_write(t->path, errno);
    if (t->is_there && fchmod(fd, t->old.st_mode & 07777) != 0) error = errno;
    if (error == 0) error = write_all(fd, bytes, n);
    if (error == 0 && fsync(fd) != 0) error = errno;
    if (error == 0 && rename(name, t->path) != 0) error = errno;
    if (close(fd) != 0 && error == 0) error = errno;
    if (error != 0) {
        (void)unlink(name);
        return ghp_file_fail_write(t->path, error);
    }
    ghp_file_sync_folder(t->path);
    return GHP_OK;
}

enum ghp_status ghp_file_write_atomic(const char *path, const void *bytes, size_t n)
{
    struct target t;
    enum ghp_status status = find_target(path, &t);

    if (status == GHP_OK)
        status = is_stream(&t) ? write_in_place(path, bytes, n) : write_and_rename(&t, bytes, n);
    free(t.path);
    return status;
}

enum ghp_status ghp_file_try_write(const char *path)
{
    char name[PATH_MAX];
    struct target t;
    enum ghp_status status = find_target(path, &t);
    int fd = -1;

    if (status == GHP_OK && is_stream(&t)) {
        status = ghp_file_open_output(path, true, &fd);
    } else if (status == GHP_OK) {
        fd = ghp_file_open_temporary(t.path, name, sizeof name);
        status = fd >= 0 ? GHP_OK : ghp_file_fail_write(path, errno);
        if (fd >= 0) (void)unlink(name);
    }
    if (fd >= 0) close(fd);
    free(t.path);
    return status;
}
