/* executor/report/straggler_wait.h - what instructions take by themselves, apart from waiting for stragglers that are
 * late.
 *
 * A blocking exchange lasts on each worker from its own arrival. So a worker that comes early counts the others'
 * lateness as its own time. The last to arrive waits for nobody, so in each step the least duration over the exchange's
 * ranks is what the exchange itself takes; what a worker spends beyond that is waiting. A link is not to blame for a
 * straggler.
 *
 *     exchange, reduction: own = mean over steps of the least over the ranks of a group; the median over the groups
 *                          waiting = mean over steps of (duration - that least); the median over the workers
 *     anything else:       own = mean over steps; the median over the workers; waiting = 0
 *
 * Medians, so that one slow worker is seen as its partners' waiting, not as a slower operation. The steps are those of
 * middling length on worker 0 (executor/platform/step_timer.h).
 *
 * Tested  tests/executor/report/test_straggler_wait.c */
#ifndef GHP_EXECUTOR_REPORT_STRAGGLER_WAIT_H
#define GHP_EXECUTOR_REPORT_STRAGGLER_WAIT_H

#include "executor/report/prediction_error.h"
#include "executor/transport/transport.h"

struct ghp_straggler_wait_request { /* all workers */
    struct ghp_control *control;
    struct ghp_comm *comm;
    int n;
};

struct ghp_straggler_wait {
    double own_s, straggler_wait_s;
};

/* One instruction, by every worker's durations.
 *
 * run_s    [worker r * GHP_STEP_TIMER_STEPS + place]
 * kept     the places that count, [GHP_STEP_TIMER_STEPS]
 * instr    of any worker: its ranks' count and stride are everybody's
 * n        workers
 * own      receives the result, 0 if no place counts
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_straggler_wait_of(const double *run_s, const bool *kept,
                                      const struct ghp_instr *instr, int n,
                                      struct ghp_straggler_wait *own);

/* Sets measured_own_s and measured_straggler_wait_s of every instruction; right on worker 0, whose steps count.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_COMM
 * Collective over those ranks */
enum ghp_status ghp_straggler_wait_compare(const struct ghp_straggler_wait_request *request,
                                           const struct ghp_program *program,
                                           const struct ghp_step_timer *timer,
                                           struct ghp_prediction_errors *prediction_errors);

#endif
