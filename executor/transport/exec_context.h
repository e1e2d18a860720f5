/* executor/transport/exec_context.h - who works for a worker: who computes, who carries tensors, and who carries
 * control messages.
 *
 * Control messages - what workers tell each other in host memory - go by the transport. Tensors go by the device
 * transport: the same transport where they lie in host memory, else one that knows the device. */
#ifndef GHP_EXECUTOR_TRANSPORT_EXEC_H
#define GHP_EXECUTOR_TRANSPORT_EXEC_H

#include "executor/backend/backend.h"
#include "executor/transport/transport.h"

struct ghp_exec_context { /* borrowed by whoever uses it */
    const struct ghp_backend_ops *backend_ops;
    struct ghp_backend *backend;
    const struct ghp_transport_ops *transport_ops;
    struct ghp_transport *transport;
    const struct ghp_transport_ops
        *device_transport_ops; /* NULL: the transport carries tensors too */
    struct ghp_transport *device_transport;
};

/* The same with the device transport filled in. */
static inline struct ghp_exec_context ghp_exec_context_complete(struct ghp_exec_context exec)
{
    if (exec.device_transport_ops == NULL) {
        exec.device_transport_ops = exec.transport_ops;
        exec.device_transport = exec.transport;
    }
    return exec;
}

static inline struct ghp_device ghp_exec_context_device(const struct ghp_exec_context *exec)
{
    return ghp_backend_device(exec->backend_ops, exec->backend);
}

#endif
