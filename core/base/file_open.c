/* core/base/file_open.c - which files are opened for reading and writing, and the sentences for those that are not. */
#include "core/base/file_private.h"
#include "core/base/leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_TRIES = 100 };

/* ---- sentences ---- */

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
    case EFBIG:
        return writing ? "raise the limit of file sizes (ulimit -f), or choose another place"
                       : "give a file of at most 4 GiB";
    case ENXIO:
        return writing ? "start what reads this pipe first, or give the name of a file"
                       : "give the name of a regular file";
    case ENAMETOOLONG: return "choose a shorter name";
    case ELOOP: return "remove the link, or choose another name";
    case EMFILE:
    case ENFILE: return "raise the limit of open files (ulimit -n)";
    default: return writing ? "choose another place" : "check the file";
    }
}

static enum ghp_status fail_io(const char *verb, const char *path, int error)
{
    if (error == ENOMEM) return GHP_NO_MEMORY();
    return GHP_FAIL(GHP_ERR_IO, "cannot %s '%s': %s; %s", verb, path, strerror(error),
                    remedy(error, verb[0] == 'w'));
}

enum ghp_status ghp_file_fail_write(const char *path, int error)
{
    return fail_io("write", path, error);
}

enum ghp_status ghp_file_fail_read(const char *path, int error)
{
    return fail_io("read", path, error);
}

enum ghp_status ghp_file_flush(FILE *out, const char *what)
{
    bool failed_before = ferror(out) != 0;

    if (fflush(out) == 0 && !failed_before) return GHP_OK;
    return GHP_FAIL(GHP_ERR_IO, "cannot write %s: %s; free space there, or let it go elsewhere",
                    what, failed_before ? "not all of it was taken" : strerror(errno));
}

/* ---- reading ---- */

static const char *kind_of(mode_t mode)
{
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

/* Whether the name is that of a descriptor of this process. */
static bool is_own(const char *path)
{
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static void wait_again(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0) (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

static enum ghp_status open_checked(const char *path, bool takes_pipe, int *fd)
{
    struct stat about = {0};
    int error;

    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd < 0) return ghp_file_fail_read(path, errno);
    error = fstat(*fd, &about) != 0 ? errno : S_ISDIR(about.st_mode) ? EISDIR : 0;
    if (error == 0 && takes_pipe && S_ISFIFO(about.st_mode) && is_own(path)) {
        wait_again(*fd);
        return GHP_OK;
    }
    if (error == 0 && S_ISREG(about.st_mode)) return GHP_OK;
    close(*fd);
    *fd = -1;
    if (error != 0) return ghp_file_fail_read(path, error);
    return GHP_FAIL(GHP_ERR_IO,
                    "cannot read '%s': it is %s, no regular file; store what it gives in a file, "
                    "and name that",
                    path, kind_of(about.st_mode));
}

bool ghp_file_is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

enum ghp_status ghp_file_open(const char *path, int *fd)
{
    return open_checked(path, false, fd);
}

enum ghp_status ghp_file_open_whole(const char *path, int *fd)
{
    return open_checked(path, true, fd);
}

enum ghp_status ghp_file_map(const char *path, void **memory, size_t *bytes)
{
    struct stat about;
    void *at = NULL;
    int fd, error;

    *memory = NULL;
    *bytes = 0;
    GHP_TRY(ghp_file_open(path, &fd));
    error = fstat(fd, &about) != 0 ? errno : 0;
    if (error == 0 && about.st_size > 0) {
        at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) error = errno;
    }
    close(fd);
    if (error != 0) return ghp_file_fail_read(path, error);
    *memory = at;
    *bytes = (size_t)about.st_size;
    return GHP_OK;
}

/* ---- writing ---- */

static bool is_link(const char *path, struct stat *about)
{
    return lstat(path, about) == 0 && S_ISLNK(about->st_mode);
}

enum ghp_status ghp_file_check_link(const char *path)
{
    struct stat about;

    if (!is_link(path, &about) || about.st_uid == geteuid() || about.st_uid == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_IO,
                    "cannot write '%s': it is a link that another user made; remove it, or choose "
                    "another name",
                    path);
}

enum ghp_status ghp_file_open_output(const char *path, bool append, int *fd)
{
    struct stat about = {0};
    int follow, error = 0;

    *fd = -1;
    GHP_TRY(ghp_file_check_link(path));
    follow = is_link(path, &about) ? 0 : O_NOFOLLOW;
    *fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | follow,
               0666);
    if (*fd < 0) return ghp_file_fail_write(path, errno);
    if (fstat(*fd, &about) != 0) error = errno;
    if (error == 0 && S_ISREG(about.st_mode) && !append && ftruncate(*fd, 0) != 0) error = errno;
    wait_again(*fd);
    if (error == 0) return GHP_OK;
    close(*fd);
    *fd = -1;
    return ghp_file_fail_write(path, error);
}

int ghp_file_open_temporary(const char *path, char *name, size_t n)
{
    int length = ghp_leftover_name(path, name, n), fd;

    for (int i = 1; length >= 0 && (size_t)length < n; i++) {
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0) ghp_leftover_hold(fd);
        if (fd >= 0 || errno != EEXIST || i > TEMPORARY_TRIES) return fd;
        int more = snprintf(name + length, n - (size_t)length, "-%d", i);
        if (more < 0 || (size_t)(length + more) >= n) break;
    }
    errno = ENAMETOOLONG;
    return -1;
}

void ghp_file_guard_standard(void)
{
    signal(SIGXFSZ, SIG_IGN);
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY); /* the lowest: fd */
}
