/* profiler/measure/autotuning.h - which of a backend's algorithms is the quickest for an operation: all are timed,
 * each by the least of a few samples.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_autotuning.c, tests/profiler/run/test_budget.c */
#ifndef GHP_PROFILER_MEASURE_AUTOTUNING_H
#define GHP_PROFILER_MEASURE_AUTOTUNING_H

#include "executor/opbench/opbench.h"
#include "profiler/measure/measure.h"
#include "profiler/worklist/trials.h"
#include "profiler/worklist/worklist.h"

struct ghp_autotuning {
    double deadline_s; /* on rank 0's ghp_now_s; one algorithm is tried in any case */
    /* what lost by far where it was tried is not tried again; NULL: every algorithm is tried */
    struct ghp_trials *trials;
};

/* An operation of the work list with the caches that training would leave it: a step of a small network stays in
 * them. */
struct ghp_opbench_task ghp_measure_op_task(const struct ghp_measure *m,
                                            const struct ghp_worklist_op *op);

/* Runs a bench; `context` is the bench. */
enum ghp_status ghp_autotuning_run(void *context, int64_t repeats);
struct ghp_task ghp_autotuning_task(const struct ghp_measure *m, struct ghp_opbench *bench);

/* The formats in which one of the operation's ways is run, and what is fused. */
struct ghp_kernel_spec ghp_autotuning_spec(const struct ghp_measure *m,
                                           const struct ghp_worklist_op *op,
                                           const struct ghp_worklist_variant *variant);

/* Updates least_s after samples were taken. */
void ghp_autotuning_note(struct ghp_worklist_variant *variant);

/* Has the bench run the quickest of the backend's algorithms in the formats of op->ways[which]. The first time tries
 * them all, as long as rank 0's time reaches, and notes its name there; further ways must come after the first two.
 *
 * Collective over m->world */
enum ghp_status ghp_autotuning_choose(const struct ghp_measure *m, struct ghp_opbench *bench,
                                      struct ghp_worklist_op *op, int which,
                                      struct ghp_autotuning options);

#endif
