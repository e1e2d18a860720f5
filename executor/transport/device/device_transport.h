/* executor/transport/device/device_transport.h - who carries tensors between workers: chosen once a session, for an
 * execution context whose backend is open.
 *
 * Tensors in host memory go by the transport's collectives. Tensors on devices go by NCCL if every rank has
 * a device of its own and none is a MIG instance, which NCCL takes for the same GPU as the next one; else through pinned host memory. */
#ifndef GHP_EXECUTOR_TRANSPORT_DEVICE_DEVICE_TRANSPORT_H
#define GHP_EXECUTOR_TRANSPORT_DEVICE_DEVICE_TRANSPORT_H

#include "executor/transport/exec_context.h"

enum ghp_device_transport_choice {
    GHP_DEVICE_TRANSPORT_AUTO,
    GHP_DEVICE_TRANSPORT_NCCL,
    GHP_DEVICE_TRANSPORT_MPI,
    GHP_DEVICE_TRANSPORT_COUNT
};
extern const char
    *const ghp_device_transport_names[GHP_DEVICE_TRANSPORT_COUNT + 1]; /* NULL-terminated */

/* Fills in the execution context's collectives if its tensors lie on a device; else they stay as they are.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (NCCL for ranks that share a GPU, or for host memory); GHP_ERR_BACKEND; the same on
 *           all
 * Collective over all workers
 * Tested    tests/executor/transport/nccl/test_nccl.c */
enum ghp_status ghp_device_transport_open(struct ghp_exec_context *exec,
                                          enum ghp_device_transport_choice choice);
/* Counts the devices that all workers use, each once, however many of them a worker sees.
 *
 * Collective over all workers whose tensors lie on devices, of which there are two or more */
enum ghp_status ghp_device_transport_count(const struct ghp_exec_context *exec, int *devices);
/* Closes what it opened; before the backend. */
void ghp_device_transport_close(struct ghp_exec_context *exec);

#endif
