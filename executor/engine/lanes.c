/* executor/engine/lanes.c - see lanes.h. */
#include "executor/engine/lanes.h"

#include "executor/engine/lane_order.h"

#include <stdlib.h>
#include <string.h>

struct way { /* of a message */
    struct ghp_comm *comm;
    struct ghp_device_event *ready, *done;
};

struct ghp_lanes {
    struct ghp_lanes_job job;
    struct ghp_device device;
    struct way *ways;               /* [job.n] */
    struct ghp_p2p_message *slices; /* of one message, or of all peers */
    void *nothing;                  /* on the device: what is exchanged to connect */
};

/* ---- what all workers send and receive ---- */

struct line { /* of a worker's list of messages; receives -1: there is none */
    int32_t from, to, tag, micro, receives;
};

struct lists {
    int workers, most; /* lines of a worker */
    struct line *lines;
    struct ghp_lane_message *sent, *received; /* of a pair of stages; [most] */
};

static void lists_release(struct lists *all)
{
    free(all->lines);
    free(all->sent);
    free(all->received);
}

static enum ghp_status open_lists(const struct ghp_lanes *l, struct ghp_comm *world,
                                  struct lists *all)
{
    int workers = world->ranks.count, mine = l->job.n;
    int *counts = ghp_alloc((size_t)workers, sizeof *counts);
    struct ghp_control *control = l->job.exec->transport->control;
    enum ghp_status status = counts != NULL ? GHP_OK : GHP_NO_MEMORY();

    *all = (struct lists){.workers = workers};
    GHP_TRY_GOTO(status, ghp_control_agree(control, world, status), done);
    GHP_TRY_GOTO(status, world->ops->all_gather(world, &mine, counts, (int64_t)sizeof mine), done);
    for (int r = 0; r < workers; r++)
        if (counts[r] > all->most) all->most = counts[r];
    all->lines = ghp_alloc((size_t)workers * (size_t)all->most, sizeof *all->lines);
    all->sent = ghp_alloc((size_t)all->most, sizeof *all->sent);
    all->received = ghp_alloc((size_t)all->most, sizeof *all->received);
    if (all->lines == NULL || all->sent == NULL || all->received == NULL) status = GHP_NO_MEMORY();
    status = ghp_control_agree(control, world, status);
done:
    free(counts);
    return status;
}

static enum ghp_status share_lists(const struct ghp_lanes *l, struct ghp_comm *world,
                                   struct lists *all)
{
    struct line *mine;

    GHP_TRY(open_lists(l, world, all));
    mine = all->lines + l->job.exec->transport->control->rank * all->most;
    for (int i = 0; i < all->most; i++) {
        const struct ghp_message *m = &l->job.messages[i];

        mine[i] = i < l->job.n
                      ? (struct line){m->from_stage, m->to_stage, m->tag, m->micro, m->receives}
                      : (struct line){.receives = -1};
    }
    return world->ops->all_gather(world, mine, all->lines,
                                  (int64_t)((size_t)all->most * sizeof *mine));
}

/* What goes from one stage to another, in the order of the first worker that sends it, or receives it. Workers of a
 * stage have the same order. */
static int list_of(const struct lists *all, int from, int to, bool receives,
                   struct ghp_lane_message *list)
{
    int n = 0;

    for (int r = 0; r < all->workers && n == 0; r++)
        for (int i = 0; i < all->most; i++) {
            const struct line *line = &all->lines[r * all->most + i];

            if (line->from == from && line->to == to && line->receives == receives)
                list[n++] = (struct ghp_lane_message){line->tag, line->micro, -1};
        }
    return n;
}

/* ---- opening ---- */

/* Exchanges a few bytes with everybody on the lane, so that later calls find all connections: making one makes the
 * host wait for its other side. All workers open one lane after the other, in one order. */
static enum ghp_status connect(struct ghp_lanes *l, struct ghp_comm *comm)
{
    int n = 0;

    for (int m = 0; m < l->job.n; m++) {
        const struct ghp_message *message = &l->job.messages[m];

        for (int p = 0; l->ways[m].comm == comm && p < message->n; p++) {
            int peer = message->slices[p].peer, i = 0;

            while (i < n && l->slices[i].peer != peer)
                i++;
            l->slices[i] =
                (struct ghp_p2p_message){l->nothing, GHP_ALIGN_BYTES, peer, 0, message->receives};
            if (i == n) n++;
        }
    }
    comm->label = "connecting stages";
    return comm->ops->exchange(comm, l->slices, n);
}

/* Whether a message goes from one stage to another by a lane of these. */
static bool goes_by(const struct ghp_message *m, int from, int to,
                    const struct ghp_lane_message *list, int n, int lane)
{
    if (m->from_stage != from || m->to_stage != to) return false;
    for (int i = 0; i < n; i++)
        if (list[i].tag == m->tag) return list[i].lane == lane;
    return false;
}

/* The lanes from one stage to another. */
static enum ghp_status open_pair(struct ghp_lanes *l, const struct lists *all, int from, int to)
{
    struct ghp_collectives *collectives = l->job.exec->collectives;
    int n = list_of(all, from, to, true, all->received), lanes;

    GHP_ASSERT_EQ(list_of(all, from, to, false, all->sent), n);
    lanes = ghp_lane_order(all->sent, all->received, n);
    for (int lane = 0; lane < lanes; lane++) {
        struct ghp_ranks ranks = {0};
        struct ghp_comm *comm = NULL;

        for (int m = 0; m < l->job.n; m++)
            if (goes_by(&l->job.messages[m], from, to, all->received, n, lane))
                ranks = l->job.messages[m].ranks;
        GHP_TRY(collectives->ops->lane(collectives, ranks, 2 * lane + (from > to), &comm));
        for (int m = 0; m < l->job.n; m++)
            if (goes_by(&l->job.messages[m], from, to, all->received, n, lane))
                l->ways[m].comm = comm;
        if (comm != NULL) GHP_TRY(connect(l, comm));
    }
    return GHP_OK;
}

static enum ghp_status open_all(struct ghp_lanes *l, const struct lists *all)
{
    int stages = 0;

    for (int i = 0; i < all->workers * all->most; i++) {
        if (all->lines[i].from >= stages) stages = all->lines[i].from + 1;
        if (all->lines[i].to >= stages) stages = all->lines[i].to + 1;
    }
    for (int from = 0; from < stages; from++)
        for (int to = 0; to < stages; to++)
            if (from != to) GHP_TRY(open_pair(l, all, from, to));
    return GHP_OK;
}

static enum ghp_status open_memory(struct ghp_lanes *l)
{
    struct ghp_device d = l->device;
    int most = l->job.exec->transport->control->size;

    for (int m = 0; m < l->job.n; m++)
        if (l->job.messages[m].n > most) most = l->job.messages[m].n;
    l->ways = ghp_alloc((size_t)l->job.n, sizeof *l->ways);
    l->slices = ghp_alloc((size_t)most, sizeof *l->slices);
    if (l->ways == NULL || l->slices == NULL) return GHP_NO_MEMORY();
    for (int m = 0; m < l->job.n; m++) {
        GHP_TRY(d.ops->event_open(d.backend, false, &l->ways[m].ready));
        GHP_TRY(d.ops->event_open(d.backend, false, &l->ways[m].done));
    }
    return ghp_device_allocate(d, GHP_ALIGN_BYTES, &l->nothing);
}

enum ghp_status ghp_lanes_open(const struct ghp_lanes_job *job, struct ghp_lanes **lanes)
{
    struct ghp_transport *transport = job->exec->transport;
    struct ghp_ranks workers = {.count = transport->control->size, .stride = 1};
    struct ghp_lanes *l = ghp_alloc(1, sizeof *l);
    enum ghp_status status = l != NULL ? GHP_OK : GHP_NO_MEMORY();
    struct ghp_comm *world = NULL;
    struct lists all = {0};

    *lanes = l;
    GHP_TRY(ghp_collectives_group(transport->host, workers, GHP_STREAM_COMPUTE, &world));
    world->label = "choosing lanes";
    if (l != NULL) {
        l->job = *job;
        l->device = ghp_exec_context_device(job->exec);
        status = open_memory(l);
    }
    GHP_TRY(ghp_control_agree(transport->control, world, status));
    status = share_lists(l, world, &all);
    if (status == GHP_OK) status = open_all(l, &all);
    lists_release(&all);
    return status;
}

void ghp_lanes_close(struct ghp_lanes *l)
{
    struct ghp_device d;

    if (l == NULL) return;
    d = l->device;
    for (int m = 0; l->ways != NULL && m < l->job.n; m++) {
        d.ops->event_close(d.backend, l->ways[m].ready);
        d.ops->event_close(d.backend, l->ways[m].done);
    }
    ghp_device_release(d, l->nothing);
    free(l->slices);
    free(l->ways);
    free(l);
}

/* ---- messages ---- */

enum ghp_device_stream ghp_lanes_stream(const struct ghp_lanes *l, int message)
{
    return l->ways[message].comm->device_stream;
}

enum ghp_status ghp_lanes_start(struct ghp_lanes *l, int message)
{
    const struct ghp_message *m = &l->job.messages[message];
    struct way *way = &l->ways[message];
    struct ghp_device d = l->device;

    GHP_TRY(d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, way->ready));
    GHP_TRY(d.ops->wait_event(d.backend, way->comm->device_stream, way->ready));
    if (!m->receives) GHP_TRY(ghp_message_pack_on(m, d, way->comm->device_stream));
    for (int i = 0; i < m->n; i++)
        l->slices[i] = ghp_message_of_slice(m, i);
    way->comm->label = l->job.name(l->job.context, message);
    return way->comm->ops->exchange(way->comm, l->slices, m->n);
}

enum ghp_status ghp_lanes_finish(struct ghp_lanes *l, int message)
{
    struct way *way = &l->ways[message];

    return l->device.ops->record_event(l->device.backend, way->comm->device_stream, way->done);
}

enum ghp_status ghp_lanes_wait(struct ghp_lanes *l, int message)
{
    const struct ghp_message *m = &l->job.messages[message];
    struct ghp_device d = l->device;

    GHP_TRY(d.ops->wait_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, l->ways[message].done));
    return m->receives ? ghp_message_join_on(m, l->job.exec) : GHP_OK;
}
