/* executor/transport/mpi/wait.c - waiting, and what is said of a wait that took too long. */
#include "executor/transport/mpi/communicator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NO_TAG = 9 }; /* of no message */

/* Pauses of at most 50 us while an exchange's end is waited for, and of 200 us in reductions. These share the core with
 * a computing thread: each test interrupts it, and what arrives meanwhile waits in the socket. A sleeper is woken in
 * time even during computing, and takes little from it. */
static const struct ghp_backoff backoffs[GHP_STREAM_COUNT] = {
    [GHP_STREAM_COMPUTE] = {20e-6, 5000, 50000, 4},
    [GHP_STREAM_COMM] = {20e-6, 5000, 200000, 4},
    [GHP_STREAM_TRANSFER] = {20e-6, 5000, 50000, 4}};

struct ghp_backoff_wait ghp_mpi_backoff_begin(const struct ghp_mpi_comm *comm)
{
    return ghp_backoff_begin(&backoffs[comm->base.stream]);
}

void ghp_mpi_miss(struct ghp_mpi_missing *missing, int rank, bool from)
{
    char *list = from ? missing->from : missing->to;
    size_t used = strlen(list);

    if (used + 16 < sizeof missing->from)
        snprintf(list + used, sizeof missing->from - used, "%s%d", used > 0 ? ", " : "", rank);
}

enum ghp_status ghp_mpi_stalled(const struct ghp_mpi_comm *comm,
                                const struct ghp_mpi_missing *missing)
{
    return GHP_FAIL(GHP_ERR_COMM,
                    "worker %d waited %.0f s in '%s': nothing arrived from rank(s) %s, not taken "
                    "by rank(s) %s; "
                    "see why they stopped, or raise --watchdog if they are only slow",
                    comm->transport->control.rank, ghp_control_limit_s(&comm->transport->control),
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

static enum ghp_status test_all(const struct ghp_mpi_comm *comm, struct ghp_mpi_posted *posted,
                                int *done)
{
    GHP_TRY(ghp_mpi_check(MPI_Testall(posted->n, posted->requests, done, MPI_STATUSES_IGNORE),
                          "waiting"));
    for (int i = 0; i < posted->n && *done && comm->port != NULL; i++)
        GHP_TRY(ghp_mpi_check(MPI_Test(&posted->stamps[i].request, done, MPI_STATUS_IGNORE),
                              "waiting"));
    return GHP_OK;
}

/* The message that left first of those not yet taken, whose stamps are after `after_s`, or as early and later in the
 * list; -1: none. */
static int next_by_stamp(const struct ghp_mpi_posted *posted, int last)
{
    int best = -1;

    for (int i = 0; i < posted->n; i++) {
        double left_s = posted->stamps[i].left_s,
               last_s = last >= 0 ? posted->stamps[last].left_s : 0;

        if (last >= 0 && (left_s < last_s || (left_s <= last_s && i <= last))) continue;
        if (best < 0 || left_s < posted->stamps[best].left_s) best = i;
    }
    return best;
}

/* Until all messages have gone through the ports, those that left first before the others. */
static void sleep_for_ports(const struct ghp_mpi_comm *comm, const struct ghp_mpi_posted *posted)
{
    double due_s = 0;

    for (int i = next_by_stamp(posted, -1); i >= 0; i = next_by_stamp(posted, i)) {
        const struct ghp_mpi_stamp *stamp = &posted->stamps[i];

        due_s = fmax(due_s, posted->receives[i]
                                ? ghp_mpi_port_arrive(comm->port, stamp->bytes, stamp->left_s)
                                : stamp->left_s);
    }
    ghp_emulation_sleep_until(due_s);
}

enum ghp_status ghp_mpi_wait(struct ghp_mpi_comm *comm, int request_set)
{
    struct ghp_mpi_posted *posted = &comm->posted[request_set];
    struct ghp_backoff_wait wait = ghp_mpi_backoff_begin(comm);
    double limit_s = ghp_control_limit_s(&comm->transport->control), waited_s;
    int done = 0;

    for (;;) {
        GHP_TRY(test_all(comm, posted, &done));
        if (done) break;
        if (!ghp_backoff_pause(&wait)) continue;
        waited_s = ghp_backoff_waited_s(&wait);
        if (waited_s > limit_s / 8 && ghp_mpi_heard_beat())
            wait.begin_s += waited_s;
        else if (waited_s > limit_s)
            return fail_stalled(comm, posted);
    }
    if (comm->port != NULL) sleep_for_ports(comm, posted);
    posted->n = 0;
    return GHP_OK;
}
