/* executor/cli/rank.h - one rank of ghp-run once MPI has started: all agree on their command lines, work, and end
 * together. It speaks and ends the process for ghp-run's main. */
#ifndef GHP_EXECUTOR_CLI_RANK_H
#define GHP_EXECUTOR_CLI_RANK_H

#include "executor/train/setup.h"

/* Does what the command line asks for, and ends MPI; after a failure in the step loop it aborts all ranks.
 *
 * status   what this rank found in its command line
 *
 * Returns the exit code. Collective over all ranks. */
int ghp_rank_run(struct ghp_session *session, enum ghp_status status);

/* Says the present failure on stderr where `speaks`. Returns its exit code. Local. */
int ghp_rank_fail(enum ghp_status status, bool speaks);

#endif
