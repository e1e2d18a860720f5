/* executor/cli/hints.h - what ghp-run answers to options that it does not have. */
#ifndef GHP_EXECUTOR_CLI_HINTS_H
#define GHP_EXECUTOR_CLI_HINTS_H

#include "core/base/opts.h"

/* Ends with a name of NULL, as a tool's hints do. */
extern const struct ghp_opts_hint ghp_run_hints[];

#endif
