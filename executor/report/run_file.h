/* executor/report/run_file.h - a run as JSON: the object that --json prints, and the file "ghp.run/2" that --run
 * writes.
 *
 * The file is the object plus phases, layers and instructions, each with predicted and measured times. */
#ifndef GHP_EXECUTOR_REPORT_RUN_FILE_H
#define GHP_EXECUTOR_REPORT_RUN_FILE_H

#include "core/base/json.h"
#include "core/base/opts.h"
#include "executor/report/report.h"

/* The object of --json; the caller releases it with json_decref. NULL without memory.
 *
 * tool   its options go in as "options" */
json_t *ghp_run_summary(const struct ghp_run *run, const struct ghp_tool *tool);

/* Writes the run file.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_run_save(const char *path, const struct ghp_run *run,
                             const struct ghp_tool *tool);

#endif
