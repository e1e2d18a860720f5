/* planner/search/branch.h - branch and bound over choices, with the dual's bounds below and true values at the plans.
 *
 * A node is a domain. Its bound is the dual's; choices that cannot be in a better plan are taken out; then one layer
 * is split into "this choice" and "any other".  Every plan that a sweep meets is evaluated by the caller's objective
 * (the simulated program), so the answer is exact for the objective as long as the constraints bound it from below.
 * Plans whose bound reaches the best true value times (1 - GHP_BRANCH_SAME) are not looked at: ties to that
 * precision count as equal.
 *
 * Layers that share parameters hold the same parts of them: there is a root for each such set of choices.
 *
 * Not for graphs too wide for tables: `wide` says so, and planner/search/milp.h takes over.
 *
 * Tested  tests/planner/search/test_exact.c (brute force), test_milp.c (the reference) */
#ifndef GHP_PLANNER_SEARCH_BRANCH_H
#define GHP_PLANNER_SEARCH_BRANCH_H

#include "planner/search/dual.h"

#define GHP_BRANCH_SAME 1e-9

/* The true objective of a plan ([s] or [bytes]); INFINITY if it breaks the limit. */
struct ghp_objective {
    enum ghp_status (*evaluate)(void *context, const int *choice, double *value);
    void *context;
};

struct ghp_branch_result {
    int *choice;   /* best plan, n_layers; owned */
    double value;  /* its true objective; INFINITY: none found */
    double bound;  /* no plan of the domain is better than this (to GHP_BRANCH_SAME) */
    bool proven;   /* searched to the end: value is the optimum */
    bool wide;     /* the frontier is too wide; nothing was searched */
    int64_t plans; /* evaluated */
    int64_t nodes;
};

struct ghp_branch_limits {
    double deadline_s; /* on ghp_now_s's clock */
    double enough;     /* stop at a value at or below this; -INFINITY: search to the end */
    double gap; /* relative; plans that are not better by more do not count; 0: GHP_BRANCH_SAME */
    /* states of a sweep over the root from which on a part of it is searched first; 0: 2 million */
    double wide_states;
};

/* Searches a domain.
 *
 * in, goal   goal.scale is about the optimum
 * domain     borrowed
 * start      n_start plans (n_layers each) to evaluate first; result->choice may be set to a plan known to be good by
 *            giving it here
 * result     zeroed by the caller before the first use, or the result of an earlier search to be improved on
 *
 * Returns   GHP_OK (also at the deadline); what objective.evaluate returns; GHP_ERR_NO_MEMORY */
struct ghp_branch_job {
    const struct ghp_instance *in;
    struct ghp_goal goal;
    const struct ghp_domain *domain;
    const int *start;
    int n_start;
    struct ghp_objective objective;
    struct ghp_branch_limits limits;
    uint64_t (*hash)(const int *choice,
                     int n_layers); /* of plans; NULL: ghp_hash; tests: plans collide */
};

enum ghp_status ghp_branch_run(const struct ghp_branch_job *job, struct ghp_branch_result *result);
void ghp_branch_release(struct ghp_branch_result *result);

#endif
