/* executor/report/run_result.h - what training by one plan came to: everything that a report, a run file or --json
 * says.
 *
 * Joins predictions and measurements, gathers what only all workers know (memory, replicas, the weights' fingerprint),
 * and leaves a filled-in struct ghp_run. It prints nothing. */
#ifndef GHP_EXECUTOR_REPORT_RUN_RESULT_H
#define GHP_EXECUTOR_REPORT_RUN_RESULT_H

#include "executor/report/report.h"
#include "executor/train/setup.h"
#include "executor/train/train.h"

struct ghp_run_result {
    struct ghp_run run;                             /* borrows from entrant, training and below */
    struct ghp_prediction_errors prediction_errors; /* owned */
    char emulation[GHP_EMULATION_TEXT_BYTES];
    const char *different; /* tensor whose replicas differ, NULL: none; the model's */
};

/* Fills the result of an entrant whose worker is flushed.
 *
 * training   losses and seconds; its memory may be NULL: resident memory is then not known
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (the plan's profile lacks a price)
 * Collective over all workers */
enum ghp_status ghp_run_result_init(struct ghp_setup *setup,
                                    const struct ghp_session_plan *session_plan,
                                    const struct ghp_training *training,
                                    struct ghp_run_result *run_result);
void ghp_run_result_release(struct ghp_run_result *run_result); /* accepts a zeroed one */

#endif
