/* executor/transport/collectives.h - sums, gathers and exchanges of tensors over sub-groups of workers.
 *
 * One kind carries host memory (transport/mpi), others tensors on a device: directly (transport/nccl), or through host
 * memory (transport/device/staged.h). Which one carries a worker's tensors is ghp_exec_context.collectives.
 *
 * Reductions add in a fixed order, whatever arrives first, so equal inputs give equal bits on every rank and every run:
 * in host memory in rank order, or (long ones) first the ranks of each node, then the nodes, which keeps bytes off
 * their links; NCCL in an order of its own.
 *
 * Communicators are made once per distinct (rank set, stream) and reused. Waiting sleeps briefly instead of spinning,
 * so more workers than cores do not starve each other; a wait that outlasts the watchdog's limit fails with the label
 * of the communicator and the ranks that have not arrived.
 *
 * Collective over the communicator: every member calls with equal sizes, in the same order. The two streams use
 * different communicators, so one thread per stream may be inside at once. What `enqueues` returns at once: its
 * collectives run on the device's stream of the communicator's stream, and fail later, in `check`.
 *
 * To add a kind: a struct of its own that begins with a ghp_collectives, one that begins with a ghp_comm, a const
 * table of all functions, and a line in transport/device/device_transport.c.
 *
 * Tested  tests/executor/transport/test_transport.c, transport/nccl/test_nccl.c, engine/test_device.c */
#ifndef GHP_EXECUTOR_TRANSPORT_COLLECTIVES_H
#define GHP_EXECUTOR_TRANSPORT_COLLECTIVES_H

#include "core/program/program.h"
#include "executor/backend/device.h"

struct ghp_p2p_message; /* transport/p2p.h */

struct ghp_collectives {
    const struct ghp_collectives_ops *ops;
    /* In host memory: sums keep to rank order over several nodes too, so that they don't depend on where ranks run. At
     * first false. Set by all workers alike. */
    bool in_rank_order;
    /* The worker ends by a failure: others may not come, so closing waits for none of them. At first false. */
    bool failed;
};

struct ghp_comm { /* a communicator; released with what made it */
    const struct ghp_collectives_ops *ops;
    struct ghp_ranks ranks;
    enum ghp_stream stream;
    enum ghp_device_stream device_stream; /* on which it enqueues, if it does */
    const char *label;                    /* what the watchdog says is awaited; borrowed */
};

struct ghp_reduction { /* sums; data and scratch where the collectives' tensors lie */
    const void *in;    /* reduce_scatter: count * each elements; all_reduce: in == out */
    void *out;
    int64_t elements;      /* all_reduce: of the buffer; reduce_scatter: of each rank's result */
    int element_bytes;     /* 2 bfloat16, 4 float, 8 double */
    void *scratch;         /* receive segment */
    int64_t scratch_bytes; /* >= 3 * element_bytes * ranks; larger messages go in segments */
};

struct ghp_comm_memory {
    void *base; /* NULL: the rank has none */
    int64_t bytes;
    uint64_t layout; /* the same on ranks whose tensors lie alike in it */
};

struct ghp_collectives_ops {
    const char *name;
    bool enqueues; /* on a device */
    /* Releases it and its communicators, before the device's backend; those in host memory end with the transport. */
    void (*close)(struct ghp_collectives *collectives);
    /* The communicator of `ranks` for `stream`. Collective over all workers: all call with their own ranks of one
     * kind. If one of `ranks` lacks memory for it, all of them fail. */
    enum ghp_status (*group)(struct ghp_collectives *collectives, struct ghp_ranks ranks,
                             enum ghp_stream stream, struct ghp_comm **comm);
    enum ghp_status (*all_reduce)(struct ghp_comm *comm, const struct ghp_reduction *sum);
    enum ghp_status (*reduce_scatter)(struct ghp_comm *comm, const struct ghp_reduction *sum);
    /* all[i] = rank i's bytes; `mine` may lie in its place in `all`. */
    enum ghp_status (*all_gather)(struct ghp_comm *comm, const void *mine, void *all,
                                  int64_t bytes_each);
    /* out[i] = what rank i had in in[own index]. */
    enum ghp_status (*all_to_all)(struct ghp_comm *comm, const void *in, void *out,
                                  int64_t bytes_each);
    /* out = what the rank before this one had in `in`; the first one's is the last one. */
    enum ghp_status (*shift)(struct ghp_comm *comm, const void *in, void *out, int64_t bytes);
    /* The communicator of lane `number` among `ranks`, for `exchange` alone, with a stream of its own. NULL: messages
     * of two workers go by the transport's p2p, in host memory. Collective over all workers: those that take no part
     * give no ranks, and get NULL. */
    enum ghp_status (*lane)(struct ghp_collectives *collectives, struct ghp_ranks ranks, int number,
                            struct ghp_comm **comm);
    /* n messages on their way at once; tags mean nothing. What one rank sends another comes in the order of the calls,
     * so both call in one order. */
    enum ghp_status (*exchange)(struct ghp_comm *comm, const struct ghp_p2p_message *messages,
                                int n);
    /* Whether what was enqueued is still well after the host has waited for it for so long; a failure names `label`.
     * GHP_OK if nothing is enqueued. Local. */
    enum ghp_status (*check)(struct ghp_collectives *collectives, double waited_s,
                             const char *label);
    /* Memory that collectives reach without copies, zeroed; all three NULL: there is none. Allocating is local; base
     * NULL: take the device's. Its registration is collective over the communicator: if one of it has no base, none is
     * registered. Releasing it ends its registrations. */
    enum ghp_status (*allocate_memory)(struct ghp_collectives *collectives, int64_t bytes,
                                       void **base);
    enum ghp_status (*register_memory)(struct ghp_comm *comm, const struct ghp_comm_memory *memory);
    void (*release_memory)(struct ghp_collectives *collectives, void *base);
};

/* Short for collectives->ops->group. */
static inline enum ghp_status ghp_collectives_group(struct ghp_collectives *collectives,
                                                    struct ghp_ranks ranks, enum ghp_stream stream,
                                                    struct ghp_comm **comm)
{
    return collectives->ops->group(collectives, ranks, stream, comm);
}

#endif
