/* executor/platform/processors.h - the processors that a process, or several together, may use.
 *
 * A machine has more than a container, a batch system, taskset or a launcher leaves a process; who counts processors to
 * say whether threads have to take turns counts these. What a limit of processor time leaves of them: limits.h.
 *
 * Tested    tests/executor/platform/test_affinity.c, tests/tools/run/test_affinity.sh */
#ifndef GHP_EXECUTOR_PLATFORM_PROCESSORS_H
#define GHP_EXECUTOR_PLATFORM_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

enum { GHP_PROCESSORS_MOST = 8192 }; /* of one node */

struct ghp_processors { /* by the operating system's numbers, a bit each */
    uint64_t words[GHP_PROCESSORS_MOST / 64];
};

/* Those of a process on this node, 0: this one; if the system does not say all that are online. Local. */
struct ghp_processors ghp_processors_of(int process);
void ghp_processors_join(struct ghp_processors *all, const struct ghp_processors *more);
bool ghp_processors_has(const struct ghp_processors *processors, int number);
int ghp_processors_count(const struct ghp_processors *processors);

#endif
