/* profiler/worklist/time_estimate.h - how long it takes to measure an operation, told from those that were measured
 * before it: with its tensors, the trials of its algorithms and its samples.
 *
 * A run's seconds are told from the operation's FLOPs, or its bytes if it has none. A visit's are those of its
 * samples, each a run or as long as a sample should last, times what such visits took more than that so far. Rank 0's
 * alone.
 *
 * Private to profiler/.  Tested  tests/profiler/run/test_budget.c */
#ifndef GHP_PROFILER_WORKLIST_TIME_ESTIMATE_H
#define GHP_PROFILER_WORKLIST_TIME_ESTIMATE_H

#include "profiler/worklist/worklist.h"

/* How long a trial's samples last compared with those that are entered: they only have to tell which is quickest. */
#define GHP_AUTOTUNING_FRACTION 0.25

/* First visits try algorithms, if there is a choice. Later ones try those of the pairs of formats that are left. */
enum ghp_visit {
    GHP_VISIT_AUTOTUNING,
    GHP_VISIT_FIRST,
    GHP_VISIT_MEMORY_FORMATS,
    GHP_VISIT_AGAIN,
    GHP_VISIT_COUNT
};

/* Zeroed: nothing was measured yet. */
struct ghp_time_estimate {
    double flops, flop_s, bytes, byte_s; /* of single runs */
    struct {
        double wall_s, samples_s;
    } visits[GHP_VISIT_COUNT];
    double scratch_s; /* spent on asking for operations' scratch */
    int scratches;    /* operations that were asked */
    /* the longest visit, for reports of where the time went */
    double longest_s;
    char longest[GHP_KEY_BYTES + 32];
};

/* What to expect of a visit: how many samples of which length are wanted, and whether algorithms can be tried. */
struct ghp_visit_plan {
    int samples;
    double sample_s;
    bool chooses;
};

/* In how many of its pairs of formats the next visit measures an operation. Those that most plans depend on are
 * measured in all pairs from the first visit on. The others are measured in one at first, so that a short budget
 * reaches every operation. */
int ghp_time_estimate_variants(const struct ghp_worklist_op *op);

/* The kind of the next visit. */
enum ghp_visit ghp_time_estimate_kind(const struct ghp_worklist_op *op, bool chooses);

/* Seconds of the next visit. */
double ghp_time_estimate_s(const struct ghp_time_estimate *f, const struct ghp_worklist_op *op,
                           struct ghp_visit_plan visit_plan);

/* What a visit of that kind took; its samples are the operation's. */
void ghp_time_estimate_note(struct ghp_time_estimate *f, const struct ghp_worklist_op *op,
                            enum ghp_visit kind, struct ghp_visit_plan visit_plan, double wall_s);

/* Seconds to ask for the scratch of n more operations. */
double ghp_time_estimate_scratch_s(const struct ghp_time_estimate *f, int n);

#endif
