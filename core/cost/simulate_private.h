/* core/cost/simulate_private.h - private to core/cost/simulate*.c: what a timing adds up. */
#ifndef GHP_CORE_COST_SIMULATE_PRIVATE_H
#define GHP_CORE_COST_SIMULATE_PRIVATE_H

#include "core/cost/simulate.h"

/* The sums of a timing's costs. */
void ghp_timing_sum_costs(const struct ghp_program *program, struct ghp_timing *timing);

/* Its times from the start of the recorded step on, and the sums of its phases. */
void ghp_timing_sum_phases(const struct ghp_program *program, double start_s,
                           struct ghp_timing *timing);

#endif
