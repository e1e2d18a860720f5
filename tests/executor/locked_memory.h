/* tests/executor/locked_memory.h - memory that is locked except while somebody is inside: any access from outside ends
 * the program (mprotect). Regions are whole pages; all are open while anybody is inside.
 *
 * Tested  tests/executor/locked.h's users */
#ifndef GHP_TESTS_EXECUTOR_LOCKED_MEMORY_H
#define GHP_TESTS_EXECUTOR_LOCKED_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* A region of at least that many bytes, zeroed; NULL without memory. */
void *locked_memory_map(size_t bytes);
void locked_memory_unmap(void *base);

/* From here to leave, from any thread and nested, all regions may be read and written. */
void locked_memory_enter(void);
void locked_memory_leave(void);

/* Bytes of all regions. */
int64_t locked_memory_bytes(void);

#endif
