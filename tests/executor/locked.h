/* tests/executor/locked.h - a device without hardware: memory that is locked except while the device itself works.
 *
 * The backend computes as the reference backend does, on memory that every other access, reading or writing, ends the
 * program with (mprotect). So a training on it proves that host code keeps out. It also stores convolutions' weights in
 * another order (K,R,S,C) than the host, lets marks be passed only when they are asked for a second time, reads the
 * step's numbers from its memory, and plays graphs. */
#ifndef GHP_TESTS_EXECUTOR_LOCKED_H
#define GHP_TESTS_EXECUTOR_LOCKED_H

#include "executor/backend/backend.h"
#include "executor/transport/transport.h"

extern const struct ghp_backend_ops locked_backend; /* "locked" */

/* A device transport that enqueues on a locked device: collectives go onto its graphs. `base` carries its memory at
 * once.
 *
 * base_ops, base   executor/transport/device/staged.h's; borrowed */
extern const struct ghp_transport_ops locked_device_transport;
enum ghp_status locked_device_transport_open(const struct ghp_transport_ops *base_ops,
                                             struct ghp_transport *base, struct ghp_device device,
                                             struct ghp_transport **transport);

/* Graphs played, and bytes of device memory that are not released, on all locked devices so far. */
int64_t locked_plays(void);
int64_t locked_bytes(void);

#endif
