/* executor/transport/transport.h - who carries: collectives over sub-groups of workers.
 *
 * Reductions add in a fixed order, whatever arrives first, so equal inputs give equal bits on every rank and every run:
 * in rank order, or (long ones) first the ranks of each node, then the nodes, which keeps bytes off their links.
 * Inside a node they go through memory that its ranks share.
 * Communicators are created once per distinct (rank set, stream) and reused. Waiting sleeps briefly instead of
 * spinning, so more workers than cores do not starve each other; a wait that outlasts the watchdog's limit fails with
 * the label of the instruction and the ranks that have not arrived.
 *
 * Collective over the communicator: every member calls with equal sizes, in the same order. The two streams use
 * different communicators, so one thread per stream may be inside the transport at once.
 *
 * Tensors on a device are carried by a transport that knows the device (transport/device/staged.h, transport_nccl.h);
 * what workers tell each other always goes through host memory. One that `streams` returns at once: its collectives are
 * enqueued on the device's stream of the communicator's stream, and fail later, in `check`. */
#ifndef GHP_EXECUTOR_TRANSPORT_TRANSPORT_H
#define GHP_EXECUTOR_TRANSPORT_TRANSPORT_H

#include "core/program/program.h"

struct ghp_transport;
struct ghp_processors; /* executor/platform/processors.h */
struct ghp_comm;
struct ghp_channel;

struct ghp_p2p_message { /* from one worker to one other */
    void *data;          /* read, or written */
    int64_t bytes;       /* at most GHP_P2P_MESSAGE_BYTES; equal on both sides */
    int peer;            /* rank */
    int tag; /* >= 0; messages of one tag between two workers arrive in the order of posting */
    bool receives;
};

enum { GHP_P2P_MESSAGE_BYTES = 1 << 30 };

struct ghp_reduction { /* sums; data and scratch where the transport's tensors lie */
    const void *in;    /* reduce_scatter: count * each elements; all_reduce: in == out */
    void *out;
    int64_t elements;      /* all_reduce: of the buffer; reduce_scatter: of each rank's result */
    int element_bytes;     /* 2 bfloat16, 4 float, 8 double */
    void *scratch;         /* receive segment */
    int64_t scratch_bytes; /* >= 3 * element_bytes * ranks; larger messages go in segments */
};

struct ghp_word { /* what one rank tells the others */
    double value;
    int64_t status; /* enum ghp_status */
};

struct ghp_transport_ops {
    const char *name;
    bool enqueues; /* collectives are enqueued on a device */
    /* argc, argv as main got them; watchdog_s: limit of one wait. */
    enum ghp_status (*open)(int *argc, char ***argv, double watchdog_s,
                            struct ghp_transport **transport);
    /* Waits for all workers, who must be closing it as well, but no longer than the watchdog allows: then the process
     * ends with a message. */
    void (*close)(struct ghp_transport *transport);
    /* Whether the last failure is known to all workers, who then all close the transport; else abort is what is left.
     * NULL of what carries for another transport, as the next one. */
    bool (*settled)(const struct ghp_transport *transport);
    /* Between true and false this worker works alone and the others wait for it: longer than the watchdog allows, but
     * only as long as it gives signs of life. Local. */
    void (*alone)(struct ghp_transport *transport, bool alone);
    int (*rank)(const struct ghp_transport *transport);
    int (*size)(const struct ghp_transport *transport);
    /* Those that the workers of this one's node may use together, as they were started. NULL in what carries tensors
     * alone. */
    const struct ghp_processors *(*processors)(const struct ghp_transport *transport);
    /* How many ranks are on this one's node, and this one's place among them. NULL of what carries for another
     * transport */
    void (*place)(const struct ghp_transport *transport, int *here, int *place);
    /* Whether sums keep to rank order over several nodes too, so that they don't depend on where ranks run. At first
     * false. All workers alike. */
    void (*sum_in_rank_order)(struct ghp_transport *transport, bool on);
    /* The communicator of `ranks` for `stream`. Collective over all workers: all call with their own ranks of one
     * kind. Where one of `ranks` lacks memory for it, all of them fail. */
    enum ghp_status (*group)(struct ghp_transport *transport, struct ghp_ranks ranks,
                             enum ghp_stream stream, struct ghp_comm **comm);
    /* What the watchdog says is being waited for; borrowed until the next call. */
    void (*label)(struct ghp_comm *comm, const char *label);
    enum ghp_status (*all_reduce)(struct ghp_comm *comm, const struct ghp_reduction *sum);
    enum ghp_status (*reduce_scatter)(struct ghp_comm *comm, const struct ghp_reduction *sum);
    /* all[i] = rank i's bytes; `mine` may lie in its place in `all`. */
    enum ghp_status (*all_gather)(struct ghp_comm *comm, const void *mine, void *all,
                                  int64_t bytes_each);
    /* words[i] = what rank i told; borrowed until the next word or agreement. Needs no memory: so can a rank take
     * part that has none. NULL of what carries for another transport. */
    enum ghp_status (*tell)(struct ghp_comm *comm, struct ghp_word mine,
                            const struct ghp_word **words);
    /* out[i] = what rank i had in in[own index]. */
    enum ghp_status (*all_to_all)(struct ghp_comm *comm, const void *in, void *out,
                                  int64_t bytes_each);
    enum ghp_status (*barrier)(struct ghp_comm *comm);
    /* The worst status of all ranks, so that none is left in a collective; the failing rank keeps its message.
     * Needs no memory. */
    enum ghp_status (*agree)(struct ghp_comm *comm, enum ghp_status status);
    void (*abort)(struct ghp_transport *transport, int exit_code); /* ends all workers */
    /* Whether what was enqueued is still well after the host has waited for it for so long; a failure names `label`.
     * NULL where nothing is enqueued. */
    enum ghp_status (*check)(struct ghp_transport *transport, double waited_s, const char *label);
    /* Messages that are posted and later found done, apart from all communicators; one thread at a time uses a channel.
     * mail: room for `slots` messages at once. Collective over all workers. */
    enum ghp_status (*channel_open)(struct ghp_transport *transport, int slots,
                                    struct ghp_channel **channel);
    enum ghp_status (*post)(struct ghp_channel *channel, int slot,
                            const struct ghp_p2p_message *message); /* the slot is empty */
    /* done: the slot is empty again. */
    enum ghp_status (*poll)(struct ghp_channel *channel, int slot, bool *done);
    void (*channel_close)(
        struct ghp_channel *channel); /* releases it, no message under way; accepts NULL */
    double (*watchdog_s)(const struct ghp_transport *transport);
};

extern const struct ghp_transport_ops ghp_transport_mpi;

#endif
