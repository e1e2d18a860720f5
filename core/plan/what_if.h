/* core/plan/what_if.h - overrides of a profile for planning ahead: more nodes, other links, faster workers.
 *
 * An override never keeps a measurement that it makes untrue. With the profile's machine as measured M and the machine
 * asked for M':
 *
 *     collectives   each entry's seconds times analytic(M', kind) / analytic(M, kind), the ring model over the link
 *                   that the groups of that kind cross, with the part of it that each gets; source `analytic`. If the
 *                   ratio is one - the link is not overridden, and the groups lie as they lay - the entry stays as
 *                   measured.
 *     operations    seconds / (speed.compute * cores of a worker in M' / cores of a worker in M); source `analytic`
 *     rates         bandwidths times (speed.memory * workers a node in M / workers a node in M'); source `analytic`
 *     slow.worker   its speed over slow.factor; if it becomes the slowest, operations and the rates of updates,
 *                   loads and sums become its own (core/cost/speeds.h); source `analytic`
 *
 * The cores and the part of a node's memory traffic change only if `nodes`, `workers_per_node` or `cores` do, and only
 * in measured profiles. A profile by the analytic model states the rate of one worker, wherever that runs. An override
 * that sets what is there changes nothing and is not recorded.
 *
 * To add a key: a row in what_if.c's table; --help and the messages come from it.
 *
 * Tested  tests/planner/sweep/test_what_if.c, tests/tools/plan/test_what_if.sh */
#ifndef GHP_CORE_PLAN_WHAT_IF_H
#define GHP_CORE_PLAN_WHAT_IF_H

#include "core/plan/plan.h"

struct ghp_what_if {
    /* in place of the profile's; a link of bandwidth 0 keeps the profile's link;
     * NULL: the profile's own */
    const struct ghp_machine *machine;
    const char *machine_name; /* how the record names it; NULL: not recorded */
    const char *const *set;   /* n_set texts KEY=VALUE */
    int n_set;
    int workers;          /* N of the plan, >= 1 */
    int workers_per_node; /* nodes follow N, unless an override sets them; 0: nodes stay */
};

/* Overrides the profile and finalizes it.
 *
 * profile   finalized; left in an unspecified but releasable state on failure
 * overrides     receives the record (zeroed before), released by the caller; may be NULL
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (unknown key with the nearest, malformed, out of range, twice, keys that exclude each
 *           other, an analytic model that no cost comes from); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_what_if_apply(const struct ghp_what_if *what_if, struct ghp_profile *profile,
                                  struct ghp_overrides *overrides);

/* Applies what a plan was made with: its record and its machine, on the profile as it was measured. */
enum ghp_status ghp_what_if_repeat(const struct ghp_plan *plan, struct ghp_profile *profile);

/* Workers that fill a node before the next one has any: as many as the profile was measured with, else a GPU or a core
 * for each; 0: they lie so already.
 *
 * machine   in place of the profile's: its GPUs count first, and its nodes take all `workers`; NULL: the profile's, as
 *           many nodes as there have to be */
int ghp_what_if_workers_per_node(const struct ghp_profile *profile,
                                 const struct ghp_machine *machine, int workers);

/* A worker's part of a node's memory where `memory_bytes` is among the overrides, at least 1; else 0 [bytes].
 *
 * profile   after ghp_what_if_apply */
int64_t ghp_what_if_memory(const struct ghp_what_if *what_if, const struct ghp_profile *profile);

/* The keys with their units and meanings, a line each: for --help. Points to static memory. */
const char *ghp_what_if_help(void);

#endif
