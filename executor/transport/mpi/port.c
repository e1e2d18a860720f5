/* executor/transport/mpi/port.c - see mpi/port.h. */
#include "executor/transport/mpi/port.h"

#include "core/base/clock.h"

#include <math.h>

void ghp_mpi_port_init(struct ghp_mpi_port *port, const struct ghp_emulation *emulation)
{
    *port = (struct ghp_mpi_port){.byte_s = emulation->port_Bps > 0 ? 1 / emulation->port_Bps : 0,
                                  .latency_s = emulation->latency_s};
    pthread_mutex_init(&port->lock, NULL);
}

double ghp_mpi_port_leave(struct ghp_mpi_port *port, int64_t bytes)
{
    double left_s;

    pthread_mutex_lock(&port->lock);
    left_s = fmax(ghp_now_s(), port->out_free_s) + (double)bytes * port->byte_s;
    port->out_free_s = left_s;
    pthread_mutex_unlock(&port->lock);
    return left_s;
}

double ghp_mpi_port_arrive(struct ghp_mpi_port *port, int64_t bytes, double left_s)
{
    double lasts_s = (double)bytes * port->byte_s, arrived_s;

    pthread_mutex_lock(&port->lock);
    arrived_s = fmax(left_s + port->latency_s - lasts_s, port->in_free_s) + lasts_s;
    port->in_free_s = arrived_s;
    pthread_mutex_unlock(&port->lock);
    return arrived_s;
}
