/* profiler/worklist/trials.h - what a backend's algorithms took where they were tried, so that those which lost by far
 * are not tried again for an operation that is much alike.
 *
 * Alike are operations that differ in samples, channels and sizes only, each by MOST_TIMES at most; the nearest one
 * counts. Only if what to measure was named (run/missing.c): elsewhere every algorithm is tried for every operation,
 * which is the reference.
 *
 * Private to profiler/.  Tested  tests/profiler/worklist/test_trials.c, tests/profiler/run/test_budget.c */
#ifndef GHP_PROFILER_WORKLIST_TRIALS_H
#define GHP_PROFILER_WORKLIST_TRIALS_H

#include "profiler/worklist/worklist.h"

struct ghp_trial;

struct ghp_trials { /* zeroed: none yet */
    int n, max;
    struct ghp_trial *of; /* owned */
};

/* Notes the seconds of an algorithm, and those of the quickest one, in the formats of op->variants[which].
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_trials_add(struct ghp_trials *trials, const struct ghp_worklist_op *op,
                               int which, const char *algorithm, const double seconds_best_s[2]);

/* Puts the algorithm that won where it is most alike in front, and drops those that lost by far there: by a quarter,
 * and a quarter more for each doubling between the two operations. One at least stays. */
void ghp_trials_narrow(const struct ghp_trials *trials, const struct ghp_worklist_op *op, int which,
                       struct ghp_algorithms *list);

/* The least that an algorithm can take in plain formats, [s]: what it took for the same operation in blocked ones,
 * without a reorder of its own; 0: not known. */
double ghp_trials_least_s(const struct ghp_trials *trials, const struct ghp_worklist_op *op,
                          int which, const char *algorithm);

void ghp_trials_release(struct ghp_trials *trials); /* accepts a zeroed one */

#endif
