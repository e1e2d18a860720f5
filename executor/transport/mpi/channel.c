/* executor/transport/mpi/channel.c - single messages over MPI, on a communicator that nothing else uses. */
#include "executor/transport/mpi/communicator.h"

#include "core/base/clock.h"

#include <stdlib.h>

/* A communicator of all workers for messages, made with the first channel: then all are there, or learn who cannot. */
static enum ghp_status open_comm(struct ghp_mpi *t, enum ghp_status status)
{
    static const char doing[] = "making a communicator";
    int *most = NULL, found = 0;

    if (t->channel_comm != MPI_COMM_NULL) return status;
    t->world->base.label = doing;
    GHP_TRY(ghp_mpi_status_barrier(t, t->world->base.ranks, t->world, status));
    ghp_mpi_guard_begin("MPI", doing, t->control.watchdog_s);
    status = ghp_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &t->channel_comm), doing);
    ghp_mpi_guard_end();
    GHP_TRY(status);
    GHP_TRY(ghp_mpi_check(MPI_Comm_set_errhandler(t->channel_comm, MPI_ERRORS_RETURN), doing));
    if (t->port != NULL)
        GHP_TRY(ghp_mpi_check(MPI_Comm_dup(t->channel_comm, &t->stamp_comm), doing));
    MPI_Comm_get_attr(t->channel_comm, MPI_TAG_UB, &most, &found);
    t->most_tag = found ? *most : 32767;
    return GHP_OK;
}

static struct ghp_mpi_channel *channel_of(struct ghp_channel *channel)
{
    return (struct ghp_mpi_channel *)channel; /* its first member */
}

static void channel_close(struct ghp_channel *channel)
{
    struct ghp_mpi_channel *c = channel_of(channel);

    if (c == NULL) return;
    free(c->requests);
    free(c->stamps);
    free(c->due_s);
    free(c->receives);
    free(c);
}

static struct ghp_mpi_channel *allocate(struct ghp_mpi *t, int slots)
{
    struct ghp_mpi_channel *c = ghp_alloc(1, sizeof *c);

    if (c == NULL) return NULL;
    c->base.ops = &ghp_mpi_p2p;
    c->transport = t;
    c->n = slots;
    c->requests = ghp_alloc((size_t)slots + 1, sizeof *c->requests);
    c->stamps = ghp_alloc((size_t)slots + 1, sizeof *c->stamps);
    c->due_s = ghp_alloc((size_t)slots + 1, sizeof *c->due_s);
    c->receives = ghp_alloc((size_t)slots + 1, sizeof *c->receives);
    if (c->requests == NULL || c->stamps == NULL || c->due_s == NULL || c->receives == NULL) {
        channel_close(&c->base);
        return NULL;
    }
    for (int i = 0; i < slots; i++)
        c->requests[i] = MPI_REQUEST_NULL;
    return c;
}

static enum ghp_status channel_open(struct ghp_p2p *p2p, int slots, struct ghp_channel **channel)
{
    struct ghp_mpi *t = (struct ghp_mpi *)(void *)((char *)p2p - offsetof(struct ghp_mpi, p2p));
    struct ghp_mpi_channel *c = allocate(t, slots);
    enum ghp_status status = open_comm(t, c != NULL ? GHP_OK : GHP_NO_MEMORY());

    *channel = NULL;
    if (status == GHP_OK)
        *channel = &c->base;
    else if (c != NULL)
        channel_close(&c->base);
    return status;
}

/* The stamp of a message that goes by the port. */
static enum ghp_status post_stamp(struct ghp_mpi_channel *c, int slot,
                                  const struct ghp_p2p_message *m)
{
    struct ghp_mpi *t = c->transport;
    struct ghp_mpi_stamp *stamp = &c->stamps[slot];

    if (t->port == NULL) return GHP_OK;
    c->due_s[slot] = 0;
    c->receives[slot] = m->receives;
    stamp->bytes = m->bytes;
    if (m->receives)
        return ghp_mpi_check(MPI_Irecv(&stamp->left_s, 1, MPI_DOUBLE, m->peer, m->tag,
                                       t->stamp_comm, &stamp->request),
                             "receiving from a worker");
    stamp->left_s = ghp_mpi_port_leave(t->port, m->bytes);
    return ghp_mpi_check(
        MPI_Isend(&stamp->left_s, 1, MPI_DOUBLE, m->peer, m->tag, t->stamp_comm, &stamp->request),
        "sending to a worker");
}

/* Whether a message that has come would have come by the ports. */
static enum ghp_status poll_stamp(struct ghp_mpi_channel *c, int slot, int *is_done)
{
    struct ghp_mpi_stamp *stamp = &c->stamps[slot];

    GHP_TRY(ghp_mpi_check(MPI_Test(&stamp->request, is_done, MPI_STATUS_IGNORE), "waiting"));
    if (!*is_done) return GHP_OK;
    if (!(c->due_s[slot] > 0))
        c->due_s[slot] = c->receives[slot]
                             ? ghp_mpi_port_arrive(c->transport->port, stamp->bytes, stamp->left_s)
                             : stamp->left_s;
    *is_done = ghp_now_s() >= c->due_s[slot];
    return GHP_OK;
}

static enum ghp_status channel_post(struct ghp_channel *channel, int slot,
                                    const struct ghp_p2p_message *m)
{
    struct ghp_mpi_channel *c = channel_of(channel);
    struct ghp_mpi *t = c->transport;

    GHP_ASSERT(slot >= 0 && slot < c->n && c->requests[slot] == MPI_REQUEST_NULL);
    if (m->bytes > GHP_P2P_MESSAGE_BYTES)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a message between two workers has %lld bytes, more than %d; use more "
                        "micro-batches or workers",
                        (long long)m->bytes, (int)GHP_P2P_MESSAGE_BYTES);
    if (m->tag > t->most_tag)
        return GHP_FAIL(GHP_ERR_COMM,
                        "this MPI numbers messages up to %d, but %d is wanted; use one with larger "
                        "tags, such as Debian's Open MPI",
                        t->most_tag, m->tag);
    GHP_TRY(post_stamp(c, slot, m));
    if (m->receives)
        return ghp_mpi_check(MPI_Irecv(m->data, (int)m->bytes, MPI_BYTE, m->peer, m->tag,
                                       t->channel_comm, &c->requests[slot]),
                             "receiving from a worker");
    return ghp_mpi_check(MPI_Isend(m->data, (int)m->bytes, MPI_BYTE, m->peer, m->tag,
                                   t->channel_comm, &c->requests[slot]),
                         "sending to a worker");
}

static enum ghp_status channel_poll(struct ghp_channel *channel, int slot, bool *done)
{
    struct ghp_mpi_channel *c = channel_of(channel);
    int is_done = 0;
    enum ghp_status status =
        ghp_mpi_check(MPI_Test(&c->requests[slot], &is_done, MPI_STATUS_IGNORE), "waiting");

    if (status == GHP_OK && is_done && c->transport->port != NULL)
        status = poll_stamp(c, slot, &is_done);
    *done = is_done != 0;
    return status;
}

const struct ghp_p2p_ops ghp_mpi_p2p = {
    .open = channel_open, .post = channel_post, .poll = channel_poll, .close = channel_close};
