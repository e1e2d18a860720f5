/* executor/cli/session_options.h - whether a command line's options go together. */
#ifndef GHP_EXECUTOR_CLI_SESSION_OPTIONS_H
#define GHP_EXECUTOR_CLI_SESSION_OPTIONS_H

#include "executor/train/setup.h"

/* The value of --data until it is given, which its address tells from the same text given. */
extern const char ghp_session_data_unset[];

/* Refuses what cannot be meant together, such as --steps with --epochs; sets the failpoint asked for.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE with the remedy; what ghp_failpoint_set returns */
enum ghp_status ghp_session_options_check(const struct ghp_session_options *options);

#endif
