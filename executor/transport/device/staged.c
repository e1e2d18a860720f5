/* executor/transport/device/staged.c - see transport/staged.h. */
#include "executor/transport/device/staged.h"

#include <stdlib.h>

enum {
    STAGE_BYTES = 16 << 20
}; /* of pinned memory, twice a communicator: what goes out, what comes in */

struct staged_comm {
    struct ghp_comm base;
    struct staged *staged;    /* borrowed */
    struct staged_comm *next; /* in its list */
    struct ghp_comm *host;    /* the host's communicator */
    enum ghp_device_stream device_stream;
    unsigned char *out, *in; /* pinned, STAGE_BYTES each; NULL until first used */
    unsigned char *scratch;  /* of the host's sums */
};

struct staged {
    struct ghp_collectives base;
    struct ghp_collectives *host; /* borrowed, as the device's backend */
    struct ghp_device device;
    struct staged_comm *comms; /* owned */
};

/* ---- opening ---- */

enum ghp_status ghp_staged_open(struct ghp_collectives *host, struct ghp_device device,
                                struct ghp_collectives **staged)
{
    struct staged *t = ghp_alloc(1, sizeof *t);

    *staged = NULL;
    if (t == NULL) return GHP_NO_MEMORY();
    t->base.ops = &ghp_staged_collectives;
    t->host = host;
    t->device = device;
    *staged = &t->base;
    return GHP_OK;
}

static void staged_close(struct ghp_collectives *staged)
{
    struct staged *t = (struct staged *)staged;

    while (t->comms != NULL) {
        struct staged_comm *c = t->comms;

        t->comms = c->next;
        t->device.ops->release_host(t->device.backend, c->out);
        t->device.ops->release_host(t->device.backend, c->in);
        free(c->scratch);
        free(c);
    }
    free(t);
}

static enum ghp_status open_stages(struct staged_comm *c)
{
    struct ghp_device d = c->staged->device;
    void *out = NULL, *in = NULL;
    enum ghp_status status = d.ops->allocate_host(d.backend, STAGE_BYTES, &out);

    c->out = out;
    if (status == GHP_OK) status = d.ops->allocate_host(d.backend, STAGE_BYTES, &in);
    c->in = in;
    c->scratch = ghp_alloc(GHP_COMM_SEGMENT_BYTES, 1);
    if (status == GHP_OK && c->scratch == NULL) status = GHP_NO_MEMORY();
    return status;
}

static enum ghp_status staged_group(struct ghp_collectives *staged, struct ghp_ranks ranks,
                                    enum ghp_stream stream, struct ghp_comm **comm)
{
    struct staged *t = (struct staged *)staged;
    struct staged_comm *c;

    *comm = NULL;
    for (c = t->comms; c != NULL; c = c->next)
        if (ghp_ranks_same(c->base.ranks, ranks) && c->base.stream == stream) {
            *comm = &c->base;
            return GHP_OK;
        }
    c = ghp_alloc(1, sizeof *c);
    if (c == NULL) return GHP_NO_MEMORY();
    *c = (struct staged_comm){
        .base = {.ops = &ghp_staged_collectives, .ranks = ranks, .stream = stream},
        .staged = t,
        .next = t->comms,
        .device_stream =
            stream == GHP_STREAM_COMM ? GHP_DEVICE_STREAM_COMM : GHP_DEVICE_STREAM_COMPUTE};
    t->comms = c; /* from here on it is closed with the others */
    GHP_TRY(ghp_collectives_group(t->host, ranks, stream, &c->host));
    GHP_TRY(open_stages(c));
    c->base.label = c->host->label;
    *comm = &c->base;
    return GHP_OK;
}

/* The host's communicator, with the same label. */
static struct ghp_comm *host_of(struct staged_comm *c)
{
    c->host->label = c->base.label;
    return c->host;
}

/* ---- strided copies ---- */

/* n bytes of each of `count` runs that lie `stride` bytes apart on the device, from byte `done` on; one after the other
 * on the host. */
struct strided {
    int count;
    int64_t stride, done, n;
};

static enum ghp_status move(const struct staged_comm *c, struct strided p,
                            enum ghp_copy_direction direction, void *device, unsigned char *host)
{
    for (int i = 0; i < p.count; i++) {
        unsigned char *there = (unsigned char *)device + i * p.stride + p.done,
                      *here = host + i * p.n;
        struct ghp_copy copy = {direction == GHP_COPY_TO_DEVICE ? there : here,
                                direction == GHP_COPY_TO_DEVICE ? here : there, p.n, direction};

        GHP_TRY(ghp_device_copy(c->staged->device, c->device_stream, copy));
    }
    return ghp_device_finish(c->staged->device, c->device_stream);
}

static void *writable(const void *tensor)
{
    return (void *)(uintptr_t)tensor; /* of a tensor that is only read: see move's way */
}

/* Bytes of each run that go at once: a multiple of 64, so of every number. */
static int64_t most_bytes(const struct staged_comm *c)
{
    int64_t most = STAGE_BYTES / c->base.ranks.count / GHP_ALIGN_BYTES * GHP_ALIGN_BYTES;

    return most > GHP_ALIGN_BYTES ? most : GHP_ALIGN_BYTES;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- collectives ---- */

static enum ghp_status staged_all_reduce(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    struct staged_comm *c = (struct staged_comm *)comm;
    int64_t bytes = sum->elements * sum->element_bytes;

    for (int64_t done = 0; done < bytes; done += STAGE_BYTES) {
        struct strided p = {1, 0, done, smaller(STAGE_BYTES, bytes - done)};
        struct ghp_reduction here = {.in = c->out,
                                     .out = c->out,
                                     .elements = p.n / sum->element_bytes,
                                     .element_bytes = sum->element_bytes,
                                     .scratch = c->scratch,
                                     .scratch_bytes = GHP_COMM_SEGMENT_BYTES};

        GHP_TRY(move(c, p, GHP_COPY_TO_HOST, sum->out, c->out));
        GHP_TRY(c->host->ops->all_reduce(host_of(c), &here));
        GHP_TRY(move(c, p, GHP_COPY_TO_DEVICE, sum->out, c->out));
    }
    return GHP_OK;
}

static enum ghp_status staged_reduce_scatter(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    struct staged_comm *c = (struct staged_comm *)comm;
    int64_t each = sum->elements * sum->element_bytes, most = most_bytes(c);

    for (int64_t done = 0; done < each; done += most) {
        struct strided from = {c->base.ranks.count, each, done, smaller(most, each - done)};
        struct strided to = {1, 0, done, from.n};
        struct ghp_reduction here = {.in = c->out,
                                     .out = c->in,
                                     .elements = from.n / sum->element_bytes,
                                     .element_bytes = sum->element_bytes,
                                     .scratch = c->scratch,
                                     .scratch_bytes = GHP_COMM_SEGMENT_BYTES};

        GHP_TRY(move(c, from, GHP_COPY_TO_HOST, writable(sum->in), c->out));
        GHP_TRY(c->host->ops->reduce_scatter(host_of(c), &here));
        GHP_TRY(move(c, to, GHP_COPY_TO_DEVICE, sum->out, c->in));
    }
    return GHP_OK;
}

static enum ghp_status staged_all_gather(struct ghp_comm *comm, const void *mine, void *all,
                                         int64_t bytes_each)
{
    struct staged_comm *c = (struct staged_comm *)comm;
    int64_t most = most_bytes(c);

    for (int64_t done = 0; done < bytes_each; done += most) {
        struct strided from = {1, 0, done, smaller(most, bytes_each - done)};
        struct strided to = {c->base.ranks.count, bytes_each, done, from.n};

        GHP_TRY(move(c, from, GHP_COPY_TO_HOST, writable(mine), c->out));
        GHP_TRY(c->host->ops->all_gather(host_of(c), c->out, c->in, from.n));
        GHP_TRY(move(c, to, GHP_COPY_TO_DEVICE, all, c->in));
    }
    return GHP_OK;
}

static enum ghp_status staged_all_to_all(struct ghp_comm *comm, const void *in, void *out,
                                         int64_t bytes_each)
{
    struct staged_comm *c = (struct staged_comm *)comm;
    int64_t most = most_bytes(c);

    for (int64_t done = 0; done < bytes_each; done += most) {
        struct strided p = {c->base.ranks.count, bytes_each, done,
                            smaller(most, bytes_each - done)};

        GHP_TRY(move(c, p, GHP_COPY_TO_HOST, writable(in), c->out));
        GHP_TRY(c->host->ops->all_to_all(host_of(c), c->out, c->in, p.n));
        GHP_TRY(move(c, p, GHP_COPY_TO_DEVICE, out, c->in));
    }
    return GHP_OK;
}

static enum ghp_status staged_shift(struct ghp_comm *comm, const void *in, void *out, int64_t bytes)
{
    struct staged_comm *c = (struct staged_comm *)comm;
    int64_t most = most_bytes(c);

    for (int64_t done = 0; done < bytes; done += most) {
        struct strided p = {1, 0, done, smaller(most, bytes - done)};

        GHP_TRY(move(c, p, GHP_COPY_TO_HOST, writable(in), c->out));
        GHP_TRY(c->host->ops->shift(host_of(c), c->out, c->in, p.n));
        GHP_TRY(move(c, p, GHP_COPY_TO_DEVICE, out, c->in));
    }
    return GHP_OK;
}

static enum ghp_status staged_check(struct ghp_collectives *staged, double waited_s,
                                    const char *label)
{
    (void)staged;
    (void)waited_s;
    (void)label;
    return GHP_OK;
}

const struct ghp_collectives_ops ghp_staged_collectives = {.name = "mpi staged",
                                                           .close = staged_close,
                                                           .group = staged_group,
                                                           .all_reduce = staged_all_reduce,
                                                           .reduce_scatter = staged_reduce_scatter,
                                                           .all_gather = staged_all_gather,
                                                           .all_to_all = staged_all_to_all,
                                                           .shift = staged_shift,
                                                           .check = staged_check};
