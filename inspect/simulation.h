/* inspect/simulation.h - a plan as it would run: the program and the timing of one worker of each stage.
 *
 * Whoever shows one worker shows a stage's: the busiest, or the one that owns a layer. Without stages there is one.
 *
 * Tested  tests/tools/run/test_stages.sh */
#ifndef GHP_INSPECT_SIMULATION_H
#define GHP_INSPECT_SIMULATION_H

#include "core/plan/plan.h"

struct ghp_performance {
    struct ghp_programs programs;
    struct ghp_timing timings[GHP_MAX_STAGES];
    int busiest; /* the stage that computes longest; of equals the first */
};

/* Lowers and simulates by the plan's own prices.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (no price); GHP_ERR_INPUT, GHP_ERR_INTERNAL (not sound); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_performance_init(const struct ghp_plan *plan,
                                     struct ghp_performance *performance);
void ghp_performance_release(struct ghp_performance *performance); /* accepts a zeroed one */

#endif
