/* bench/runs/report.h - published runs compared with ghp's predictions, family by family.
 *
 * A *family* are the rows of one source, system, network and kind of split. Its smallest row (fewest devices, then the
 * smallest batch, then the first) gives the rate. All others are predicted. */
#ifndef GHP_BENCH_RUNS_REPORT_H
#define GHP_BENCH_RUNS_REPORT_H

#include "core/base/status.h"

/* Prints each row, each family, and a last line `rows N said M mean X % worst Y % rank Z`.
 *
 * models   folder of networks
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_FORMAT (the file); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_runs_report(const char *path, const char *models);

#endif
