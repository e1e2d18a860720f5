/* tests/executor/locked.h - a device without hardware: memory that is locked except while the device itself works.
 *
 * The backend computes as the reference backend does, on memory that every other access, reading or writing, ends the
 * program with (mprotect). So a training on it proves that host code keeps out. It also stores convolutions' weights in
 * another order (K,R,S,C) than the host, lets marks be passed only when they are asked for a second time, reads the
 * step's numbers from its memory, and plays graphs. */
#ifndef GHP_TESTS_EXECUTOR_LOCKED_H
#define GHP_TESTS_EXECUTOR_LOCKED_H

#include "executor/backend/backend.h"
#include "executor/transport/collectives.h"

extern const struct ghp_backend_ops locked_backend; /* "locked" */

/* Collectives that are enqueued on a locked device: they go onto its graphs.
 *
 * staged   carry its memory at once: executor/transport/device/staged.h's; borrowed */
enum ghp_status locked_collectives_open(struct ghp_collectives *staged, struct ghp_device device,
                                        struct ghp_collectives **queued);

/* Graphs played, and bytes of device memory that are not released, on all locked devices so far. */
int64_t locked_plays(void);
int64_t locked_bytes(void);

#endif
