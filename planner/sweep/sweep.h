/* planner/sweep/sweep.h - the same question for one worker count after the other: how a network scales.
 *
 * For each count the whole plan is made (planner/make/make.h) with its baselines; a count that cannot be planned
 * is a point too, with its reason. Speed-ups are images a second over those of one worker, alone with the whole
 * batch (strong scaling) or with its own part (weak); its memory is not limited.
 *
 * Tested  tests/planner/sweep/test_sweep.c, tests/tools/plan/test_sweep.sh */
#ifndef GHP_PLANNER_SWEEP_SWEEP_H
#define GHP_PLANNER_SWEEP_SWEEP_H

#include "core/plan/range.h"
#include "planner/make/make.h"

#include <stdio.h>

enum { GHP_SWEEP_POINTS_MAX = 64, GHP_SWEEP_PLANS = 4 };

struct ghp_sweep_range {
    int n;
    int workers[GHP_SWEEP_POINTS_MAX]; /* ascending */
};

/* Reads `workers=1,2,4,...,4096`: numbers in ascending order; "..." continues the three numbers before it, by their
 * ratio or by their difference, up to the number after it.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE */
enum ghp_status ghp_sweep_parse(const char *text, struct ghp_sweep_range *range);

struct ghp_sweep_plan {
    bool feasible;
    char *reason; /* why not */
    struct ghp_prediction predicted;
    struct ghp_step_range range;              /* that holds a measured step with 90 % */
    double images_per_s, speedup, efficiency; /* efficiency: speedup / workers */
};

struct ghp_sweep_point {
    int workers, nodes; /* nodes 0: not known, the point failed before */
    int64_t batch;
    struct ghp_sweep_plan plan[GHP_SWEEP_PLANS]; /* ghp, data, model, owt */
    int groups, group_size;
    char *splits;         /* which layers are split, short */
    enum ghp_proof proof; /* the certificate's status */
    enum ghp_trial trial;
    double gap, seconds;
};

struct ghp_sweep {
    char *model, *profile;       /* names for the heading */
    bool weak, by_rule_of_thumb; /* nothing was measured: core/cost/profile_peak.h */
    int64_t batch;               /* global, or of one worker if weak */
    double one_images_per_s;
    int64_t tokens; /* of a sample that is a sequence; 0: of an image */
    char *what_if;  /* the overrides, or NULL */
    int n;
    struct ghp_sweep_point *point;
};

struct ghp_sweep_job {
    /* problem, profile and what_if are set for each point */
    const struct ghp_plan_request *request;
    const struct ghp_sweep_range *range;
    int64_t batch;
    bool weak;
    /* Loads the profile for the request' worker count and overrides it; may set request' what_if (to overrides) and
     * memory_bytes. profile and overrides are zeroed before and released by the sweep. */
    enum ghp_status (*open)(struct ghp_plan_request *request, struct ghp_profile *profile,
                            struct ghp_overrides *overrides);
};

/* GHP_STRATEGY_AUTO, DATA, MODEL, OWT. */
enum ghp_strategy ghp_sweep_strategy(int plan);

/* Runs the sweep.
 *
 * Returns   GHP_OK (infeasible points are part of the answer); GHP_ERR_INFEASIBLE (no point is feasible); errors of
 *           model, profile and lowering other than batches that do not divide, missing costs and memory */
enum ghp_status ghp_sweep_run(const struct ghp_sweep_job *job, struct ghp_sweep *sweep);
void ghp_sweep_release(struct ghp_sweep *sweep);

/* planner/sweep/sweep_show.c */
enum ghp_status ghp_sweep_print(const struct ghp_sweep *sweep, FILE *out);
/* options   taken over (may be NULL) */
enum ghp_status ghp_sweep_json(const struct ghp_sweep *sweep, json_t *options, FILE *out);

#endif
