/* executor/transport/device/staged.h - carries tensors that lie on a device through host memory.
 *
 * For ranks that share a device, and wherever nothing carries device memory directly. Each collective copies what it
 * needs to pinned host memory, a part at a time, lets the host's collectives do the same there, and copies the result
 * back; it returns when the result is in place. Sums are the host's, with the same bits.
 *
 * Tested tests/executor/engine/test_device.c */
#ifndef GHP_EXECUTOR_TRANSPORT_DEVICE_STAGED_H
#define GHP_EXECUTOR_TRANSPORT_DEVICE_STAGED_H

#include "executor/backend/device.h"
#include "executor/transport/collectives.h"

/* host   carries host memory; borrowed until close, as the device's backend is
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_staged_open(struct ghp_collectives *host, struct ghp_device device,
                                struct ghp_collectives **staged);

extern const struct ghp_collectives_ops ghp_staged_collectives;

#endif
