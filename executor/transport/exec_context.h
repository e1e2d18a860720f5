/* executor/transport/exec_context.h - who works for a worker: who computes, and who carries.
 *
 * Control messages, messages between two workers, and tensors in host memory go by the transport. Tensors on a device
 * have collectives that know the device (transport/device/device_transport.h). */
#ifndef GHP_EXECUTOR_TRANSPORT_EXEC_H
#define GHP_EXECUTOR_TRANSPORT_EXEC_H

#include "executor/backend/backend.h"
#include "executor/transport/transport.h"

struct ghp_exec_context { /* borrowed by its users */
    const struct ghp_backend_ops *backend_ops;
    struct ghp_backend *backend;
    struct ghp_transport *transport;
    struct ghp_collectives *collectives; /* of tensors; NULL: the transport's, in host memory */
};

/* The same with the collectives filled in. */
static inline struct ghp_exec_context ghp_exec_context_complete(struct ghp_exec_context exec)
{
    if (exec.collectives == NULL) exec.collectives = exec.transport->host;
    return exec;
}

static inline struct ghp_device ghp_exec_context_device(const struct ghp_exec_context *exec)
{
    return ghp_backend_device(exec->backend_ops, exec->backend);
}

/* Waits for a stream of the device, outside of steps. Enqueued collectives wait for other workers, so the watchdog ends
 * a wait for them that lasts. */
static inline enum ghp_status ghp_exec_context_finish(const struct ghp_exec_context *exec,
                                                      enum ghp_device_stream stream)
{
    struct ghp_control *control = exec->transport->control;
    bool guards = exec->collectives != NULL && exec->collectives->ops->enqueues;
    enum ghp_status status;

    if (guards) control->ops->guard(control, "the GPU", "finishing what is enqueued");
    status = ghp_device_finish(ghp_exec_context_device(exec), stream);
    if (guards) control->ops->guard(control, "the GPU", NULL);
    return status;
}

#endif
