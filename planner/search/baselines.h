/* planner/search/baselines.h - the plans that everybody compares with, and splits given by hand, as restrictions of a
 * domain.
 *
 *     data    every layer by data
 *     model   every conv2d and linear layer `out` or `in` at the largest TP size it can take; the others not by data
 *             if that is avoidable
 *     owt     convolutions by data, and what follows them up to the first linear layer; linear layers `out` or `in`
 *             at the largest TP size ("one weird trick"); the others are free
 *
 * What a restriction leaves open is then optimised like any plan.
 *
 * Tested  tests/planner/search/test_baselines.c */
#ifndef GHP_PLANNER_SEARCH_BASELINES_H
#define GHP_PLANNER_SEARCH_BASELINES_H

#include "core/plan/strategy.h"
#include "planner/search/domain.h"

/* Keeps what the strategy allows; AUTO keeps everything.
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE if a layer has nothing left, naming it and what would help */
enum ghp_status ghp_strategy_restrict(enum ghp_strategy strategy, struct ghp_domain *domain);

/* Fixes splits by hand: `PATTERN=SPLIT,PATTERN=SPLIT,...`; a pattern is a layer's name with * and ?; a split is data,
 * out:M, in:M, channel:M, full:M, rows:M, position:M, ring:M, or KIND:max for the largest TP size the layer can take.
 * Later entries win; a pattern with * or ? skips layers that cannot take its split, unless none can. Layers that no entry
 * names stay free.
 * The entry `random:SEED` draws a split for every conv2d and linear layer: plans to compare with, not to train by.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (syntax, no such layer, a split that the layer cannot take); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_force_restrict(const char *text, struct ghp_domain *domain);

#endif
