/* planner/search/branch_private.h - private to planner/search/branch*.c: how a node is split.
 *
 * Tested  tests/planner/search/test_branch.c */
#ifndef GHP_PLANNER_SEARCH_BRANCH_PRIVATE_H
#define GHP_PLANNER_SEARCH_BRANCH_PRIVATE_H

#include "planner/search/branch.h"

/* The layer to split after the last bound and reduced-cost fixing of a domain: one that the mean plan divides; if it
 * divides none, the one whose second choice is dearest.
 *
 * choice   receives the choice to fix, or to leave out
 *
 * Returns   the layer; -1: every layer has one choice */
int ghp_branch_pick(const struct ghp_dual *dual, const struct ghp_domain *domain, int *choice);

#endif
