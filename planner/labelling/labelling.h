/* planner/labelling/labelling.h - the cheapest of all ways to give things one of two labels, where costs are of single
 * things and of pairs.
 *
 *     cost(label) = sum over things own[v][label v]  +  sum over pairs cost[label a][label b]
 *
 * Exact for any costs (a minimum cut would want pairs that differ never to be cheaper than pairs that agree, and
 * measured seconds keep to no such rule): by planner/labelling/frontier.h, with two choices a thing. */
#ifndef GHP_PLANNER_LABELLING_LABELLING_H
#define GHP_PLANNER_LABELLING_LABELLING_H

#include "core/base/status.h"

#include <stdbool.h>

enum { GHP_LABELLING_FRONTIER = 16 };

struct ghp_label_pair { /* a may be b */
    int a, b;
    double cost[2][2]; /* [label of a][label of b]; INFINITY: not allowed */
};

struct ghp_labelling {
    int n;
    double (*own)[2]; /* n */
    int n_pairs;
    struct ghp_label_pair *pairs; /* n_pairs, in any order */
};

/* Labels all things at the least cost; of equals, the label 0 for the earliest thing that may have it.
 *
 * label    n, written
 * cost     written; INFINITY if nothing is allowed
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE if a frontier would grow beyond GHP_LABELLING_FRONTIER; GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/planner/labelling/test_labelling.c, against all labellings of small graphs */
enum ghp_status ghp_labelling_solve(const struct ghp_labelling *graph, bool *label, double *cost);

#endif
