/* executor/transport/mpi/collectives.c - ghp's own collectives over single messages that know no levels.
 *
 * An all-to-all is a pairwise exchange: every rank posts its receives, then sends to the others starting with the one
 * after itself, so that no rank is everybody's first target. Sums: mpi/reduce.c; gathers: mpi/gather.c. */
#include "executor/transport/mpi/communicator.h"

#include <stdio.h>
#include <string.h>

enum { AGREE_TEXT_BYTES = 512 }; /* of a failing rank's message */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Bytes [done, done + n) of each block: in's r-th goes to r, what r sends lands at out's r-th. */
static enum ghp_status exchange_segment(struct ghp_mpi_comm *comm, const char *in, char *out,
                                        const int64_t stride_and_n[2])
{
    int p = comm->count, me = comm->index;
    int64_t stride = stride_and_n[0], n = stride_and_n[1];

    for (int i = 1; i < p; i++) {
        int r = (me - i + p) % p;
        GHP_TRY(ghp_mpi_receive(comm, out + r * stride, n, r));
    }
    for (int i = 1; i < p; i++) {
        int r = (me + i) % p;
        GHP_TRY(ghp_mpi_send(comm, in + r * stride, n, r));
    }
    return ghp_mpi_wait(comm, comm->request_set);
}

enum ghp_status ghp_mpi_all_to_all(struct ghp_mpi_comm *comm, const void *in, void *out,
                                   int64_t bytes_each)
{
    const char *source = in;
    char *target = out;
    int64_t own = comm->index * bytes_each;

    if (bytes_each == 0) return GHP_OK;
    memcpy(target + own, source + own, (size_t)bytes_each);
    for (int64_t done = 0; done < bytes_each && comm->count > 1; done += GHP_MPI_MESSAGE_BYTES) {
        const int64_t stride_and_n[2] = {bytes_each,
                                         smaller(GHP_MPI_MESSAGE_BYTES, bytes_each - done)};

        GHP_TRY(exchange_segment(comm, source + done, target + done, stride_and_n));
    }
    return GHP_OK;
}

enum ghp_status ghp_mpi_shift(struct ghp_mpi_comm *comm, const void *in, void *out, int64_t bytes)
{
    int p = comm->count, me = comm->index;

    for (int64_t done = 0; done < bytes && p > 1; done += GHP_MPI_MESSAGE_BYTES) {
        int64_t n = smaller(GHP_MPI_MESSAGE_BYTES, bytes - done);

        GHP_TRY(ghp_mpi_receive(comm, (char *)out + done, n, (me + p - 1) % p));
        GHP_TRY(ghp_mpi_send(comm, (const char *)in + done, n, (me + 1) % p));
        GHP_TRY(ghp_mpi_wait(comm, comm->request_set));
    }
    return GHP_OK;
}

/* Dissemination: after round i everyone has heard, through others, of 2^(i+1) ranks. */
enum ghp_status ghp_mpi_barrier(struct ghp_mpi_comm *comm)
{
    int p = comm->count, me = comm->index;

    for (int distance = 1; distance < p; distance *= 2) {
        char out = 0, in = 0;

        GHP_TRY(ghp_mpi_receive(comm, &in, 1, (me - distance + p) % p));
        GHP_TRY(ghp_mpi_send(comm, &out, 1, (me + distance) % p));
        GHP_TRY(ghp_mpi_wait(comm, comm->request_set));
    }
    return GHP_OK;
}

enum ghp_status ghp_mpi_tell(struct ghp_mpi_comm *comm, struct ghp_control_message mine,
                             const struct ghp_control_message **messages)
{
    *messages = comm->messages;
    return ghp_mpi_all_gather(comm, &mine, comm->messages, (int64_t)sizeof mine);
}

/* The message of the failing rank `from`, told to all others. */
static enum ghp_status tell_text(struct ghp_mpi_comm *comm, int from, char text[AGREE_TEXT_BYTES])
{
    if (comm->index != from) {
        GHP_TRY(ghp_mpi_receive(comm, text, AGREE_TEXT_BYTES, from));
        return ghp_mpi_wait(comm, comm->request_set);
    }
    snprintf(text, AGREE_TEXT_BYTES, "%s", ghp_status_message());
    for (int i = 1; i < comm->count; i++)
        GHP_TRY(ghp_mpi_send(comm, text, AGREE_TEXT_BYTES, (from + i) % comm->count));
    return ghp_mpi_wait(comm, comm->request_set);
}

/* Whether an exchange has failed and left messages: no other can begin. */
static bool is_under_way(const struct ghp_mpi_comm *comm)
{
    for (int set = 0; set < GHP_MPI_REQUEST_SETS; set++)
        if (comm->posted[set].n > 0) return true;
    return false;
}

enum ghp_status ghp_mpi_agree(struct ghp_mpi_comm *comm, enum ghp_status status)
{
    const struct ghp_control_message *messages;
    enum ghp_status all = status;
    char text[AGREE_TEXT_BYTES] = "";
    int from = 0;

    if (comm->count == 1 || (status != GHP_OK && is_under_way(comm))) return status;
    GHP_TRY(ghp_mpi_tell(comm, (struct ghp_control_message){.status = status}, &messages));
    while (from < comm->count && messages[from].status == GHP_OK)
        from++;
    if (from == comm->count) return GHP_OK;
    comm->transport->settled = comm->count == comm->transport->control.size;
    if (status == GHP_OK) all = (enum ghp_status)messages[from].status;
    GHP_TRY(tell_text(comm, from, text));
    return status != GHP_OK
               ? status
               : GHP_FAIL(all, "worker %d: %s", ghp_ranks_at(comm->base.ranks, from), text);
}
