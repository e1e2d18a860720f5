/* executor/transport/mpi/channel.c - single messages over MPI, on a communicator that nothing else uses. */
#include "executor/transport/mpi/communicator.h"

#include <stdlib.h>

/* A communicator of all workers for messages, made with the first channel: then all are there, or learn who cannot. */
static enum ghp_status open_channel(struct ghp_transport *t, enum ghp_status status)
{
    static const char doing[] = "making a communicator";
    int *most = NULL, found = 0;

    if (t->channel_comm != MPI_COMM_NULL) return status;
    t->world->label = doing;
    GHP_TRY(ghp_mpi_status_barrier(t, t->world->ranks, t->world, status));
    ghp_mpi_guard_begin(doing, t->watchdog_s);
    status = ghp_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &t->channel_comm), doing);
    ghp_mpi_guard_end();
    GHP_TRY(status);
    GHP_TRY(ghp_mpi_check(MPI_Comm_set_errhandler(t->channel_comm, MPI_ERRORS_RETURN), doing));
    MPI_Comm_get_attr(t->channel_comm, MPI_TAG_UB, &most, &found);
    t->most_tag = found ? *most : 32767;
    return GHP_OK;
}

static struct ghp_channel *allocate(struct ghp_transport *t, int slots)
{
    struct ghp_channel *box = ghp_alloc(1, sizeof(*box));

    if (box == NULL) return NULL;
    box->transport = t;
    box->n = slots;
    box->requests = ghp_alloc((size_t)slots + 1, sizeof(*box->requests));
    if (box->requests == NULL) {
        free(box);
        return NULL;
    }
    for (int i = 0; i < slots; i++)
        box->requests[i] = MPI_REQUEST_NULL;
    return box;
}

enum ghp_status ghp_mpi_channel_open(struct ghp_transport *t, int slots,
                                     struct ghp_channel **channel)
{
    struct ghp_channel *box = allocate(t, slots);
    enum ghp_status status = open_channel(t, box != NULL ? GHP_OK : GHP_NO_MEMORY());

    if (status != GHP_OK) {
        ghp_mpi_channel_close(box);
        box = NULL;
    }
    *channel = box;
    return status;
}

enum ghp_status ghp_mpi_channel_post(struct ghp_channel *box, int slot,
                                     const struct ghp_p2p_message *m)
{
    struct ghp_transport *t = box->transport;

    GHP_ASSERT(slot >= 0 && slot < box->n && box->requests[slot] == MPI_REQUEST_NULL);
    if (m->bytes > GHP_P2P_MESSAGE_BYTES)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a message between stages has %lld bytes, more than %d; use more "
                        "micro-batches or workers",
                        (long long)m->bytes, (int)GHP_P2P_MESSAGE_BYTES);
    if (m->tag > t->most_tag)
        return GHP_FAIL(GHP_ERR_COMM,
                        "this MPI numbers messages up to %d, but %d is wanted; use one with larger "
                        "tags, such as Debian's Open MPI",
                        t->most_tag, m->tag);
    if (m->receives)
        return ghp_mpi_check(MPI_Irecv(m->data, (int)m->bytes, MPI_BYTE, m->peer, m->tag,
                                       t->channel_comm, &box->requests[slot]),
                             "receiving from another stage");
    return ghp_mpi_check(MPI_Isend(m->data, (int)m->bytes, MPI_BYTE, m->peer, m->tag,
                                   t->channel_comm, &box->requests[slot]),
                         "sending to another stage");
}

enum ghp_status ghp_mpi_channel_poll(struct ghp_channel *box, int slot, bool *done)
{
    int is_done = 0;
    enum ghp_status status =
        ghp_mpi_check(MPI_Test(&box->requests[slot], &is_done, MPI_STATUS_IGNORE), "waiting");

    *done = is_done != 0;
    return status;
}

void ghp_mpi_channel_close(struct ghp_channel *box)
{
    if (box == NULL) return;
    free(box->requests);
    free(box);
}
