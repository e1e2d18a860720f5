/* tests/executor/locked_collectives.c - collectives that are enqueued on a locked device; see locked.h. */
#include "tests/executor/locked_private.h"

#include <stdlib.h>

struct queued_comm {
    struct ghp_comm base;
    struct queued *queued;
    struct queued_comm *next;
    struct ghp_comm *staged;
};

struct queued {
    struct ghp_collectives base;
    struct ghp_collectives *staged;
    struct ghp_device device;
    struct queued_comm *comms;
};

static const struct ghp_collectives_ops queued_ops;

enum ghp_status locked_collectives_open(struct ghp_collectives *staged, struct ghp_device device,
                                        struct ghp_collectives **queued)
{
    struct queued *q = ghp_alloc(1, sizeof *q);

    *queued = NULL;
    if (q == NULL) return GHP_NO_MEMORY();
    *q = (struct queued){.base = {.ops = &queued_ops}, .staged = staged, .device = device};
    *queued = &q->base;
    return GHP_OK;
}

static void queued_close(struct ghp_collectives *queued)
{
    struct queued *q = (struct queued *)queued;

    while (q->comms != NULL) {
        struct queued_comm *c = q->comms;

        q->comms = c->next;
        free(c);
    }
    free(q);
}

static enum ghp_status queued_group(struct ghp_collectives *queued, struct ghp_ranks ranks,
                                    enum ghp_stream stream, struct ghp_comm **comm)
{
    struct queued *q = (struct queued *)queued;
    struct queued_comm *c = ghp_alloc(1, sizeof *c);

    *comm = NULL;
    if (c == NULL) return GHP_NO_MEMORY();
    *c = (struct queued_comm){.base = {.ops = &queued_ops, .ranks = ranks, .stream = stream},
                              .queued = q,
                              .next = q->comms};
    q->comms = c;
    *comm = &c->base;
    return ghp_collectives_group(q->staged, ranks, stream, &c->staged);
}

static enum ghp_status run(struct ghp_comm *comm, struct locked_collective collective)
{
    struct queued_comm *c = (struct queued_comm *)comm;

    c->staged->label = comm->label;
    collective.comm = c->staged;
    return locked_enqueue(c->queued->device.backend, collective);
}

static enum ghp_status queued_all_reduce(struct ghp_comm *c, const struct ghp_reduction *sum)
{
    return run(c, (struct locked_collective){.op = GHP_COMM_ALL_REDUCE, .sum = *sum});
}

static enum ghp_status queued_reduce_scatter(struct ghp_comm *c, const struct ghp_reduction *sum)
{
    return run(c, (struct locked_collective){.op = GHP_COMM_REDUCE_SCATTER, .sum = *sum});
}

static enum ghp_status queued_all_gather(struct ghp_comm *c, const void *mine, void *all,
                                         int64_t bytes)
{
    return run(c, (struct locked_collective){
                      .op = GHP_COMM_ALL_GATHER, .in = mine, .out = all, .bytes = bytes});
}

static enum ghp_status queued_all_to_all(struct ghp_comm *c, const void *in, void *out,
                                         int64_t bytes)
{
    return run(c, (struct locked_collective){
                      .op = GHP_COMM_ALL_TO_ALL, .in = in, .out = out, .bytes = bytes});
}

static enum ghp_status queued_shift(struct ghp_comm *c, const void *in, void *out, int64_t bytes)
{
    return run(
        c, (struct locked_collective){.op = GHP_COMM_SHIFT, .in = in, .out = out, .bytes = bytes});
}

static enum ghp_status queued_check(struct ghp_collectives *queued, double waited_s,
                                    const char *label)
{
    (void)queued;
    if (waited_s < 30) return GHP_OK;
    return GHP_FAIL(GHP_ERR_COMM, "waited %.0f s in '%s'", waited_s, label);
}

static const struct ghp_collectives_ops queued_ops = {.name = "locked",
                                                      .enqueues = true,
                                                      .close = queued_close,
                                                      .group = queued_group,
                                                      .all_reduce = queued_all_reduce,
                                                      .reduce_scatter = queued_reduce_scatter,
                                                      .all_gather = queued_all_gather,
                                                      .all_to_all = queued_all_to_all,
                                                      .shift = queued_shift,
                                                      .check = queued_check};
