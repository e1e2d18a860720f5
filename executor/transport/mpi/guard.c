/* executor/transport/mpi/guard.c - a thread that ends this process if MPI or NCCL does not return, and that says for
 * a thread at work alone that this process lives, and names a kernel that does not return.
 *
 * Most waits are ghp's own and end with a failure (wait.c). MPI's start, its communicators, its end and its
 * abort cannot be left, nor can NCCL's start and end, so there no failure can reach main: this is the one place below
 * it that says it itself. */
#include "executor/transport/mpi/communicator.h"
#include "core/base/clock.h"

#include "core/base/log.h"
#include "executor/platform/activity.h"
#include "executor/platform/launch.h"
#include "executor/platform/local_peers.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_TAG = 12 };
static const double most_beat_s = 1; /* between two signs of life */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool runs;
    const char *library, *what; /* the library is in it, NULL: in nothing */
    double limit_s, until_s;
    int exit_code, rank, size; /* rank -1: not known yet */
    double beat_s, next_beat_s;
    bool beats;
    double watchdog_s;
    struct ghp_activity activity; /* the one that was seen last */
    double spent_s, seen_s; /* of it, without what this process stood still; when it was seen */
    bool said;
} guard = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = -1};

/* MPI has not started, so it knows no ranks: /proc shows which of this host stopped or exited. The lowest rank of each
 * host speaks. If it misses none, it gives those of other hosts a moment to say which ones they miss. */
static _Noreturn void end_start(void)
{
    char missing[256];
    bool first = ghp_local_peers_missing(missing, sizeof missing), knows = missing[0] != '\0';

    if (!first) sleep(3);
    ghp_log_failure(
        "worker %ld waited %.0f s in '%s': %s%s; see why, and whether the launcher is still alive, "
        "or raise --watchdog if they are only slow",
        ghp_launched_rank(), guard.limit_s, guard.what,
        knows ? "MPI cannot start without rank(s) "
              : "MPI does not return, and no worker of this "
                "host is missing",
        missing);
    if (!knows) sleep(2);
    _exit(guard.exit_code);
}

/* Rank 0 speaks first, as elsewhere: its end ends the others. */
static _Noreturn void end(void)
{
    if (guard.rank < 0 && guard.limit_s > 0) end_start();
    if (guard.rank > 0) sleep(1);
    if (guard.limit_s > 0)
        ghp_log_failure(
            "worker %d waited %.0f s in '%s': %s does not return; see whether all workers and "
            "their launcher are still alive, or raise --watchdog if they are only slow",
            guard.rank, guard.limit_s, guard.what, guard.library);
    _exit(guard.exit_code);
}

static void beat(void)
{
    for (int r = 0; r < guard.size; r++) {
        MPI_Request request;

        if (r == guard.rank) continue;
        if (MPI_Isend(NULL, 0, MPI_BYTE, r, BEAT_TAG, MPI_COMM_WORLD, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

/* A kernel that does not return within the watchdog's limit is named. It may only be slow, so nothing but a signal ends
 * the process then; without this thread nobody would look at the signal. */
static void look_at_activity(double now_s)
{
    struct ghp_activity now = ghp_activity_now();
    double passed_s = now_s - guard.seen_s;

    guard.seen_s = now_s;
    if (now.what == NULL || now.number != guard.activity.number) {
        guard.activity = now;
        guard.spent_s = 0;
        guard.said = false;
        return;
    }
    guard.spent_s += passed_s < 2 * guard.beat_s ? passed_s : 2 * guard.beat_s;
    if (guard.spent_s < guard.watchdog_s) return;
    if (!guard.said)
        ghp_log_failure("worker %d has been in '%s' of step %llu for %.0f s: if it is not only "
                        "slow, end the run by SIGTERM or Ctrl-C; --watchdog is this time",
                        guard.rank > 0 ? guard.rank : 0, now.what, (unsigned long long)now.step,
                        guard.spent_s);
    guard.said = true;
    if (ghp_activity_interrupted() == 0) return;
    ghp_log_failure("worker %d is ended in '%s' of step %llu, without a checkpoint of that step",
                    guard.rank > 0 ? guard.rank : 0, now.what, (unsigned long long)now.step);
    _exit(guard.exit_code);
}

static void *run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&guard.mutex);
    while (guard.runs) {
        double now_s = ghp_now_s(), wake_s = now_s + guard.beat_s;
        struct timespec wake;

        if (guard.what != NULL && now_s >= guard.until_s) end();
        look_at_activity(now_s);
        if (guard.what != NULL && guard.until_s < wake_s) wake_s = guard.until_s;
        if (guard.beats && now_s >= guard.next_beat_s) {
            beat();
            guard.next_beat_s = now_s + guard.beat_s;
        }
        if (guard.beats && guard.next_beat_s < wake_s) wake_s = guard.next_beat_s;
        wake = (struct timespec){.tv_sec = (time_t)wake_s,
                                 .tv_nsec = (long)((wake_s - (double)(time_t)wake_s) * 1e9)};
        pthread_cond_timedwait(&guard.changed, &guard.mutex, &wake);
    }
    pthread_mutex_unlock(&guard.mutex);
    return NULL;
}

enum ghp_status ghp_mpi_guard_open(double watchdog_s)
{
    pthread_condattr_t attributes;
    sigset_t all, before;
    int error;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&guard.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    guard.runs = true;
    guard.exit_code = ghp_status_exit_code(GHP_ERR_COMM);
    guard.watchdog_s = watchdog_s;
    guard.beat_s = watchdog_s / 4 < most_beat_s ? watchdog_s / 4 : most_beat_s;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the others */
    error = pthread_create(&guard.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) return GHP_OK;
    guard.runs = false;
    return GHP_FAIL(GHP_ERR_NO_MEMORY, "cannot start a thread; raise the limit of processes");
}

static void change(const char *library, const char *what, double limit_s)
{
    pthread_mutex_lock(&guard.mutex);
    guard.library = library;
    guard.what = what;
    guard.limit_s = limit_s;
    guard.until_s = ghp_now_s() + limit_s;
    pthread_cond_signal(&guard.changed);
    pthread_mutex_unlock(&guard.mutex);
}

void ghp_mpi_guard_begin(const char *library, const char *what, double limit_s)
{
    change(library, what, limit_s);
}

void ghp_mpi_guard_end(void)
{
    change(NULL, NULL, 0);
}

void ghp_mpi_guard_know(int rank, int size)
{
    pthread_mutex_lock(&guard.mutex);
    guard.rank = rank;
    guard.size = size;
    pthread_mutex_unlock(&guard.mutex);
}

void ghp_mpi_guard_close(void)
{
    if (!guard.runs) return;
    pthread_mutex_lock(&guard.mutex);
    guard.runs = false;
    pthread_cond_signal(&guard.changed);
    pthread_mutex_unlock(&guard.mutex);
    pthread_join(guard.thread, NULL);
    pthread_cond_destroy(&guard.changed);
}

void ghp_mpi_alone(bool alone)
{
    pthread_mutex_lock(&guard.mutex);
    guard.beats = alone;
    guard.next_beat_s = 0;
    pthread_cond_signal(&guard.changed);
    pthread_mutex_unlock(&guard.mutex);
}

bool ghp_mpi_heard_beat(void)
{
    bool heard = false;

    for (;;) {
        int found = 0;
        MPI_Message message;

        if (MPI_Improbe(MPI_ANY_SOURCE, BEAT_TAG, MPI_COMM_WORLD, &found, &message,
                        MPI_STATUS_IGNORE) != MPI_SUCCESS ||
            !found)
            return heard;
        MPI_Mrecv(NULL, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        heard = true;
    }
}

void ghp_mpi_abort(int exit_code)
{
    static const double abort_s = 5;

    pthread_mutex_lock(&guard.mutex);
    guard.exit_code = exit_code;
    guard.what = "aborting"; /* the failure is said already */
    guard.limit_s = 0;
    guard.until_s = ghp_now_s() + abort_s;
    pthread_cond_signal(&guard.changed);
    pthread_mutex_unlock(&guard.mutex);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);
}
