/* planner/schemes/schemes.h - what each synchroniser would do to a training, side by side, and what slow workers do.
 *
 * A scheme is a synchroniser with splits: the best that a search finds, or all by data. Each is lowered and simulated
 * as its plan would be; one that is not possible is a row too, with its reason. Synchronisers come from their table
 * (core/program/sync.h), so a new one appears without further code.
 *
 * Tested  tests/planner/schemes/test_schemes.c, tests/tools/plan/test_plan.sh */
#ifndef GHP_PLANNER_SCHEMES_SCHEMES_H
#define GHP_PLANNER_SCHEMES_SCHEMES_H

#include "planner/make/make.h"

#include <stdio.h>

enum { GHP_SCHEMES_MOST = 64 };

struct ghp_scheme {
    struct ghp_sync sync;
    enum ghp_strategy strategy; /* of the splits */
    bool chosen;                /* the plan that is made */
    char *reason;               /* why it is not possible; NULL: it is */
    struct ghp_prediction predicted;
    struct ghp_prediction slowed; /* with the stragglers; as predicted without any */
};

struct ghp_schemes {
    char *model; /* its name */
    const char *profile;
    struct ghp_problem problem;
    bool all; /* synchronisers */
    struct ghp_stragglers stragglers;
    int n;
    struct ghp_scheme of[GHP_SCHEMES_MOST];
};

struct ghp_schemes_job {
    /* that the plan was made for; its sync is not looked at */
    const struct ghp_plan_request *request;
    const struct ghp_plan *plan; /* the one chosen */
    /* every synchroniser; else the plan's own, by the strategies that it is compared with */
    bool all;
    struct ghp_stragglers stragglers; /* ranks of the request's workers */
};

/* Finds them. A search for one takes a part of the request's time limit.
 *
 * schemes   released by the caller
 *
 * Returns   GHP_OK; errors of the model, of costs and of memory */
enum ghp_status ghp_schemes_find(const struct ghp_schemes_job *job, struct ghp_schemes *schemes);
void ghp_schemes_release(struct ghp_schemes *schemes); /* accepts a zeroed one */

/* Print the schemes as a table, and as a JSON object (schemes_show.c).
 *
 * path      of the plan file that is written; NULL: none is
 * options   taken over (may be NULL): the tool's configuration
 *
 * Return   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_schemes_print(const struct ghp_schemes *schemes, const char *path, FILE *out);
enum ghp_status ghp_schemes_json(const struct ghp_schemes *schemes, json_t *options, FILE *out);

#endif
