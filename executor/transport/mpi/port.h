/* executor/transport/mpi/port.h - private to executor/transport/mpi: a worker's link to the others as an emulation has
 * it (executor/platform/emulation.h).
 *
 * A message goes at once, together with a stamp of when it has left by the sender's port. Who receives both sleeps
 * until it would have arrived by its own port, which takes messages in the order in which their first bytes reach
 * it; who sends, until it has left. So ranks of one node behave like nodes of one link each. Clocks are the node's:
 * all ranks must be on one. */
#ifndef GHP_EXECUTOR_TRANSPORT_MPI_PORT_H
#define GHP_EXECUTOR_TRANSPORT_MPI_PORT_H

#include "core/base/status.h"
#include "executor/platform/emulation.h"

#include <pthread.h>
#include <stdint.h>

struct ghp_mpi_port { /* one a process; its threads share it */
    pthread_mutex_t lock;
    double byte_s, latency_s;
    double out_free_s, in_free_s; /* on ghp_now_s's clock */
};

void ghp_mpi_port_init(struct ghp_mpi_port *port, const struct ghp_emulation *emulation);

/* When a message that goes now has left. */
double ghp_mpi_port_leave(struct ghp_mpi_port *port, int64_t bytes);

/* When a message has arrived that had left then. Its bytes come as they leave: a port that is free adds the latency
 * alone. */
double ghp_mpi_port_arrive(struct ghp_mpi_port *port, int64_t bytes, double left_s);

#endif
