/* planner/alternatives/break_even.h - at which bandwidth, latency, batch and memory a layer's choice flips to its
 * second best.
 *
 * For each quantity alone, all else fixed: the nearest value below and above the nominal one at which the plan and the
 * plan with the second best (planner/alternatives/alternatives.h: the layer's other split, and what changes along)
 * take equally long, within a factor GHP_QUANTITY_FACTOR.  Each side is walked in factors of two until the sign of
 * the difference turns, then closed in on; a second change of sign inside one factor of two would be missed.
 *
 *     bandwidth, latency   both programs simulated with the link scaled (core/plan/profile_scale.h)
 *     batch                both programs lowered again; the nearest multiple of the workers at which the second best is
 *                          at least as fast
 *     memory               the plan's own arena, if the second best needs less: below it only the second best fits
 *
 * The work is limited by a count, not by a clock, so a plan is the same on every machine: layers whose second best is
 * slower by more than half are left out, then those with the slowest second-best choices. `search`
 * says so.
 *
 * Tested  tests/planner/alternatives/test_break_even.c (a closed form), tests/tools/plan/test_why.sh */
#ifndef GHP_PLANNER_ALTERNATIVES_BREAK_EVEN_H
#define GHP_PLANNER_ALTERNATIVES_BREAK_EVEN_H

#include "core/plan/plan.h"

struct ghp_break_even_layer { /* of one alternative */
    int n;                    /* 0: not searched */
    struct ghp_break_even of[GHP_QUANTITY_COUNT];
};

struct ghp_break_evens {
    struct ghp_break_even_layer *layers; /* one for each of the plan's alternatives; owned */
    char *search;                        /* how far values were looked for; owned */
};

/* The break-even values of the plan's alternatives.
 *
 * profile   the whole one that the plan was made with; finalized
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; errors of lowering */
enum ghp_status ghp_break_even_compute(const struct ghp_profile *profile,
                                       const struct ghp_plan *plan, struct ghp_break_evens *found);
void ghp_break_even_release(struct ghp_break_evens *found);

#endif
