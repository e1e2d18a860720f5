/* planner/search/dual.h - the Lagrangian bound of a domain: the mix of constraints whose least plan is dearest.
 *
 * For any weights that sum to one, the least weighted sum over all plans (one frontier sweep) bounds every plan's
 * step from below. The weights come from a small linear program over the plans seen so far (column generation):
 * its constraints are time constraints, added when the mean of its plans breaks one, and memory constraints where
 * there is a limit. The bound is always the sweep's own sum, so the linear program's rounding cannot spoil it.
 *
 * Values are relative: seconds over `scale`, bytes over the limit (or over `scale` if bytes are minimised).
 *
 * Call order: open -> add plans -> bound (any number of domains) -> marginals -> close.
 *
 * Tested  tests/planner/search/test_exact.c */
#ifndef GHP_PLANNER_SEARCH_DUAL_H
#define GHP_PLANNER_SEARCH_DUAL_H

#include "planner/search/constraints.h"

enum { GHP_DUAL_COLUMNS = 4096, GHP_DUAL_CONSTRAINTS = 4096, GHP_DUAL_USED = 48 };

/* What is minimised, and under which limit. */
struct ghp_goal {
    bool bytes;         /* the fullest point's live bytes; false: the step */
    double limit_bytes; /* live bytes at every point; 0: none (only if the step is minimised) */
    double scale;       /* [s] or [bytes]: about the optimum, > 0 */
};

struct ghp_dual {
    const struct ghp_instance *in;
    struct ghp_coefficients coefficients;
    struct ghp_goal goal;
    struct ghp_frontier frontier;
    struct ghp_weights weights;
    struct ghp_accumulated_cost mean; /* scratch */
    int n_columns;
    int *choice;   /* n_columns x n_layers */
    int *excluded; /* a column: which layer keeps it out of the domains (search/domain.h) */
    struct ghp_accumulated_cost *accumulated;
    int n_constraints;
    struct ghp_constraint *constraints;
    /* a constraint: relative weight of the last bound; time constraints sum to one */
    double *weight;
    double *trial;     /* scratch of the same kind */
    int *plan;         /* scratch: n_layers */
    double *mean_part; /* a flat choice: its part in the mean plan of the last bound */
    double penalty;    /* for a relative byte above the limit */
    /* Called for every plan that is met, with its accumulated costs; may lower *cutoff. */
    enum ghp_status (*found)(void *context, const int *choice,
                             const struct ghp_accumulated_cost *accumulated, double *cutoff);
    void *context;
};

enum ghp_status ghp_dual_open(const struct ghp_instance *in, struct ghp_goal goal,
                              struct ghp_dual *dual);
void ghp_dual_close(struct ghp_dual *dual);

/* Adds a plan to the linear program, and the constraint that is longest on it. */
enum ghp_status ghp_dual_add(struct ghp_dual *dual, const int *choice);

/* Relative objective of a plan by its constraints (the limit not considered), and the constraint that gives it. */
double ghp_dual_value(struct ghp_dual *dual, const struct ghp_accumulated_cost *accumulated,
                      struct ghp_constraint *constraint);

/* The best bound of a domain that `rounds` sweeps find.
 *
 * domain   in play
 * cutoff   stops once the bound reaches it (relative); may be lowered on the way
 * rounds   sweeps, > 0
 * bound    receives the bound (relative); INFINITY if the domain has no plan; -INFINITY if the frontier is too
 *          wide for tables
 *
 * Returns   GHP_OK; what `found` returns; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_dual_bound(struct ghp_dual *dual, const struct ghp_domain *domain,
                               double *cutoff, int rounds, double *bound);

/* Takes out of the domain every choice and pair that only plans at or above the cutoff contain, by the weights of
 * the last ghp_dual_bound on this domain.
 *
 * removed   receives how many choices went */
enum ghp_status ghp_dual_reduced_cost_fixing(struct ghp_dual *dual, struct ghp_domain *domain,
                                             double cutoff, int *removed);

/* Calls `found` for every plan of the domain whose bound with those weights is below the cutoff, after
 * ghp_dual_reduced_cost_fixing.
 *
 * most   gives up after this number of plans
 * all    receives whether `found` was called for all
 *
 * Returns   GHP_OK; what `found` returns; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_dual_list(struct ghp_dual *dual, double cutoff, int most, bool *all);

/* Call these around planning in a thread of the caller. GLPK keeps memory for each thread that used it; the second
 * function frees that memory unless the thread had used GLPK before.
 *
 * The first one returns whether it had. Local. Tested tests/planner/api/test_api.c */
bool ghp_solver_begin(void);
void ghp_solver_end(bool used_before);

#endif
