/* core/cost/simulate.h - how long a program takes: event simulation of its streams in the steady state of a training
 * loop. */
#ifndef GHP_CORE_COST_SIMULATE_H
#define GHP_CORE_COST_SIMULATE_H

#include "core/cost/profile.h"
#include "core/program/lower/lower.h"

struct ghp_instr_time { /* in one steady step; seconds from that step's start */
    double start_s, finish_s;
    struct ghp_cost cost; /* without slowdown */
};

struct ghp_timing {
    double step_s;     /* steady-state period */
    double compute_s;  /* sum over the compute stream without waiting or slowdown */
    double comm_s;     /* sum over the communication stream without slowdown */
    double transfer_s; /* sum over the transfer stream without slowdown */
    double origin_s;   /* when its step starts, after the first stage's */
    double serial_s;   /* everything after everything: no overlap */
    double phase_s[GHP_PHASE_COUNT];
    double measured_share; /* part of the costed seconds whose source is `measured` */
    /* of the sum, half interquartile: measured terms err by chance, those by an analytic model together */
    double error_s;
    int n_instrs;
    struct ghp_instr_time *instrs; /* one per instruction, program order; owned */
};

/* Costs every instruction and simulates steps until the period repeats.
 * Returns GHP_ERR_MISSING if the profile has no cost.
 * Source docs/explanation/time-model.md. Tested tests/core/cost/test_simulate.c */
enum ghp_status ghp_simulate(const struct ghp_program *program, const struct ghp_profile *profile,
                             struct ghp_timing *timing);

/* The same with the costs at hand, one an instruction: for the same program again if only some costs change. */
enum ghp_status ghp_simulate_with_costs(const struct ghp_program *program,
                                        const struct ghp_profile *profile,
                                        const struct ghp_cost *costs, struct ghp_timing *timing);

/* All stages together, coupled by their transfers, or a worker and a server, coupled by their exchanges: the period is
 * common to all.
 *
 * timings   one a program, released by the caller. A server has none; its costs come after the others'
 *
 * Returns   as ghp_simulate; GHP_ERR_INTERNAL if the programs wait for each other: no timing can end such a step */
enum ghp_status ghp_simulate_all(const struct ghp_programs *programs,
                                 const struct ghp_profile *profile, struct ghp_timing *timings);
/* The same if computing takes longer: reshards, reductions and transfers do not.
 *
 * slow   times as long, one a program, >= 1; NULL: as costed
 *
 * Tested tests/core/cost/test_simulate.c */
enum ghp_status ghp_simulate_slowed(const struct ghp_programs *programs,
                                    const struct ghp_profile *profile, const double *slow,
                                    struct ghp_timing *timings);
enum ghp_status ghp_simulate_all_with_costs(const struct ghp_programs *programs,
                                            const struct ghp_profile *profile,
                                            const struct ghp_cost *const *costs,
                                            struct ghp_timing *timings);
void ghp_timing_release(struct ghp_timing *timing);

#endif
