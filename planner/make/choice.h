/* planner/make/choice.h - which of the candidates becomes the plan, and why: the only place that picks.
 *
 * Plans without stages lead. Stages lead if they are faster by more than their prediction's error. A plan found by
 * trial leads if it is faster by more than data parallelism's error (any gain will do with --no-simplify). The lead
 * gets its bucket size. Without stages, a baseline is taken that buckets make faster; data parallelism if the
 * fastest plan beats it by no more than the error (docs/explanation/planner.md 6); and a layer's second best where
 * buckets make it faster than the plan it was found for.
 *
 * Order: ghp_lead_of after each search, ghp_choice_make, ghp_choice_find_second_best, ghp_choice_margin.
 * Called by planner/make/make.h alone. Tested  tests/planner/make/test_make.c, test_second_best.c */
#ifndef GHP_PLANNER_MAKE_CHOICE_H
#define GHP_PLANNER_MAKE_CHOICE_H

#include "planner/alternatives/alternatives.h"
#include "planner/make/candidates.h"
#include "planner/make/certify.h"

/* The best of what was found so far, by the steps of the searches. */
struct ghp_lead {
    const struct ghp_partition *staged; /* NULL: a plan without stages */
    enum ghp_trial trial;               /* NONE, RECOMPUTE or LOAD_BALANCE */
    double step_s;                      /* INFINITY: there is no plan */
    struct ghp_proven proven;
};

struct ghp_choice {
    struct ghp_candidate plan;
    bool staged;                          /* by stages, micro-batches, trial or rules */
    struct ghp_prediction fastest;        /* of the fastest plan, if a simpler one was taken */
    struct ghp_certificate certificate;   /* its margin is not written */
    struct ghp_alternatives alternatives; /* to the plan; none of those with stages */
};

struct ghp_lead ghp_lead_of(const struct ghp_plan_context *context,
                            const struct ghp_candidates *candidates);

/* Chooses, all candidates being there; without alternatives.
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE (rules were asked for, and none makes a plan); GHP_ERR_MISSING;
 *           GHP_ERR_NO_MEMORY */
enum ghp_status ghp_choice_make(const struct ghp_plan_context *context,
                                const struct ghp_candidates *candidates, struct ghp_choice *choice);
void ghp_choice_release(struct ghp_choice *choice);

/* Finds the alternatives to the plan, and chooses again while one of them is faster: those of the choice are in the end
 * the plan's own. Each is a change of the plan that it was found for. Every round makes the step shorter, so there is a
 * last one.
 *
 * choice   replaced as a whole if another plan is chosen */
enum ghp_status ghp_choice_find_second_best(const struct ghp_plan_context *context,
                                            const struct ghp_candidates *candidates,
                                            struct ghp_choice *choice);

enum { GHP_MARGIN_SIZE = 544 };

/* The margin over data parallelism, what it is worth compared with the error, and what followed.
 *
 * text   GHP_MARGIN_SIZE bytes
 *
 * Returns   text */
const char *ghp_choice_margin(const struct ghp_plan_context *context,
                              const struct ghp_candidates *candidates,
                              const struct ghp_choice *choice, char *text);

#endif
