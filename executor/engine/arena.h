/* executor/engine/arena.h - the one allocation of a worker: every buffer of its program, at the offset the planner
 * gave it.
 *
 * The arena takes exactly program.peak_bytes, so the predicted memory is the allocated memory. It knows bytes and
 * lifetimes, not what is in them. Under AddressSanitizer, ghp_arena_visit poisons whatever does not live at a point, so
 * that a kernel that strays outside its buffers or their lifetimes is caught.
 *
 * On a device the arena is one allocation of device memory, of the same size and with the same offsets.
 *
 * Call order: ghp_arena_open -> ghp_arena_at ... -> ghp_arena_close. */
#ifndef GHP_EXECUTOR_ENGINE_ARENA_H
#define GHP_EXECUTOR_ENGINE_ARENA_H

#include "core/program/program.h"
#include "executor/backend/device.h"

struct ghp_arena {
    unsigned char *base;           /* GHP_ALIGN_BYTES-aligned; NULL if the program has no bytes */
    int64_t bytes;                 /* program.peak_bytes; of a borrower's, less what it borrows */
    int point;                     /* last point visited, -1: everything open */
    struct ghp_device device;      /* zeroed: host memory */
    bool borrowed;                 /* the memory is the weight owner's, or was given */
    int64_t persistent_bytes;      /* of the program: free memory after it between steps */
    int64_t hole_first, hole_last; /* offsets of what is borrowed and has no memory here */
};

/* Zeroed memory for a placed program. Host memory comes from the process's NUMA placement (executor/platform/numa.h),
 * in huge pages if the system has them, and every page is touched now, so that no step pays for it and the resident
 * size is the predicted one.
 *
 * weight_owner   NULL; or the arena of the worker whose weights and states this forward-only program uses: then these
 *                take no memory. In host memory pages come as they are used; on a device the rest lies in the memory of
 *                the weight owner if it fits, in what is not alive between its steps
 * memory         zeroed, peak_bytes of the device's, which the arena borrows; NULL: it allocates
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY naming the bytes; GHP_ERR_BACKEND
 * Local
 * Tested    tests/executor/engine/test_worker.c, test_device.c, tests/executor/platform/test_numa.c */
enum ghp_status ghp_arena_open(struct ghp_device device, const struct ghp_program *program,
                               const struct ghp_arena *weight_owner, void *memory,
                               struct ghp_arena *arena);

/* Whether a forward-only program has the buffer from the weight owner. */
bool ghp_arena_borrows(const struct ghp_buffer *buffer);

/* Accepts a zeroed arena. */
void ghp_arena_close(struct ghp_arena *arena);

/* First byte of a buffer; NULL for -1, and for one in the hole. */
void *ghp_arena_at(const struct ghp_arena *arena, const struct ghp_program *program, int buffer);

/* Says that the step is now at `point`: under AddressSanitizer only buffers that live there may be touched from now on
 * (communication buffers stay open: they belong to the other stream). -1 opens everything. Elsewhere nothing
 * happens. */
void ghp_arena_visit(struct ghp_arena *arena, const struct ghp_program *program, int point);

/* Gives the pages of everything that does not persist back to the system until it is used again: between steps nothing
 * else is alive, so an evaluation can have that memory. A device's memory stays: it is borrowed instead. */
void ghp_arena_rest(struct ghp_arena *arena, const struct ghp_program *program);

#endif
