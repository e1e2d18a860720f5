/* executor/transport/nccl/transport_nccl.h - carries tensors that lie on GPUs directly from one to the other, by NCCL.
 *
 * One communicator for each distinct (ranks, stream), and for each lane between two stages, made once; its collectives
 * are enqueued on the device's stream of the stream, in the order of the calls, and the host continues. Whether they
 * went well the host asks in `check`: an error that NCCL found meanwhile, or a wait beyond the watchdog's limit, aborts
 * every communicator and fails. Each rank needs a GPU of its own. Sums are NCCL's: in an order of its choice, the same
 * in every run on the same machine. Communicators of the backend's config.reduce_multiprocessors also know memory.
 *
 * Control messages bring the communicators together.
 *
 * Tested tests/executor/transport/nccl/test_nccl.c */
#ifndef GHP_EXECUTOR_TRANSPORT_NCCL_TRANSPORT_NCCL_H
#define GHP_EXECUTOR_TRANSPORT_NCCL_TRANSPORT_NCCL_H

#include "executor/backend/device.h"
#include "executor/transport/transport.h"

/* transport    its control messages and host memory; borrowed until close, as the device's backend is
 * device       a GPU of the cuda backend
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND (NCCL is missing); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_nccl_open(const struct ghp_transport *transport, struct ghp_device device,
                              struct ghp_collectives **nccl);

/* Communicators made so far. */
int ghp_nccl_comms(const struct ghp_collectives *nccl);

extern const struct ghp_collectives_ops ghp_nccl_collectives;

#endif
