/* planner/labelling/frontier_private.h - private to frontier*.c: edges of a graph and of its folds alike.
 *
 * A fold (frontier.h) is an edge of its own, numbered after the graph's edges, with a table of its own. Call order:
 * a graph's folds are found once; with every set of costs they are costed, the tables of the kept nodes filled, and
 * what these say is carried over to the folded ones. */
#ifndef GHP_PLANNER_LABELLING_FRONTIER_PRIVATE_H
#define GHP_PLANNER_LABELLING_FRONTIER_PRIVATE_H

#include "planner/labelling/frontier.h"

static inline struct ghp_edge ghp_frontier_edge(const struct ghp_frontier *f, int e)
{
    int fold = e - f->graph.n_edges;

    if (fold < 0) return f->graph.edges[e];
    return (struct ghp_edge){.from = f->folds[fold].from, .to = f->folds[fold].to};
}

/* Costs of an edge's pairs: index a * n_classes[to] + b. */
static inline double *ghp_frontier_cost(const struct ghp_frontier *f, int e)
{
    int fold = e - f->graph.n_edges;

    return fold < 0 ? &f->edge_cost[f->graph.first_pair[e]] : &f->fold_cost[f->folds[fold].table];
}

static inline double *ghp_frontier_least(const struct ghp_frontier *f, int e)
{
    int fold = e - f->graph.n_edges;

    return fold < 0 ? &f->edge_least[f->graph.first_pair[e]] : &f->fold_least[f->folds[fold].table];
}

/* The choice that a node's class, `digit`, is as cheap as, in the node's own numbering. */
static inline int ghp_frontier_cheapest(const struct ghp_frontier *f, int v)
{
    const int first = f->graph.first_choice[v];

    return f->active[first + f->cheapest[first + f->digit[v]]];
}

/* Sum of the edges before a fold's node with its class j. */
static inline double ghp_frontier_before(const struct ghp_frontier *f,
                                         const struct ghp_frontier_fold *fold, int a, int j)
{
    double sum = ghp_frontier_cost(f, fold->in)[a * f->n_classes[fold->node] + j];

    for (int e = f->next_edge[fold->in]; e >= 0; e = f->next_edge[e])
        sum += ghp_frontier_cost(f, e)[a * f->n_classes[fold->node] + j];
    return sum;
}

/* Sum of what is between the ends of a fold with the node's class j. */
static inline double ghp_frontier_through(const struct ghp_frontier *f,
                                          const struct ghp_frontier_fold *fold, int a, int j, int b)
{
    double sum =
        ghp_frontier_before(f, fold, a, j) + f->class_cost[f->graph.first_choice[fold->node] + j];

    for (int e = fold->out; e >= 0; e = f->next_edge[e])
        sum += ghp_frontier_cost(f, e)[j * f->n_classes[fold->to] + b];
    return sum;
}

/* Finds the folds, and lists what is left. Returns GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_frontier_find_folds(struct ghp_frontier *f);

/* For each fold and each pair of classes at its ends, the least of what is between. */
void ghp_frontier_cost_folds(struct ghp_frontier *f);

/* The folded nodes' choices, the kept ones' given as `digit`. */
void ghp_frontier_unfold(struct ghp_frontier *f, int *choice);

/* Marginals of the folded nodes and their edges, from those of the pairs at the folds' ends. */
void ghp_frontier_unfold_marginals(struct ghp_frontier *f);

#endif
