/* profiler/cli/way.h - the four ways in which ghp-profile runs, and which options each has a use for. An option that
 * was given and that the way has no use for is refused, as it would do nothing.
 *
 * Call order: take the defaults before the command line is read -> check -> release. */
#ifndef GHP_PROFILER_CLI_WAY_H
#define GHP_PROFILER_CLI_WAY_H

#include "core/base/opts.h"

enum ghp_way { /* bits */
               GHP_WAY_MEASURING = 1,
               GHP_WAY_ANALYTIC = 2,
               GHP_WAY_MACHINE_ONLY = 4,
               GHP_WAY_HELD_OUT = 8
};

struct ghp_way_defaults { /* the options' values as text, in the table's order; some NULL */
    int n;
    char *values[64];
};

void ghp_way_defaults_take(const struct ghp_tool *tool, struct ghp_way_defaults *defaults);
void ghp_way_defaults_release(struct ghp_way_defaults *defaults);

/* Whether each option whose value is another than before is of use in that way.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE, naming the first that is not
 * Tested    tests/tools/profile/test_profile.sh */
enum ghp_status ghp_way_check(const struct ghp_tool *tool, const struct ghp_way_defaults *defaults,
                              int way);

#endif
