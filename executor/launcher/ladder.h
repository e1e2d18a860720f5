/* executor/launcher/ladder.h - the plans that one training may be by, from the most workers to the fewest.
 *
 * Tested  tests/tools/launch/test_launch.sh */
#ifndef GHP_EXECUTOR_LAUNCHER_LADDER_H
#define GHP_EXECUTOR_LAUNCHER_LADDER_H

#include "core/plan/plan_set.h"

struct ghp_ladder {
    int n;
    const char *files[GHP_PLAN_SET_MOST]; /* of each plan; borrowed */
    int workers[GHP_PLAN_SET_MOST];
    double step_s[GHP_PLAN_SET_MOST]; /* predicted */
};

/* Reads files of a plan or of several, which are of one model and batch, each for fewer workers than the one before.
 *
 * Returns   GHP_OK; as ghp_plan_set_load; GHP_ERR_INPUT: plans that are not alike, or in another order
 * Local */
enum ghp_status ghp_ladder_load(const char *const *files, int n, struct ghp_ladder *ladder);

#endif
