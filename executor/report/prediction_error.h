/* executor/report/prediction_error.h - predicted next to measured times: the join of the simulation's and the step
 * timer's tables.
 *
 * Both know the same instructions, so the join is by index. Seconds of one steady step on this worker; what the
 * compute stream does, summed by phase and by layer. Whatever lies between instructions is its own term, so that
 * measured terms sum to the measured step too. */
#ifndef GHP_EXECUTOR_REPORT_PREDICTION_ERROR_H
#define GHP_EXECUTOR_REPORT_PREDICTION_ERROR_H

#include "core/cost/simulate.h"
#include "executor/platform/step_timer.h"

struct ghp_error_term {
    double predicted_s, measured_s;
};

struct ghp_prediction_error { /* of one instruction */
    double predicted_start_s, predicted_s;
    double measured_start_s, measured_s; /* start in the last step, mean duration */
    double measured_wait_s; /* the compute stream stood still for it: ghp_step_timer_wait */
    double measured_own_s,
        measured_straggler_wait_s; /* over all workers: executor/report/straggler_wait.h; else 0 */
};

struct ghp_prediction_errors {
    bool predicted; /* a profile gave predictions */
    struct ghp_error_term step;
    struct ghp_error_term phases[GHP_PHASE_COUNT];
    struct ghp_error_term between; /* outside any instruction */
    int n_layers;
    struct ghp_error_term *layers; /* waiting included; owned */
    int n_instrs;
    struct ghp_prediction_error *instrs; /* owned */
};

/* programs: one a stage, as the plan's profile lowers them; the worker's own program is of the stage `stage`.
 * profile: of the plan; NULL: measured only.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (the profile has no price for an instruction)
 * Local
 * Tested    tests/executor/report/test_prediction_error.c */
struct ghp_prospect {
    const struct ghp_program *program;   /* this worker's */
    const struct ghp_programs *programs; /* NULL: it stands for all */
    int stage;
    const struct ghp_profile *profile;
    int n_layers;
};
enum ghp_status ghp_prediction_errors_init(const struct ghp_prospect *prospect,
                                           const struct ghp_step_timer *timer,
                                           struct ghp_prediction_errors *prediction_errors);
void ghp_prediction_errors_release(
    struct ghp_prediction_errors *prediction_errors); /* accepts a zeroed one */

/* (predicted - measured) / measured; 0 if nothing was measured. */
double ghp_term_error(struct ghp_error_term term);

#endif
