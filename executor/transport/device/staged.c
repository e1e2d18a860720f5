/* executor/transport/device/staged.c - see transport/staged.h. */
#include "executor/transport/device/staged.h"

#include <stdlib.h>

enum {
    STAGE_BYTES = 16 << 20
}; /* of pinned memory, twice a communicator: what goes out, what comes in */

struct ghp_comm {
    struct ghp_transport *transport; /* borrowed */
    struct ghp_comm *next;           /* in the transport's list */
    struct ghp_comm *base;           /* the other transport's */
    struct ghp_ranks ranks;
    enum ghp_stream stream;
    enum ghp_device_stream device_stream;
    unsigned char *out, *in; /* pinned, STAGE_BYTES each; NULL until first used */
    unsigned char *scratch;  /* of the other transport's sums */
};

struct ghp_transport {
    const struct ghp_transport_ops *ops; /* the other transport's; borrowed, as all below */
    struct ghp_transport *base;
    struct ghp_device device;
    struct ghp_comm *comms; /* owned */
};

/* ---- opening ---- */

enum ghp_status ghp_staged_open(const struct ghp_transport_ops *base_ops,
                                struct ghp_transport *base, struct ghp_device device,
                                struct ghp_transport **transport)
{
    struct ghp_transport *t = ghp_alloc(1, sizeof(*t));

    *transport = t;
    if (t == NULL) return GHP_NO_MEMORY();
    t->ops = base_ops;
    t->base = base;
    t->device = device;
    return GHP_OK;
}

static void staged_close(struct ghp_transport *t)
{
    if (t == NULL) return;
    while (t->comms != NULL) {
        struct ghp_comm *c = t->comms;

        t->comms = c->next;
        t->device.ops->release_host(t->device.backend, c->out);
        t->device.ops->release_host(t->device.backend, c->in);
        free(c->scratch);
        free(c);
    }
    free(t);
}

static int staged_rank(const struct ghp_transport *t)
{
    return t->ops->rank(t->base);
}

static int staged_size(const struct ghp_transport *t)
{
    return t->ops->size(t->base);
}

static void staged_sum_in_rank_order(struct ghp_transport *t, bool on)
{
    t->ops->sum_in_rank_order(t->base, on);
}

static enum ghp_status open_stages(struct ghp_comm *c)
{
    struct ghp_device d = c->transport->device;
    void *out = NULL, *in = NULL;
    enum ghp_status status = d.ops->allocate_host(d.backend, STAGE_BYTES, &out);

    c->out = out;
    if (status == GHP_OK) status = d.ops->allocate_host(d.backend, STAGE_BYTES, &in);
    c->in = in;
    c->scratch = ghp_alloc(GHP_COMM_SEGMENT_BYTES, 1);
    if (status == GHP_OK && c->scratch == NULL) status = GHP_NO_MEMORY();
    return status;
}

static enum ghp_status staged_group(struct ghp_transport *t, struct ghp_ranks ranks,
                                    enum ghp_stream stream, struct ghp_comm **comm)
{
    struct ghp_comm *c;

    for (c = t->comms; c != NULL; c = c->next)
        if (ghp_ranks_same(c->ranks, ranks) && c->stream == stream) break;
    *comm = c;
    if (c != NULL) return GHP_OK;
    c = ghp_alloc(1, sizeof(*c));
    if (c == NULL) return GHP_NO_MEMORY();
    *c = (struct ghp_comm){.transport = t,
                           .next = t->comms,
                           .ranks = ranks,
                           .stream = stream,
                           .device_stream = stream == GHP_STREAM_COMM ? GHP_DEVICE_STREAM_COMM
                                                                      : GHP_DEVICE_STREAM_COMPUTE};
    t->comms = c; /* from here on it is closed with the transport */
    GHP_TRY(t->ops->group(t->base, ranks, stream, &c->base));
    GHP_TRY(open_stages(c));
    *comm = c;
    return GHP_OK;
}

static void staged_label(struct ghp_comm *comm, const char *label)
{
    comm->transport->ops->label(comm->base, label);
}

/* ---- pieces ---- */

/* n bytes of each of `count` runs that lie `stride` bytes apart on the device, from byte `done` on; one behind the
 * other on the host. */
struct pieces {
    int count;
    int64_t stride, done, n;
};

static enum ghp_status move(const struct ghp_comm *c, struct pieces p,
                            enum ghp_copy_direction direction, void *device, unsigned char *host)
{
    for (int i = 0; i < p.count; i++) {
        unsigned char *there = (unsigned char *)device + i * p.stride + p.done,
                      *here = host + i * p.n;
        struct ghp_copy copy = {direction == GHP_COPY_TO_DEVICE ? there : here,
                                direction == GHP_COPY_TO_DEVICE ? here : there, p.n, direction};

        GHP_TRY(ghp_device_copy(c->transport->device, c->device_stream, copy));
    }
    return ghp_device_finish(c->transport->device, c->device_stream);
}

static void *writable(const void *tensor)
{
    return (void *)(uintptr_t)tensor; /* of a tensor that is only read: see move's way */
}

/* Bytes of each run that go at once: a multiple of 64, so of every number. */
static int64_t most_bytes(const struct ghp_comm *c)
{
    int64_t most = STAGE_BYTES / c->ranks.count / GHP_ALIGN_BYTES * GHP_ALIGN_BYTES;

    return most > GHP_ALIGN_BYTES ? most : GHP_ALIGN_BYTES;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- collectives ---- */

static enum ghp_status staged_all_reduce(struct ghp_comm *c, const struct ghp_reduction *sum)
{
    int64_t bytes = sum->elements * sum->element_bytes;

    for (int64_t done = 0; done < bytes; done += STAGE_BYTES) {
        struct pieces p = {1, 0, done, smaller(STAGE_BYTES, bytes - done)};
        struct ghp_reduction here = {.in = c->out,
                                     .out = c->out,
                                     .elements = p.n / sum->element_bytes,
                                     .element_bytes = sum->element_bytes,
                                     .scratch = c->scratch,
                                     .scratch_bytes = GHP_COMM_SEGMENT_BYTES};

        GHP_TRY(move(c, p, GHP_COPY_TO_HOST, sum->out, c->out));
        GHP_TRY(c->transport->ops->all_reduce(c->base, &here));
        GHP_TRY(move(c, p, GHP_COPY_TO_DEVICE, sum->out, c->out));
    }
    return GHP_OK;
}

static enum ghp_status staged_reduce_scatter(struct ghp_comm *c, const struct ghp_reduction *sum)
{
    int64_t each = sum->elements * sum->element_bytes, most = most_bytes(c);

    for (int64_t done = 0; done < each; done += most) {
        struct pieces from = {c->ranks.count, each, done, smaller(most, each - done)};
        struct pieces to = {1, 0, done, from.n};
        struct ghp_reduction here = {.in = c->out,
                                     .out = c->in,
                                     .elements = from.n / sum->element_bytes,
                                     .element_bytes = sum->element_bytes,
                                     .scratch = c->scratch,
                                     .scratch_bytes = GHP_COMM_SEGMENT_BYTES};

        GHP_TRY(move(c, from, GHP_COPY_TO_HOST, writable(sum->in), c->out));
        GHP_TRY(c->transport->ops->reduce_scatter(c->base, &here));
        GHP_TRY(move(c, to, GHP_COPY_TO_DEVICE, sum->out, c->in));
    }
    return GHP_OK;
}

static enum ghp_status staged_all_gather(struct ghp_comm *c, const void *mine, void *all,
                                         int64_t bytes_each)
{
    int64_t most = most_bytes(c);

    for (int64_t done = 0; done < bytes_each; done += most) {
        struct pieces from = {1, 0, done, smaller(most, bytes_each - done)};
        struct pieces to = {c->ranks.count, bytes_each, done, from.n};

        GHP_TRY(move(c, from, GHP_COPY_TO_HOST, writable(mine), c->out));
        GHP_TRY(c->transport->ops->all_gather(c->base, c->out, c->in, from.n));
        GHP_TRY(move(c, to, GHP_COPY_TO_DEVICE, all, c->in));
    }
    return GHP_OK;
}

static enum ghp_status staged_all_to_all(struct ghp_comm *c, const void *in, void *out,
                                         int64_t bytes_each)
{
    int64_t most = most_bytes(c);

    for (int64_t done = 0; done < bytes_each; done += most) {
        struct pieces p = {c->ranks.count, bytes_each, done, smaller(most, bytes_each - done)};

        GHP_TRY(move(c, p, GHP_COPY_TO_HOST, writable(in), c->out));
        GHP_TRY(c->transport->ops->all_to_all(c->base, c->out, c->in, p.n));
        GHP_TRY(move(c, p, GHP_COPY_TO_DEVICE, out, c->in));
    }
    return GHP_OK;
}

static enum ghp_status staged_barrier(struct ghp_comm *c)
{
    return c->transport->ops->barrier(c->base);
}

static enum ghp_status staged_agree(struct ghp_comm *c, enum ghp_status status)
{
    return c->transport->ops->agree(c->base, status);
}

static void staged_abort(struct ghp_transport *t, int exit_code)
{
    t->ops->abort(t->base, exit_code);
}

const struct ghp_transport_ops ghp_transport_staged = {
    .name = "mpi staged",
    .close = staged_close,
    .rank = staged_rank,
    .size = staged_size,
    .sum_in_rank_order = staged_sum_in_rank_order,
    .group = staged_group,
    .label = staged_label,
    .all_reduce = staged_all_reduce,
    .reduce_scatter = staged_reduce_scatter,
    .all_gather = staged_all_gather,
    .all_to_all = staged_all_to_all,
    .barrier = staged_barrier,
    .agree = staged_agree,
    .abort = staged_abort,
};
