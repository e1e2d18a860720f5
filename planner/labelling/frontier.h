/* planner/labelling/frontier.h - exact dynamic programming over the frontier of a DAG: least sum of node and edge
 * costs.
 *
 * The split search uses it for layers and their splits (planner/search/instance.h), memory formats for components and
 * two labels (labelling.h). Nodes are taken in their order; a state is one choice for every node taken that still has
 * readers ahead. A chain's frontier is one node, a residual block's two or three. If sums are equal, the assignment is
 * taken whose earliest nodes have the lowest choices. Forward and backward tables together give *min-marginals*: for
 * each choice (and pair) the least sum of any assignment that contains it, all in one sweep.
 *
 * If three or more branches lead from one node to another (queries, keys and values, from a norm to their attention;
 * the convolutions of an inception block), the nodes inside are *folded* first, one after the other. A fold has, for
 * each pair of choices of the nodes before and after it, the least cost between them. A branch is a chain, in which a
 * node may fork again to one that joins. The branches then cost their own tables, and not the product of all.
 *
 * Choices of a node that cost the same on all its edges are a *class* (a split with its parameters kept or sharded).
 * Tables are over classes, each as cheap as the cheapest of its choices in play. Results are given for choices.
 *
 * Not for wide graphs: a table has the product of the frontier's choice counts as entries, and ghp_frontier_set
 * refuses beyond GHP_FRONTIER_MOST.
 *
 * Call order: open -> set (the choices in play) -> [fill node_cost, edge_cost -> solve or marginals] -> close.
 *
 * Tested  tests/planner/labelling/test_frontier.c, tests/planner/labelling/test_labelling.c */
#ifndef GHP_PLANNER_LABELLING_FRONTIER_H
#define GHP_PLANNER_LABELLING_FRONTIER_H

#include "core/model/model.h"

/* entries of one table; nodes in a frontier */
enum { GHP_FRONTIER_MOST = 1 << 22, GHP_FRONTIER_WIDTH = 24 };

struct ghp_frontier_graph { /* borrowed */
    int n_nodes, n_edges;
    const struct ghp_edge *edges; /* from < to; their slots are not read */
    const int *n_choices;         /* a node */
    const int *first_choice;      /* n_nodes + 1: prefix sums of them */
    const int *class_of;   /* a choice, by first_choice[v] + k: its class, ascending from 0 */
                           /* in each node; NULL: each choice is a class of its own */
    const int *first_pair; /* n_edges + 1: prefix sums of classes[from] classes[to] */
    int most_states;       /* entries of one table; 0: GHP_FRONTIER_MOST */
    bool unfolded;         /* fold nothing: every node has a step of its own */
};

struct ghp_frontier_step {          /* taking one node */
    int n_before;                   /* nodes in the frontier before it */
    int before[GHP_FRONTIER_WIDTH]; /* which */
    /* their stride in the table after, 0: leaves the frontier */
    int kept_stride[GHP_FRONTIER_WIDTH];
    /* first in-edge of the node from that one, -1: none; see next_edge */
    int edges_at[GHP_FRONTIER_WIDTH];
    bool stays; /* the node itself is in the frontier after it (stride 1) */
    int n_states_before, n_states_after;
    int64_t table; /* where its tables start */
};

/* A node minimised away between two others: `in` -> node -> `out`. */
struct ghp_frontier_fold {
    int node, from, to; /* from: the one node before it; to: the one after it */
    int in, out; /* the first edge of each side, of a fold before it or the graph; next_edge */
    /* of its costs, n_classes[from] x n_classes[to]; it is edge n_edges + its number */
    int64_t table;
};

struct ghp_frontier {
    struct ghp_frontier_graph graph;
    int *n_active;  /* a node: choices in play */
    int *active;    /* first_choice[v] + k: the choice that is k-th in play */
    int *n_classes; /* a node: classes in play, those of which some choice is */
    int *classes;   /* first_choice[v] + c: the class that is c-th in play */
    int *place;     /* first_choice[v] + k: where the class of the k-th choice is in that list */
    int *cheapest;  /* first_choice[v] + c: the cheapest choice of a class, as a k */
    int *next_edge; /* an edge: the next between the same two nodes, -1: none */
    int n_folds, n_kept;
    struct ghp_frontier_fold *folds; /* each after those that its edges are */
    int *kept;                       /* the other nodes, in their order */
    int *last;                       /* a kept node: the last that reads it, -1: none */
    int *first_in, *in_edges; /* a node's edges from kept ones: first_in[v] .. first_in[v + 1] */
    double *fold_cost, *fold_least; /* their tables */
    int64_t fold_room;
    int *digit;         /* a node's class, counted among those in play */
    double *node_cost;  /* first_choice[v] + k; may be INFINITY */
    double *edge_cost;  /* first_pair[e] + a * n_classes[to] + b, of classes; may be INFINITY */
    double *node_least; /* marginals, indexed as the costs */
    double *edge_least;
    double *class_cost, *class_least; /* first_choice[v] + c */
    struct ghp_frontier_step *steps;  /* a kept node */
    double *value;                    /* all tables after each step */
    int *origin; /* for each of those states: state before * n_classes + own class that gave it */
    double *cost_to_go; /* after each of those states: least sum of the rest (marginals) */
    double *row;        /* one node's classes */
    int64_t room;       /* entries allocated in each of these tables */
};

enum ghp_status ghp_frontier_open(const struct ghp_frontier_graph *graph,
                                  struct ghp_frontier *frontier);
void ghp_frontier_close(struct ghp_frontier *frontier);

/* Lists the choices in play and sizes the tables.
 *
 * in_play   by first_choice[v] + choice, 1 or 0; NULL: all
 * fits      receives whether the tables are within most_states; if not, nothing else may be called
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_frontier_set(struct ghp_frontier *frontier, const unsigned char *in_play,
                                 bool *fits);

/* Least sum over all assignments in play, INFINITY if none is possible.
 *
 * choice   receives the assignment (a node's own numbering); may be NULL; untouched if none is possible */
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
 * most   gives up after this number of visits
 * all    receives whether all were visited
 *
 * Returns   GHP_OK; what the visitor returns; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_frontier_list(struct ghp_frontier *frontier, double below, int most,
                                  const struct ghp_frontier_visitor *visitor, bool *all);

#endif
