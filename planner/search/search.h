/* planner/search/search.h - finds the fastest plan of a domain that fits the memory, and what is proven about it.
 *
 * Evaluates the objective: a plan's program is lowered, placed and simulated. Branch and bound closes the search where
 * the model's frontier is narrow enough for tables (all networks of models/); else GLPK's branch and cut does
 * (planner/search/milp.h), with no-good constraints until its bound reaches the best simulated plan.
 * Memory: first without the limit; only if that plan does not fit, the least memory of any plan, and then the search
 * with the limit.
 *
 * Tested  tests/planner/search/test_exact.c */
#ifndef GHP_PLANNER_SEARCH_SEARCH_H
#define GHP_PLANNER_SEARCH_SEARCH_H

#include "planner/search/branch.h"

enum { GHP_SEARCH_KEPT = 8 };

/* id, name of the option. AUTO: branch and bound if the graph is narrow enough, else MILP; HEURISTIC: the plan is
 * one by rules (planner/pipeline/heuristic.h), and further searches are as with AUTO. */
#define GHP_SOLVER_LIST(X)                                                                         \
    X(AUTO, "auto")                                                                                \
    X(BRANCH, "branch")                                                                            \
    X(MILP, "milp")                                                                                \
    X(HEURISTIC, "heuristic")

enum ghp_solver {
#define GHP_SOLVER_ENUM(id, text) GHP_SOLVER_##id,
    GHP_SOLVER_LIST(GHP_SOLVER_ENUM)
#undef GHP_SOLVER_ENUM
        GHP_SOLVER_COUNT
};

struct ghp_search_job {
    struct ghp_instance *instance; /* memory spans are added when they are needed */
    const struct ghp_domain *domain;
    int64_t limit_bytes; /* on the placed arena; 0: none */
    double deadline_s;   /* on ghp_now_s's clock */
    double gap;          /* relative; a plan this near to the bound will do; 0: the best */
    const int *start;    /* n_start plans, n_layers choices each; may be NULL */
    int n_start;
    double cutoff_s; /* only plans faster than this count; 0: all */
    enum ghp_solver solver;
    bool canonical; /* break ties: largest G (if gap is 0), then fewest split layers */
};

struct ghp_search_plan {
    int *choice; /* owned */
    double step_s;
    int64_t peak_bytes; /* without a limit the winner's alone; else 0 */
};

struct ghp_search_result {
    bool feasible;
    int n_kept; /* best plans met, the winner first */
    struct ghp_search_plan kept[GHP_SEARCH_KEPT];
    double bound_s; /* no plan is faster; the winner's step where `proven` and no gap was allowed */
    bool proven;
    int64_t least_bytes; /* infeasible (proven where `proven`): the least arena found */
    bool least_proven;   /* no plan needs less */
    int64_t plans, nodes;
    double seconds;
};

/* Returns   GHP_OK (infeasible is GHP_OK too: see feasible); GHP_ERR_INTERNAL; GHP_ERR_NO_MEMORY; GHP_ERR_MISSING */
enum ghp_status ghp_search_run(const struct ghp_search_job *job, struct ghp_search_result *result);
void ghp_search_release(struct ghp_search_result *result);

/* The objective about one plan, by a bucket size.
 *
 * step_s, peak_bytes   may be NULL; as ghp_plan_predict_step has them */
enum ghp_status ghp_search_evaluate(const struct ghp_instance *instance, const int *choice,
                                    int64_t bucket_bytes, double *step_s, int64_t *peak_bytes);

#endif
