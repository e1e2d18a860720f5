/* inspect/simulation.h - simulates a plan: the program and the timing of one worker of each stage.
 *
 * Code that shows one worker shows that of a stage: the busiest stage, or the one that owns a layer. Without stages
 * there is only one.
 *
 * Tested  tests/tools/run/test_stages.sh */
#ifndef GHP_INSPECT_SIMULATION_H
#define GHP_INSPECT_SIMULATION_H

#include "core/plan/plan.h"

struct ghp_simulation {
    struct ghp_programs programs;
    struct ghp_timing timings[GHP_MAX_STAGES];
    int busiest; /* the stage that computes longest; if several do, the first */
};

/* Lowers and simulates by the plan's own costs.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (no cost); GHP_ERR_INPUT, GHP_ERR_INTERNAL (not sound); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_simulation_init(const struct ghp_plan *plan, struct ghp_simulation *simulation);
void ghp_simulation_release(struct ghp_simulation *simulation); /* accepts a zeroed one */

#endif
