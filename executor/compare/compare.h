/* executor/compare/compare.h - several plans timed side by side, in turns, so that the machine's moods meet all of
 * them alike.
 *
 * Every plan has a worker and an arena of its own, all open at once. A round gives each plan one turn: some steps to
 * warm up, then `steps` timed ones (fewer of a plan whose turn would last longer than is allowed); the round's value
 * is the time from the first timed step's start to the last one's end, by their number, meant over all workers. Turns
 * follow the order of executor/compare/candidates.h. Training continues from turn to turn within each plan, from the
 * same first weights, on the same samples.
 *
 * Call order: ghp_compare_run -> report (executor/compare/compare_report.h) -> ghp_compare_release. */
#ifndef GHP_EXECUTOR_COMPARE_COMPARE_H
#define GHP_EXECUTOR_COMPARE_COMPARE_H

#include "executor/compare/candidates.h"
#include "executor/compare/host_load.h"
#include "executor/train/setup.h"

struct ghp_comparison {
    int64_t steps, warmup_steps;        /* of a turn, at most */
    int64_t *turn_steps;                /* [plans] timed steps of each plan's turns; owned */
    struct ghp_contest candidates;      /* contestant i is the setup's entrant i */
    double *seconds;                    /* [rounds][plans] of a step; owned, as the rest */
    int *order;                         /* [rounds][plans]: who was first, second, ... */
    struct ghp_cpu_use *use;            /* [rounds], of other programs */
    struct ghp_speed_probe speed_probe; /* of the machine: jobs' medians over the rounds */
    struct ghp_cpu_use all_use;         /* of all rounds */
};

/* Steps that each plan trains in a comparison. Local. */
int64_t ghp_compare_steps(const struct ghp_session_options *options);

/* Opens every plan's worker, runs the rounds, judges, saves each plan's run if a folder for them was given, and
 * closes the workers.
 *
 * ab   to be released, after a failure too
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY (all arenas at once are more than this machine has); GHP_ERR_INPUT (a training
 *           diverged). If the session is in its loop then, the caller must abort
 * Collective over all workers
 * Tested    tests/tools/run/test_compare.sh */
enum ghp_status ghp_compare_run(struct ghp_setup *setup, struct ghp_comparison *ab);
void ghp_compare_release(struct ghp_comparison *ab); /* accepts a zeroed one */

#endif
