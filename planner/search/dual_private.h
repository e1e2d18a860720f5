/* planner/search/dual_private.h - private to planner/search/dual*.c: the linear program of one bound.
 *
 *     minimise z + penalty * over
 *     z >= sum of w_p value_k(p)            every time constraint k     (dual: the constraint's weight)
 *     1 + over >= sum of w_p bytes_k(p)     every memory constraint k   (dual: the cost of memory)
 *     sum of w_p = 1, w >= 0, over >= 0
 *
 * A column is a plan, added as sweeps find it; constraints are added as the mean of the plans breaks them. */
#ifndef GHP_PLANNER_SEARCH_DUAL_PRIVATE_H
#define GHP_PLANNER_SEARCH_DUAL_PRIVATE_H

#include "planner/search/dual.h"

struct glp_prob;

struct ghp_master {
    struct ghp_dual *dual;
    struct glp_prob *lp;
    int *
        constraints; /* constraints[r - 2]: the dual's constraint in LP constraint r; constraint 1 is the sum of w */
    int n_constraints;
    int columns
        [GHP_DUAL_USED]; /* the dual's column in LP column c, counted from the first plan's */
    int n_columns;
    int *index; /* scratch of one LP constraint or column */
    double *entry;
    double z; /* its optimum */
};

/* Whether a constraint is a limit of memory, which has no part in the sum of weights. */
static inline bool ghp_dual_is_limit(const struct ghp_dual *dual, int constraint)
{
    return !dual->goal.bytes && dual->constraints[constraint].variant < 0;
}

/* What a constraint's values are relative to. */
static inline double ghp_dual_unit(const struct ghp_dual *dual, int constraint)
{
    return ghp_dual_is_limit(dual, constraint) ? dual->goal.limit_bytes : dual->goal.scale;
}

/* The constraint's index, added if it is new; -1 without room for it (the bound is then only weaker). */
int ghp_dual_add_constraint(struct ghp_dual *dual, const struct ghp_constraint *constraint);

/* Opens the master problem with the constraints that had a weight, and the newest plans of the domain.
 *
 * master   to be closed, also on failure
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_master_open(struct ghp_dual *dual, const struct ghp_domain *domain,
                                struct ghp_master *master);
void ghp_master_close(struct ghp_master *master); /* accepts a zeroed one */

/* Adds one of the dual's columns; there is room. */
void ghp_master_add(struct ghp_master *master, int column);
/* Takes out the plans that the optimum does not use, to make room. */
void ghp_master_thin(struct ghp_master *master);

/* Optimum over all constraints, its duals in the dual's trial[] (time constraints sum to one); false: none was
 * found. */
bool ghp_master_solve(struct ghp_master *master);

/* The weight of plan columns[c] in the optimum, and by how much the mean plan exceeds the limit. */
double ghp_master_weight(const struct ghp_master *master, int c);
double ghp_master_over(const struct ghp_master *master);

#endif
