/* executor/platform/numa.h - places memory near the cores that this process is bound to.
 *
 * Code that allocates much memory asks for pages of the cores' NUMA node. If the cores belong to several nodes, pages
 * come from each of these in turn, since one thread touches all pages first and all threads read them. This is only a
 * preference: if a node is full, the system takes another. While there is no placement - the process is not bound, or
 * the system refuses, as containers without the right do - pages come from the node of the thread that first touches
 * them.
 *
 * One placement a process, as it has one binding, which chooses it (executor/platform/binding.h). From one thread.
 *
 * Tested    tests/executor/platform/test_numa.c */
#ifndef GHP_EXECUTOR_PLATFORM_NUMA_H
#define GHP_EXECUTOR_PLATFORM_NUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The NUMA placement by the cores that the process is bound to now, in place of any other. Tried on a page.
 *
 * text   gets where memory comes from, in words: "memory of node(s) 0"; at most `bytes` with the end
 *
 * Returns   whether there is a placement now */
bool ghp_numa_choose(char *text, size_t bytes);

/* Ends the placement. Memory that was taken keeps its pages. */
void ghp_numa_leave(void);

/* Pages of [base, base + bytes) that are not touched yet will come from its nodes. base is a page's first byte, bytes
 * > 0.
 *
 * Returns   whether they will: false without a placement, and if the system refuses, which changes nothing but speed
 *           */
bool ghp_numa_bind(void *base, int64_t bytes);

#endif
