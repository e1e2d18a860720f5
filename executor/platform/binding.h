/* executor/platform/binding.h - binds a worker to the cores that the plan names and its memory to their NUMA nodes, and
 * checks both.
 *
 * Rank r of N has its place by ghp_machine_place: cores as operating-system indices. Binding covers the whole
 * process, so every thread made afterwards (OpenMP's, the communication thread) stays there too. The arena's pages
 * come from the cores' NUMA nodes (executor/platform/numa.h). If the plan is for another machine, nothing fails: the
 * worker then runs where the system puts it. */
#ifndef GHP_EXECUTOR_PLATFORM_BINDING_H
#define GHP_EXECUTOR_PLATFORM_BINDING_H

#include "core/cost/machine.h"
#include "executor/platform/processors.h"

enum ghp_bind_mode { GHP_BIND_AUTO, GHP_BIND_REQUIRE, GHP_BIND_NONE, GHP_BIND_COUNT };

extern const char *const ghp_bind_names[GHP_BIND_COUNT + 1]; /* NULL-terminated, in enum order */

struct ghp_binding {
    bool bound;          /* and read back */
    int n_cores;         /* of the place, or the worker's part of the cores here */
    bool oversubscribed; /* shares a core with other workers */
    char text[512];      /* one line: where it and its memory are, or why not */
};

/* Binds this process.
 *
 * machine         of the plan
 * workers, rank   N and this worker
 * here            workers on this node: the part of its cores if the plan's cores cannot be used
 * processors      that they may use together; NULL: all of this node; borrowed
 *
 * Returns   GHP_OK (bound or not: see binding); GHP_ERR_INPUT under GHP_BIND_REQUIRE if binding is not possible
 * Local
 * Tested    tests/executor/platform/test_binding.c */
struct ghp_binding_request {
    int workers, rank, here;
    const struct ghp_processors *processors;
};
enum ghp_status ghp_binding_set(const struct ghp_machine *machine,
                                struct ghp_binding_request request, enum ghp_bind_mode mode,
                                struct ghp_binding *binding);

/* Warns if a worker has more threads than cores, which then take turns.
 *
 * Tested    tests/tools/profile/test_threads.sh */
void ghp_binding_check_threads(int threads, int n_cores);

#endif
