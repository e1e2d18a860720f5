/* executor/platform/folder_lock.c - see folder_lock.h. */
#include "executor/platform/folder_lock.h"

#include "core/base/clock.h"
#include "core/base/leftover.h"
#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, HOST_BYTES = 256, TEXT_BYTES = 512, TURNS = 100 };
static const double look_s = 0.2; /* from one look at another host's lock to the next */

const struct ghp_folder_lock_times ghp_folder_lock_usual = {.renewal_s = 5, .patience_s = 30};

struct ghp_folder_lock {
    char path[PATH_BYTES];
    int file;
    double renewal_s;
    pthread_t thread;
    bool renews; /* there is a thread */
    pthread_mutex_t mutex;
    pthread_cond_t ends;
    bool ended; /* under the mutex */
};

/* What a lock says of the job that has it. */
struct holder {
    char text[TEXT_BYTES]; /* "": nothing */
    char host[HOST_BYTES], since[64];
    long process;
};

static void host_name(char host[HOST_BYTES])
{
    memset(host, 0, HOST_BYTES);
    if (gethostname(host, HOST_BYTES - 1) != 0) snprintf(host, HOST_BYTES, "unknown");
}

static void sleep_s(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&t, NULL);
}

/* ---- the file ---- */

static enum ghp_status fail_file(const char *path)
{
    return GHP_FAIL(GHP_ERR_IO,
                    "cannot lock '%s': %s; name another folder with --checkpoint, or remove that "
                    "file if no job writes there",
                    path, strerror(errno));
}

static enum ghp_status open_file(const char *path, int *file)
{
    struct stat about;

    *file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (*file < 0) return fail_file(path);
    if (fstat(*file, &about) == 0 && S_ISREG(about.st_mode)) return GHP_OK;
    close(*file);
    errno = EINVAL;
    return fail_file(path);
}

/* Whether the open file still has its name: its former holder may have removed it since. */
static bool has_name(int file, const char *path)
{
    struct stat open_one, named;

    return fstat(file, &open_one) == 0 && lstat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

static struct holder read_holder(int file)
{
    struct holder h = {.process = 0};
    ssize_t n = pread(file, h.text, sizeof h.text - 1, 0);

    h.text[n > 0 ? n : 0] = '\0';
    if (sscanf(h.text, "host %255[^\n]\nprocess %ld\nsince %63[^\n]", h.host, &h.process,
               h.since) != 3)
        snprintf(h.host, sizeof h.host, "unknown");
    return h;
}

static enum ghp_status fail_held(const char *folder, const struct holder *h)
{
    if (h->since[0] == '\0')
        return GHP_FAIL(GHP_ERR_IO,
                        "another job has just begun to train into '%s'; wait for its end, or name "
                        "another folder with --checkpoint",
                        folder);
    return GHP_FAIL(GHP_ERR_IO,
                    "another job trains into '%s': process %ld of host '%s', since %s; wait for "
                    "its end, or name another folder with --checkpoint",
                    folder, h->process, h->host, h->since);
}

/* ---- whether it is stale ---- */

/* Whether the file was renewed, rewritten or removed within the time. It is opened again for each look, as a network's
 * file system may answer from memory for a file that is open. */
static bool is_renewed(const char *path, double patience_s)
{
    double end_s = ghp_now_s() + patience_s;
    struct stat first = {0}, now;

    for (bool begun = false;; begun = true) {
        int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        if (file < 0) return true;
        if (fstat(file, &now) != 0) now = first;
        close(file);
        if (!begun) first = now;
        if (now.st_mtim.tv_sec != first.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != first.st_mtim.tv_nsec)
            return true;
        if (ghp_now_s() >= end_s) return false;
        sleep_s(look_s);
    }
}

/* Whether the job that wrote the lock lives. locked: this process has got the system's lock of the file. */
static bool is_alive(const char *path, const struct holder *h, bool locked, double patience_s)
{
    char host[HOST_BYTES];

    host_name(host);
    if (strcmp(h->host, host) == 0)
        return !locked && h->process != (long)getpid() && ghp_leftover_lives(h->process);
    ghp_note("'%s' is of process %ld of host '%s', since %s: waiting for a sign of life, at most "
             "%.0f s",
             path, h->process, h->host, h->since[0] != '\0' ? h->since : "an unknown time",
             patience_s);
    return is_renewed(path, patience_s);
}

/* ---- taking it ---- */

static void *renew(void *context)
{
    struct ghp_folder_lock *lock = context;
    struct timespec until;

    pthread_mutex_lock(&lock->mutex);
    while (!lock->ended) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += (time_t)lock->renewal_s;
        until.tv_nsec += (long)((lock->renewal_s - (double)(time_t)lock->renewal_s) * 1e9);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&lock->ends, &lock->mutex, &until);
        if (!lock->ended) (void)futimens(lock->file, NULL);
    }
    pthread_mutex_unlock(&lock->mutex);
    return NULL;
}

/* The file says that it is this process's, and a thread renews it. Owns the file, also on failure. */
static enum ghp_status hold(int file, const char *path, double renewal_s,
                            struct ghp_folder_lock **out)
{
    struct ghp_folder_lock *lock = ghp_alloc(1, sizeof *lock);
    char text[TEXT_BYTES], host[HOST_BYTES], since[64] = "";
    time_t now = time(NULL);
    sigset_t all, before;
    struct tm utc;
    int n;

    if (lock == NULL) {
        close(file);
        return GHP_NO_MEMORY();
    }
    *lock = (struct ghp_folder_lock){.file = file, .renewal_s = renewal_s};
    snprintf(lock->path, sizeof lock->path, "%s", path);
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->ends, NULL);
    host_name(host);
    if (gmtime_r(&now, &utc) != NULL) strftime(since, sizeof since, "%F %T UTC", &utc);
    n = snprintf(text, sizeof text, "host %s\nprocess %ld\nsince %s\n", host, (long)getpid(),
                 since);
    if (ftruncate(file, 0) != 0 || pwrite(file, text, (size_t)n, 0) != n) {
        enum ghp_status status = fail_file(path);

        ghp_folder_lock_release(lock);
        return status;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for other threads */
    lock->renews = pthread_create(&lock->thread, NULL, renew, lock) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *out = lock;
    return GHP_OK;
}

enum ghp_status ghp_folder_lock_take(const char *folder, struct ghp_folder_lock_times times,
                                     struct ghp_folder_lock **lock)
{
    char path[PATH_BYTES];

    *lock = NULL;
    snprintf(path, sizeof path, "%s/checkpoint.lock", folder);
    for (int turn = 0; turn < TURNS; turn++) {
        bool locked, held;
        struct holder h;
        int file;

        GHP_TRY(open_file(path, &file));
        locked = flock(file, LOCK_EX | LOCK_NB) == 0;
        held = !locked && errno == EWOULDBLOCK;
        h = read_holder(file);
        if (!held && !has_name(file, path)) {
            close(file);
            continue;
        }
        if (held || (h.text[0] != '\0' && is_alive(path, &h, locked, times.patience_s))) {
            close(file);
            return fail_held(folder, &h);
        }
        if (h.text[0] != '\0')
            ghp_note("'%s' is cleared: its job is gone, process %ld of host '%s', since %s", path,
                     h.process, h.host, h.since[0] != '\0' ? h.since : "an unknown time");
        return hold(file, path, times.renewal_s, lock);
    }
    errno = EBUSY;
    return fail_file(path);
}

void ghp_folder_lock_release(struct ghp_folder_lock *lock)
{
    if (lock == NULL) return;
    pthread_mutex_lock(&lock->mutex);
    lock->ended = true;
    pthread_cond_signal(&lock->ends);
    pthread_mutex_unlock(&lock->mutex);
    if (lock->renews) pthread_join(lock->thread, NULL);
    if (has_name(lock->file, lock->path)) unlink(lock->path);
    close(lock->file);
    pthread_cond_destroy(&lock->ends);
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
}
