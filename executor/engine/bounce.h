/* executor/engine/bounce.h - the bounce buffer of a message whose tensor lies on a device: pinned host memory, at the
 * same offsets, that the message is sent from or received into.
 *
 * Copies run in the device's transfer stream. Two events order them with the compute stream: `ready`, when the message
 * was posted, and `moved`, after the copy. A send is copied to the host when `ready` is passed. A receive is copied to
 * the device after `ready`, and the compute stream continues after `moved`.
 *
 * Call order: open -> per message: posted, then of a send fetch until it is there, of a receive is_free until it is,
 * then deliver; await -> close. One thread posts and awaits, another does the rest, in turns.
 * Tested    tests/executor/engine/test_device.c, tests/emulated/test_tools.sh */
#ifndef GHP_EXECUTOR_ENGINE_BOUNCE_H
#define GHP_EXECUTOR_ENGINE_BOUNCE_H

#include "executor/backend/device.h"

struct ghp_bounce;

struct ghp_bounce_place {
    void *tensor;          /* on the device; borrowed */
    int64_t first, end;    /* bytes of it that the message touches: first .. end - 1 */
    int64_t scratch_bytes; /* of the message's scratch, which is in host memory alone */
};

/* Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND
 * Local */
enum ghp_status ghp_bounce_open(struct ghp_device device, const struct ghp_bounce_place *place,
                                struct ghp_bounce **bounce);
void ghp_bounce_close(struct ghp_bounce *bounce); /* waits for copies; accepts NULL */

/* The addresses in host memory at which the tensor and the scratch begin. */
char *ghp_bounce_tensor(const struct ghp_bounce *bounce);
char *ghp_bounce_scratch(const struct ghp_bounce *bounce);

/* The tensor may be read (a send) or written (a receive) from the compute stream's present state on. Accepts NULL. */
enum ghp_status ghp_bounce_posted(struct ghp_bounce *bounce);
/* Whether a send's tensor is in host memory; asked again until it is. */
enum ghp_status ghp_bounce_fetch(struct ghp_bounce *bounce, bool *fetched);
/* Whether what was received before has left host memory; asked again until it has. */
enum ghp_status ghp_bounce_is_free(struct ghp_bounce *bounce, bool *is_free);
/* What was received is on its way to the device. */
enum ghp_status ghp_bounce_deliver(struct ghp_bounce *bounce);
/* The compute stream continues when the copy is done. Accepts NULL. */
enum ghp_status ghp_bounce_await(struct ghp_bounce *bounce);

#endif
