/* executor/transport/mpi/status_barrier.c - all are there, and all are well: before a communicator is made, and at
 * the end.
 *
 * Messages between single ranks of the world, because a communicator may be what is to be made. */
#include "executor/transport/mpi/communicator.h"

enum { BARRIER_TAG = 11 };

/* Seldom needed, and never in a hurry: short of memory. */
static const struct ghp_backoff calm = {.first_ns = 100000, .last_ns = 100000, .growth = 1};

/* Without room for many requests: one after the other. So small a message goes whether or not it is waited for. */
static enum ghp_status tell_one_by_one(struct ghp_ranks ranks, int rank, int64_t message)
{
    for (int i = 0; i < ranks.count; i++) {
        struct ghp_backoff_wait wait = ghp_backoff_begin(&calm);
        MPI_Request request;
        int done = 0;

        if (ghp_ranks_at(ranks, i) == rank) continue;
        GHP_TRY(ghp_mpi_check(MPI_Isend(&message, 1, MPI_INT64_T, ghp_ranks_at(ranks, i),
                                        BARRIER_TAG, MPI_COMM_WORLD, &request),
                              "sending"));
        for (;;) {
            GHP_TRY(ghp_mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "sending"));
            if (done) break;
            ghp_backoff_pause(&wait);
        }
    }
    return GHP_OK;
}

static enum ghp_status post(struct ghp_mpi_comm *room, int64_t *message, int i, bool receives)
{
    struct ghp_mpi_posted *posted = &room->posted[0];
    MPI_Request *request = &posted->requests[posted->n];
    int peer = ghp_ranks_at(room->base.ranks, i);

    posted->peer[posted->n] = i;
    posted->receives[posted->n] = receives;
    GHP_TRY(ghp_mpi_check(
        receives ? MPI_Irecv(message, 1, MPI_INT64_T, peer, BARRIER_TAG, MPI_COMM_WORLD, request)
                 : MPI_Isend(message, 1, MPI_INT64_T, peer, BARRIER_TAG, MPI_COMM_WORLD, request),
        receives ? "receiving" : "sending"));
    posted->n++;
    return GHP_OK;
}

enum ghp_status ghp_mpi_status_barrier(struct ghp_mpi *t, struct ghp_ranks ranks,
                                       struct ghp_mpi_comm *room, enum ghp_status status)
{
    int64_t mine = status;
    bool failed = status != GHP_OK;

    if (ranks.count == 1) return status;
    if (room == NULL) {
        GHP_TRY(tell_one_by_one(ranks, t->control.rank, mine));
        t->settled = ranks.count == t->control.size;
        return status;
    }
    for (int i = 1; i < ranks.count; i++) {
        int from = (room->index - i + ranks.count) % ranks.count;

        GHP_TRY(post(room, &room->messages[from].status, from, true));
    }
    for (int i = 1; i < ranks.count; i++)
        GHP_TRY(post(room, &mine, (room->index + i) % ranks.count, false));
    GHP_TRY(ghp_mpi_wait(room, 0));
    for (int i = 0; i < ranks.count; i++)
        failed = failed || (i != room->index && room->messages[i].status != GHP_OK);
    t->settled = failed && ranks.count == t->control.size;
    for (int i = 0; status == GHP_OK && i < ranks.count; i++)
        if (i != room->index && room->messages[i].status != GHP_OK)
            return GHP_FAIL((enum ghp_status)room->messages[i].status, "worker %d: %s",
                            ghp_ranks_at(ranks, i),
                            ghp_status_name((enum ghp_status)room->messages[i].status));
    return status;
}
