/* executor/report/overlap.h - what hides each reduction of the communication stream, predicted and measured.
 *
 * A reduction is hidden while the compute stream works at the same time. It is exposed while an update of the next
 * step (or its loss) waits for it, and while it is handed to the thread that runs it. If several instructions wait
 * for one reduction, all their waiting counts for it. From the residuals alone, so nothing more is measured for it. */
#ifndef GHP_EXECUTOR_REPORT_OVERLAP_H
#define GHP_EXECUTOR_REPORT_OVERLAP_H

#include "core/program/program.h"
#include "executor/report/prediction_error.h"

struct ghp_comm_overlap { /* of one reduction, on this worker */
    int instr;
    struct ghp_error_term whole;   /* from its start to its end */
    struct ghp_error_term exposed; /* the compute stream stands still for it */
    /* instructions of the compute stream that ran, first and last, while it was under way (the step after this one
     * begins where this one ends); -1: none did */
    int behind_first, behind_last;
};

/* One entry for each reduction that sends, in list order; `hidings` has room for program->n_instrs.
 *
 * Returns   how many there are
 * Local
 * Tested    tests/executor/report/test_overlap.c */
int ghp_comm_overlap_list(const struct ghp_program *program,
                          const struct ghp_prediction_errors *prediction_errors,
                          struct ghp_comm_overlap *hidings);

#endif
