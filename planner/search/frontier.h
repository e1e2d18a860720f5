/* planner/search/frontier.h - exact dynamic programming over the frontier of a DAG: least sum of node and edge costs.
 *
 * Layers are taken in their order; a state is one choice for every layer taken that still has consumers ahead.  A
 * chain's frontier is one layer, a residual block's two or three.  Forward and backward tables together give
 * *min-marginals*: for each choice (and pair) the least sum of any assignment that contains it, all in one sweep.
 *
 * Not for wide graphs: a table has the product of the frontier's choice counts as entries, and ghp_frontier_set
 * refuses beyond GHP_FRONTIER_MOST.
 *
 * Call order: open -> set (a domain) -> [fill node_cost, edge_cost -> solve or marginals] -> close.
 *
 * Tested  tests/planner/search/test_frontier.c */
#ifndef GHP_PLANNER_SEARCH_FRONTIER_H
#define GHP_PLANNER_SEARCH_FRONTIER_H

#include "planner/search/domain.h"

enum {
    GHP_FRONTIER_MOST = 1 << 22,
    GHP_FRONTIER_WIDTH = 24
}; /* entries of one table; layers in a frontier */

struct ghp_frontier_step {          /* taking one layer */
    int n_before;                   /* layers in the frontier before it */
    int before[GHP_FRONTIER_WIDTH]; /* which */
    /* their stride in the table after, 0: leaves the frontier */
    int kept_stride[GHP_FRONTIER_WIDTH];
    /* first in-edge of the layer from that one, -1: none; see next_edge */
    int edges_at[GHP_FRONTIER_WIDTH];
    bool stays; /* the layer itself is in the frontier after it (stride 1) */
    int n_states_before, n_states_after;
    int64_t table; /* where its tables start */
};

struct ghp_frontier {
    const struct ghp_instance *in; /* borrowed */
    int *n_active;                 /* a layer: choices in play */
    int *active;                   /* first_choice[v] + k: the choice that is k-th in play */
    int *next_edge;     /* an edge: next in-edge of the same layer from the same layer, -1: none */
    double *node_cost;  /* first_choice[v] + k; may be INFINITY */
    double *edge_cost;  /* first_pair[e] + a * n_active[to] + b; may be INFINITY */
    double *node_least; /* marginals, indexed as the costs */
    double *edge_least;
    struct ghp_frontier_step *steps;
    double *value; /* all tables after each step */
    int *origin;   /* for each of those states: state before * n_active + own choice that gave it */
    double *cost_to_go; /* after each of those states: least sum of the rest (marginals) */
    double *row;        /* one layer's choices */
    int64_t room;       /* entries allocated in each of these tables */
};

enum ghp_status ghp_frontier_open(const struct ghp_instance *instance,
                                  struct ghp_frontier *frontier);
void ghp_frontier_close(struct ghp_frontier *frontier);

/* Lists the choices in play and sizes the tables.
 *
 * fits   receives whether the tables are within GHP_FRONTIER_MOST; if not, nothing else may be called
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_frontier_set(struct ghp_frontier *frontier, const struct ghp_domain *domain,
                                 bool *fits);

/* Least sum over all assignments in play, INFINITY where none is possible.
 *
 * choice   receives the assignment (a layer's own numbering); may be NULL; untouched where none is possible */
double ghp_frontier_solve(struct ghp_frontier *frontier, int *choice);

/* Fills node_least and edge_least; returns the least sum. */
double ghp_frontier_marginals(struct ghp_frontier *frontier);

/* What ghp_frontier_list calls for each assignment. */
struct ghp_frontier_visitor {
    enum ghp_status (*visit)(void *context, const int *choice,
                             double *below); /* may lower *below */
    void *context;
};

/* Visits every assignment whose sum is less than `below`, after ghp_frontier_marginals with the same costs.
 *
 * most   gives up after so many visits
 * all    receives whether all were visited
 *
 * Returns   GHP_OK; what the visitor returns; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_frontier_list(struct ghp_frontier *frontier, double below, int most,
                                  const struct ghp_frontier_visitor *visitor, bool *all);

#endif
