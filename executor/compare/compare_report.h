/* executor/compare/compare_report.h - what a comparison says at its end: a table for people, the object
 * "ghp.comparison/2" for programs. */
#ifndef GHP_EXECUTOR_COMPARE_COMPARE_REPORT_H
#define GHP_EXECUTOR_COMPARE_COMPARE_REPORT_H

#include "core/base/json.h"
#include "executor/compare/compare.h"

#include <stdio.h>

/* A row a plan: predicted, measured, spread, error, ratio to the first plan with its interval; then who won, and
 * whether other programs disturbed it. A prediction is shown only if its profile is of this backend, precision and
 * numerics. */
enum ghp_status ghp_compare_report(const struct ghp_comparison *ab, const struct ghp_setup *setup,
                                   FILE *out);

/* The object of --json; the caller releases it with json_decref. NULL without memory.
 *
 * training   the run that followed, taken over; NULL: none did */
json_t *ghp_compare_json(const struct ghp_comparison *ab, const struct ghp_setup *setup,
                         json_t *training);

#endif
