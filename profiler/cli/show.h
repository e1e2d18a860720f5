/* profiler/cli/show.h - what ghp-profile did, on stdout: a table, or one JSON object.
 *
 * output   the file that was written, as given
 *
 * Return   GHP_OK; GHP_ERR_IO, GHP_ERR_NO_MEMORY
 * Tested  tests/tools/profile/test_profile.sh, test_profile_measured.sh */
#ifndef GHP_PROFILER_CLI_SHOW_H
#define GHP_PROFILER_CLI_SHOW_H

#include "profiler/run/run.h"

enum ghp_status ghp_show_machine(const struct ghp_machine *machine, const char *output, bool json);
enum ghp_status ghp_show_analytic(const struct ghp_profile *profile, const char *output, bool json);
enum ghp_status ghp_show_measured(const struct ghp_profiling_result *result, const char *output,
                                  bool json, bool fresh);

#endif
