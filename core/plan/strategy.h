/* core/plan/strategy.h - how a plan was chosen: freely, as one of the classic ways to divide a network, or by hand.
 *
 * To add one that can be asked for: a row in GHP_STRATEGY_SEARCH_LIST, and what it allows in
 * planner/search/baselines.c.
 *
 * Tested  tests/core/plan/test_plan.c, tests/planner/search/test_baselines.c */
#ifndef GHP_CORE_PLAN_STRATEGY_H
#define GHP_CORE_PLAN_STRATEGY_H

/* id, name in files and options, name in tables. Those that a search can be asked for: any plan; every layer by data;
 * every conv2d and linear layer split; convolutions by data and linear layers split. */
#define GHP_STRATEGY_SEARCH_LIST(X)                                                                \
    X(AUTO, "auto", "ghp")                                                                         \
    X(DATA, "data", "data")                                                                        \
    X(MODEL, "model", "model")                                                                     \
    X(OWT, "owt", "OWT")

/* GIVEN: splits, stages or rules were asked for, so no strategy was searched. HEURISTIC: by rules of thumb; it is shown
 * among the baselines. */
#define GHP_STRATEGY_LIST(X)                                                                       \
    GHP_STRATEGY_SEARCH_LIST(X)                                                                    \
    X(GIVEN, "given", "given")                                                                     \
    X(HEURISTIC, "heuristic", "heuristic")

enum ghp_strategy {
#define GHP_STRATEGY_ENUM(id, text, shown) GHP_STRATEGY_##id,
    GHP_STRATEGY_LIST(GHP_STRATEGY_ENUM)
#undef GHP_STRATEGY_ENUM
        GHP_STRATEGY_COUNT
};

const char *ghp_strategy_name(enum ghp_strategy strategy); /* in files: "owt" */
const char *ghp_strategy_show(enum ghp_strategy strategy); /* in tables: "OWT" */

#endif
