/* executor/transport/mpi/request.c - messages that are posted, and what MPI says of a call that failed. */
#include "executor/transport/mpi/communicator.h"

enum { MESSAGE_TAG = 7, STAMP_TAG = 8 };

enum ghp_status ghp_mpi_check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int n = 0;

    if (code == MPI_SUCCESS) return GHP_OK;
    MPI_Error_string(code, text, &n);
    return GHP_FAIL(GHP_ERR_COMM, "%s failed in MPI: %s; see whether all workers are still alive",
                    what, text);
}

/* The place of the next request in the present request set, which counts once the message is posted. */
static MPI_Request *next_request(struct ghp_mpi_comm *comm, int64_t bytes, int peer, bool receives)
{
    struct ghp_mpi_posted *posted = &comm->posted[comm->request_set];

    GHP_ASSERT(posted->n < 2 * comm->count && bytes <= GHP_MPI_MESSAGE_BYTES);
    posted->peer[posted->n] = peer;
    posted->receives[posted->n] = receives;
    return &posted->requests[posted->n];
}

/* The stamp of the message that was just posted. */
static enum ghp_status post_stamp(struct ghp_mpi_comm *comm, int64_t bytes)
{
    struct ghp_mpi_posted *posted = &comm->posted[comm->request_set];
    struct ghp_mpi_stamp *stamp = &posted->stamps[posted->n];
    int peer = posted->peer[posted->n];

    if (comm->port == NULL) return GHP_OK;
    stamp->bytes = bytes;
    if (posted->receives[posted->n])
        return ghp_mpi_check(
            MPI_Irecv(&stamp->left_s, 1, MPI_DOUBLE, peer, STAMP_TAG, comm->mpi, &stamp->request),
            "receiving");
    stamp->left_s = ghp_mpi_port_leave(comm->port, bytes);
    return ghp_mpi_check(
        MPI_Isend(&stamp->left_s, 1, MPI_DOUBLE, peer, STAMP_TAG, comm->mpi, &stamp->request),
        "sending");
}

enum ghp_status ghp_mpi_receive(struct ghp_mpi_comm *comm, void *to, int64_t bytes, int peer)
{
    MPI_Request *request = next_request(comm, bytes, peer, true);

    GHP_TRY(ghp_mpi_check(
        MPI_Irecv(to, (int)bytes, MPI_BYTE, peer, MESSAGE_TAG, comm->mpi, request), "receiving"));
    GHP_TRY(post_stamp(comm, bytes));
    comm->posted[comm->request_set].n++;
    return GHP_OK;
}

enum ghp_status ghp_mpi_send(struct ghp_mpi_comm *comm, const void *from, int64_t bytes, int peer)
{
    MPI_Request *request = next_request(comm, bytes, peer, false);

    GHP_TRY(ghp_mpi_check(
        MPI_Isend(from, (int)bytes, MPI_BYTE, peer, MESSAGE_TAG, comm->mpi, request), "sending"));
    GHP_TRY(post_stamp(comm, bytes));
    comm->posted[comm->request_set].n++;
    return GHP_OK;
}
