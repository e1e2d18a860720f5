/* One job at a time in a folder: a second one is refused and told whose the folder is; the lock of a process that was
 * killed is taken over; that of another host is, if nobody renews it; a link or a pipe in its place is refused. */
#include "executor/platform/folder_lock.h"
#include "core/base/clock.h"
#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *folder;
static char path[64];
static const struct ghp_folder_lock_times quick = {.renewal_s = 0.05, .patience_s = 0.5};

static void pause_s(double seconds)
{
    struct timespec t = {0, (long)(seconds * 1e9)};

    nanosleep(&t, NULL);
}

static bool exists(void)
{
    struct stat about;

    return lstat(path, &about) == 0;
}

static void refused(const char *says)
{
    struct ghp_folder_lock *lock = NULL;

    CHECK_STATUS(ghp_folder_lock_take(folder, quick, &lock), GHP_ERR_IO);
    CHECK(lock == NULL);
    if (!CHECK(strstr(ghp_status_message(), says) != NULL))
        fprintf(stderr, "lacks '%s': %s\n", says, ghp_status_message());
}

/* Takes the folder and leaves it again. */
static void taken(void)
{
    struct ghp_folder_lock *lock = NULL;

    if (!CHECK_STATUS(ghp_folder_lock_take(folder, quick, &lock), GHP_OK)) return;
    CHECK(exists());
    refused("another job trains into '/tmp/ghp-test-");
    ghp_folder_lock_release(lock);
    CHECK(!exists());
}

static void of_elsewhere(void)
{
    FILE *file = fopen(path, "w");

    fputs("host else.where\nprocess 1\nsince 2020-01-01 00:00:00 UTC\n", file);
    fclose(file);
}

static void check_renewal(void)
{
    struct ghp_folder_lock *lock = NULL;
    struct stat first, second;

    if (!CHECK_STATUS(ghp_folder_lock_take(folder, quick, &lock), GHP_OK)) return;
    stat(path, &first);
    for (int i = 0; i < 100; i++) {
        pause_s(0.05);
        stat(path, &second);
        if (memcmp(&first.st_mtim, &second.st_mtim, sizeof first.st_mtim) != 0) break;
    }
    CHECK(memcmp(&first.st_mtim, &second.st_mtim, sizeof first.st_mtim) != 0);
    ghp_folder_lock_release(lock);
}

/* A child has the folder until it is killed. */
static void check_killed(void)
{
    int said[2];
    char byte = 0;
    pid_t child;

    if (pipe(said) != 0 || (child = fork()) < 0) exit(1);
    if (child == 0) {
        struct ghp_folder_lock *lock = NULL;

        if (ghp_folder_lock_take(folder, quick, &lock) != GHP_OK) _exit(1);
        if (write(said[1], &byte, 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    if (read(said[0], &byte, 1) != 1) exit(1);
    refused("wait for its end, or name another folder with --checkpoint");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(exists());
    taken();
}

/* Another host's lock, which a child renews for as long as it lives. */
static void check_elsewhere(void)
{
    double begin_s = ghp_now_s();
    pid_t child;

    of_elsewhere();
    taken();
    CHECK(ghp_now_s() - begin_s >= quick.patience_s);
    of_elsewhere();
    child = fork();
    if (child == 0)
        for (int i = 0;; i++) {
            struct timespec now[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};

            utimensat(AT_FDCWD, path, now, 0);
            pause_s(0.05);
        }
    pause_s(0.2);
    refused("process 1 of host 'else.where', since 2020-01-01 00:00:00 UTC; wait for its end");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    taken();
}

/* What is in the lock's place and is not a file of ours. */
static void check_odd(void)
{
    CHECK(symlink("/tmp/ghp-nowhere", path) == 0);
    refused("cannot lock");
    CHECK(access("/tmp/ghp-nowhere", F_OK) != 0);
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0);
    refused("cannot lock");
    unlink(path);
}

int main(void)
{
    folder = check_folder();
    snprintf(path, sizeof path, "%s/checkpoint.lock", folder);
    taken();
    check_renewal();
    check_killed();
    check_elsewhere();
    check_odd();
    return check_end();
}
