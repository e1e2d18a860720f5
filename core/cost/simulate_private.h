/* core/cost/simulate_private.h - private to core/cost/simulate*.c: what a timing adds up, and steps
 * that are alike or not. */
#ifndef GHP_CORE_COST_SIMULATE_PRIVATE_H
#define GHP_CORE_COST_SIMULATE_PRIVATE_H

#include "core/cost/simulate.h"

/* The sums of a timing's costs. */
void ghp_timing_sum_costs(const struct ghp_program *program, struct ghp_timing *timing);

/* Its times from the start of the recorded step on, and the sums of its phases. */
void ghp_timing_sum_phases(const struct ghp_program *program, double start_s,
                           struct ghp_timing *timing);

/* n programs and their costs; all steps are alike. */
enum ghp_status ghp_simulate_alike(int n, const struct ghp_program *programs,
                                   const struct ghp_profile *profile,
                                   const struct ghp_cost *const *costs, struct ghp_timing *timings);

/* Steps from one average of the weights to the next; 1: there is none, or one in each. */
int ghp_simulate_period(const struct ghp_program *program);

/* The mean of a step that averages, in which an average costs `period` times its part, and of steps that do not. */
enum ghp_status ghp_simulate_mean(const struct ghp_program *program, int period,
                                  const struct ghp_profile *profile, const struct ghp_cost *costs,
                                  struct ghp_timing *timing);

#endif
