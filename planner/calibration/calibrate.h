/* planner/calibration/calibrate.h - a profile corrected by what runs measured, where that predicts other runs better.
 *
 * Estimates corrections (planner/calibration/correction.h), applies them to the profile's entries, rates, slowdowns and laws, and
 * prices the runs again.  Whether they help is decided on runs that they were not made from: each plan's runs are
 * predicted by corrections from all the other plans' runs (from all other runs, where all are of one plan).
 * Not a second profile format: the result is a profile whose corrected entries say `calibrated`, with
 * core/cost/calibration.h as its provenance.
 *
 * Tested  tests/planner/test_calibrate.c, tests/tools/test_calibrate.sh */
#ifndef GHP_PLANNER_CALIBRATION_CALIBRATE_H
#define GHP_PLANNER_CALIBRATION_CALIBRATE_H

#include "planner/calibration/correction.h"

/* A calibration helps that leaves at most this part of the mean error, on runs held out: less is not told from chance
 * by the few runs there are. Of worlds where errors are nothing but chance, five runs each, 6 % seem to gain as much; 18 % seem
 * to gain a tenth (tests/planner/test_calibrate.c). */
#define GHP_CALIBRATION_HELPS 0.8

struct ghp_calibrated_run {
    const struct ghp_record *record;
    double before_s, after_s; /* predicted step */
    double held_out_s;        /* by the other runs alone; NAN where there are none */
};

struct ghp_calibrate_result {
    int n_runs;
    struct ghp_calibrated_run *runs; /* owned */
    int n_corrections;
    struct ghp_correction *corrections; /* owned */
    struct ghp_calibration_error before, after, held_out;
    bool validated; /* there was something to hold out */
    bool helps;
};

/* Corrects the profile in place.
 *
 * model      that the runs trained
 * records    n >= 1 runs
 * profile    sealed; on success corrected, with its calibration, and sealed again; on failure unusable
 * result     released by the caller
 *
 * Returns   GHP_OK, whether it helps or not; GHP_ERR_INPUT (a run does not fit, the profile is calibrated already);
 *           GHP_ERR_MISSING; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_calibrate(const struct ghp_model *model, const struct ghp_record *records,
                              int n, struct ghp_profile *profile,
                              struct ghp_calibrate_result *result);
void ghp_calibrate_release(struct ghp_calibrate_result *result); /* accepts a zeroed one */

#endif
