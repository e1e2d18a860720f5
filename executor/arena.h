/* executor/arena.h - the one allocation of a worker: every buffer of its program, at the offset the planner gave it.
 *
 * The arena takes exactly program.peak_bytes, so the predicted memory is the allocated memory. It knows bytes and
 * lifetimes, not what is in them. Under AddressSanitizer, ghp_arena_visit poisons whatever does not live at a point, so
 * that a kernel that strays outside its buffers or their lifetimes is caught.
 *
 * Call order: ghp_arena_open -> ghp_arena_at ... -> ghp_arena_close. */
#ifndef GHP_EXECUTOR_ARENA_H
#define GHP_EXECUTOR_ARENA_H

#include "core/program.h"

struct ghp_arena {
    unsigned char *base; /* GHP_ALIGN_BYTES-aligned; NULL where the program has no bytes */
    int64_t bytes;       /* program.peak_bytes */
    int point;           /* last point visited, -1: everything open */
};

/* Zeroed memory for a placed program.
 *
 * resident   true: every page is touched now, so that no step pays for it and the resident size is the predicted one;
 *            false: pages come as they are used
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY naming the bytes
 * Local
 * Tested    tests/executor/test_worker.c */
enum ghp_status ghp_arena_open(const struct ghp_program *program, bool resident,
                               struct ghp_arena *arena);

/* Accepts a zeroed arena. */
void ghp_arena_close(struct ghp_arena *arena);

/* First byte of a buffer; NULL for -1. */
void *ghp_arena_at(const struct ghp_arena *arena, const struct ghp_program *program, int buffer);

/* Says that the step is now at `point`: under AddressSanitizer only buffers that live there may be touched from now on
 * (communication buffers stay open: they belong to the other stream). -1 opens everything. Elsewhere nothing happens. */
void ghp_arena_visit(struct ghp_arena *arena, const struct ghp_program *program, int point);

/* Gives the pages of everything that does not persist back to the system until it is used again: between steps nothing
 * else is alive, so an evaluation can have that memory. */
void ghp_arena_rest(struct ghp_arena *arena, const struct ghp_program *program);

#endif
