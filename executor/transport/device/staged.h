/* executor/transport/device/staged.h - carries tensors that lie on a device through host memory, by another transport.
 *
 * For ranks that share a device, and wherever nothing carries device memory directly. Each collective copies what it
 * needs to pinned host memory, piece by piece, lets the other transport do the same collective there, and copies the
 * result back; it returns when the result is in place. Sums are the other transport's: in rank order.
 *
 * Tested tests/executor/engine/test_device.c */
#ifndef GHP_EXECUTOR_TRANSPORT_DEVICE_STAGED_H
#define GHP_EXECUTOR_TRANSPORT_DEVICE_STAGED_H

#include "executor/backend/device.h"
#include "executor/transport/transport.h"

extern const struct ghp_transport_ops
    ghp_transport_staged; /* opened by ghp_staged_open, not by its own `open` */

/* base_ops, base   carries host memory; borrowed until close, as the device's backend is
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_staged_open(const struct ghp_transport_ops *base_ops,
                                struct ghp_transport *base, struct ghp_device device,
                                struct ghp_transport **transport);

#endif
