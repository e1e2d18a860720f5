/* executor/transport/mpi/wait.c - waiting, and what is said of a wait that took too long. */
#include "executor/transport/mpi/communicator.h"
#include "core/base/clock.h"

#include "executor/platform/step_timer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SLEEP_FIRST_NS = 5000,
    NO_TAG = 9 /* of no message */
};
const double ghp_mpi_testing_s = 20e-6;

/* Longest pause between tests [ns]: an exchange's end is waited for; reductions run beside a computing thread of the
 * same core, which each test interrupts, and what arrives meanwhile waits in the socket. */
static const long sleep_last_ns[GHP_STREAM_COUNT] = {
    [GHP_STREAM_COMPUTE] = 50000, [GHP_STREAM_COMM] = 200000, [GHP_STREAM_TRANSFER] = 50000};

long ghp_mpi_pause_ns(const struct ghp_mpi_comm *comm, long last_ns)
{
    long longer = last_ns == 0 ? SLEEP_FIRST_NS : last_ns + last_ns / 4;

    return longer < sleep_last_ns[comm->base.stream] ? longer : sleep_last_ns[comm->base.stream];
}

void ghp_mpi_miss(struct ghp_mpi_missing *missing, int rank, bool from)
{
    char *list = from ? missing->from : missing->to;
    size_t used = strlen(list);

    if (used + 16 < sizeof(missing->from))
        snprintf(list + used, sizeof(missing->from) - used, "%s%d", used > 0 ? ", " : "", rank);
}

enum ghp_status ghp_mpi_stalled(const struct ghp_mpi_comm *comm,
                                const struct ghp_mpi_missing *missing)
{
    return GHP_FAIL(GHP_ERR_COMM,
                    "worker %d waited %.0f s in '%s': nothing arrived from rank(s) %s, not taken "
                    "by rank(s) %s; "
                    "see why they stopped, or raise --watchdog if they are only slow",
                    comm->transport->control.rank, comm->transport->control.watchdog_s,
                    comm->base.label, missing->from[0] != '\0' ? missing->from : "none",
                    missing->to[0] != '\0' ? missing->to : "none");
}

static enum ghp_status fail_stalled(struct ghp_mpi_comm *comm, struct ghp_mpi_posted *posted)
{
    struct ghp_mpi_missing missing = {"", ""};

    for (int i = 0; i < posted->n; i++) {
        int done = 0;

        if (posted->requests[i] == MPI_REQUEST_NULL) continue;
        if (MPI_Test(&posted->requests[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done)
            continue;
        ghp_mpi_miss(&missing, ghp_ranks_at(comm->base.ranks, posted->peer[i]),
                     posted->receives[i]);
    }
    return ghp_mpi_stalled(comm, &missing);
}

/* A look for a message that nobody sends. */
enum ghp_status ghp_mpi_progress(struct ghp_mpi_comm *comm)
{
    int found = 0;

    return ghp_mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, NO_TAG, comm->mpi, &found, MPI_STATUS_IGNORE),
                         "waiting");
}

/* Tests for a moment, then sleeps between tests: a sleeper is woken in time even beside a computing thread, and takes
 * little from it.  It never yields: on Linux since 6.6 a yield gives the whole time slice (3 ms) to whoever computes on
 * the same core, and the link stands still meanwhile. */
enum ghp_status ghp_mpi_wait(struct ghp_mpi_comm *comm, int request_set)
{
    struct ghp_mpi_posted *posted = &comm->posted[request_set];
    double begin = ghp_now_s(), now = begin;
    long sleep_ns = 0;
    int done = 0;

    for (;;) {
        GHP_TRY(ghp_mpi_check(MPI_Testall(posted->n, posted->requests, &done, MPI_STATUSES_IGNORE),
                              "waiting"));
        if (done) break;
        if (now - begin < ghp_mpi_testing_s) {
            now = ghp_now_s();
            continue;
        }
        sleep_ns = ghp_mpi_pause_ns(comm, sleep_ns);
        nanosleep(&(struct timespec){.tv_nsec = sleep_ns}, NULL);
        now = ghp_now_s();
        if (now - begin > comm->transport->control.watchdog_s / 8 && ghp_mpi_heard_beat())
            begin = now;
        if (now - begin > comm->transport->control.watchdog_s) return fail_stalled(comm, posted);
    }
    posted->n = 0;
    return GHP_OK;
}
