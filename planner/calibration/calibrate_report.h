/* planner/calibration/calibrate_report.h - ghp-plan --calibrate: files in, tables out, and whether the corrected profile is written.
 *
 * Tested  tests/tools/test_calibrate.sh */
#ifndef GHP_PLANNER_CALIBRATION_CALIBRATE_REPORT_H
#define GHP_PLANNER_CALIBRATION_CALIBRATE_REPORT_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct ghp_calibrate_wishes {
    const char *model_path, *profile_path;
    const char *const *run_paths;
    int n_runs;
    const char *output; /* NULL: only the tables */
    int64_t workers;    /* that the runs must be of; 0: any */
    int64_t batch;      /* likewise */
    bool force;         /* write it even where it does not help */
    bool json;
};

/* Calibrates, prints each run before, after and held out, and each correction, and writes the corrected profile.
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE (calibration cannot help: printed, but not written); GHP_ERR_USAGE (no runs); errors of
 *           files, runs and profile */
enum ghp_status ghp_calibrate_files(const struct ghp_calibrate_wishes *wishes);

#endif
