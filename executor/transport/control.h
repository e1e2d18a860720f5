/* executor/transport/control.h - who works together, and what these workers tell each other.
 *
 * The workers of a run are MPI's processes: rank and size are MPI's, however they were started. Control messages are
 * small, go through host memory, and are waited for: a wait that outlasts the watchdog's limit fails with the
 * communicator's label and the ranks that have not arrived.
 *
 * They go between the ranks of a communicator in host memory (transport/collectives.h, ghp_transport.host). Collective
 * over it: every member calls, in the same order. Two threads may be inside at once, on communicators of two streams.
 *
 * Tested  tests/executor/transport/test_transport.c */
#ifndef GHP_EXECUTOR_TRANSPORT_CONTROL_H
#define GHP_EXECUTOR_TRANSPORT_CONTROL_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct ghp_comm;       /* transport/collectives.h */
struct ghp_processors; /* executor/platform/processors.h */

struct ghp_control_message { /* what one rank tells the others */
    double value;
    int64_t status; /* enum ghp_status */
};

struct ghp_control { /* read only */
    const struct ghp_control_ops *ops;
    int rank, size;
    int node_rank,
        node_size;    /* this one's place among the ranks of its node, and how many they are */
    bool fills_nodes; /* ranks fill one node after the other, equally many on each but the last */
    /* of its node's ranks together, as they were started */
    const struct ghp_processors *processors;
    double watchdog_s; /* limit of one wait */
    /* Times that limit: 1, or more while this worker waits for others that wait themselves, so that the worker next
     * to the one that stopped reports first. */
    double patience;
};

static inline double ghp_control_limit_s(const struct ghp_control *control)
{
    return control->watchdog_s * control->patience;
}

struct ghp_control_ops {
    enum ghp_status (*barrier)(struct ghp_control *control, struct ghp_comm *comm);
    /* The worst status of all ranks, so that none is left in a collective; the failing rank keeps its message.
     * Needs no memory. */
    enum ghp_status (*agree)(struct ghp_control *control, struct ghp_comm *comm,
                             enum ghp_status status);
    /* messages[i] = what rank i told; borrowed until the next message or agreement. Needs no memory: so can a rank take
     * part that has none. */
    enum ghp_status (*tell)(struct ghp_control *control, struct ghp_comm *comm,
                            struct ghp_control_message mine,
                            const struct ghp_control_message **messages);
    /* Between true and false this worker works alone and the others wait for it: longer than the watchdog allows, but
     * only as long as it gives signs of life. Local. */
    void (*alone)(struct ghp_control *control, bool alone);
    /* From here on a library is at `what` (both borrowed), which this worker cannot leave; what NULL: no more. If it
     * lasts longer than the watchdog allows, the process says so and ends. By one thread at a time. Local. */
    void (*guard)(struct ghp_control *control, const char *library, const char *what);
    /* Whether the last failure is known to all workers, who then all end the transport; else abort is what is left.
     * Local. */
    bool (*settled)(const struct ghp_control *control);
    void (*abort)(struct ghp_control *control, int exit_code); /* ends all workers */
};

/* Short for control->ops->agree and barrier. */
static inline enum ghp_status ghp_control_agree(struct ghp_control *control, struct ghp_comm *comm,
                                                enum ghp_status status)
{
    return control->ops->agree(control, comm, status);
}

static inline enum ghp_status ghp_control_barrier(struct ghp_control *control,
                                                  struct ghp_comm *comm)
{
    return control->ops->barrier(control, comm);
}

#endif
