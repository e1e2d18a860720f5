/* profiler/measure/ops.h - seconds and scratch of every local operation, by the executor's own kernels.
 *
 * All ranks run the same operation at once, as they do in training. What the budget or the memory does not reach is
 * left to profiler/measure/fill.h.
 *
 * Private to profiler/.  Tested  tests/profiler/run/test_run.c, test_budget.c */
#ifndef GHP_PROFILER_MEASURE_OPS_H
#define GHP_PROFILER_MEASURE_OPS_H

#include "executor/opbench/opbench.h"
#include "profiler/worklist/worklist.h"
#include "profiler/worklist/time_estimate.h"
#include "profiler/measure/measure.h"

/* Whether workers of this backend leave it to the convolution before it (core/program/fuse.h): entered once, as no
 * time. */
bool ghp_measure_is_fused(const struct ghp_measure *m, const struct ghp_worklist_op *op);

/* Bounds of one round, and what to do now and then. */
struct ghp_ops_limits {
    int samples;          /* of each operation, >= 1 */
    double calm;          /* what spreads less is not visited again; 0: everything is */
    bool alone;           /* one worker's seconds are measured, too, while others do other work */
    double deadline_s;    /* on rank 0's ghp_now_s */
    int64_t memory_bytes; /* for the buffers of one rank */
    /* of all rounds so far: what does not fit before the deadline is left out */
    struct ghp_time_estimate *estimate;
    struct ghp_trials *trials;              /* measure/autotuning.h; NULL: none */
    enum ghp_status (*save)(void *context); /* on rank 0, every GHP_SAVE_S seconds */
    void *context;
};

enum { GHP_SAVE_S = 10 };

/* What came of it. */
struct ghp_ops_count {
    int measured, kept, interpolated, analytic;
};

/* One round: takes samples, in the work list's order, of every operation that is not kept, and enters in rank 0's
 * profile what all rounds so far say.
 *
 * work list   ops[].samples grow; equal on all ranks
 *
 * Collective over m->world */
enum ghp_status ghp_measure_ops(const struct ghp_measure *m, struct ghp_worklist *worklist,
                                const struct ghp_ops_limits *limits, struct ghp_profile *profile);

#endif
