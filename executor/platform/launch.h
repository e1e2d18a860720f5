/* executor/platform/launch.h - what a process knows of its launch before MPI is started.
 *
 * Its rank is not known: only MPI tells it, and two launchers' variables may disagree. An MPI library learns about
 * its launcher through PMI or PMIx, and both leave variables whose names begin with PMI. */
#ifndef GHP_EXECUTOR_PLATFORM_LAUNCH_H
#define GHP_EXECUTOR_PLATFORM_LAUNCH_H

#include <stdbool.h>

/* Whether a launcher (mpirun, srun ...) started this process: then even --help waits for MPI, so that rank 0 alone
 * answers. The first call is before MPI starts; later ones answer the same.
 *
 * Local
 * Tested   tests/tools/hardship/test_speaks.sh */
bool ghp_launched(void);

/* How many processes the launcher started on this node, and in all; 0 if it does not say. */
long ghp_launched_here(void);
long ghp_launched_size(void);

/* Which of them this is as the launcher counts, for where MPI cannot say; 0 if it does not. */
long ghp_launched_rank(void);
/* The i-th of the variables that say it, the first that is set counts; NULL: no further one. */
const char *ghp_launched_rank_name(int i);

/* Whether the processors that this node's processes are bound to are all that they may use, as srun binds them. mpirun
 * binds by itself, and the next process it starts elsewhere. */
bool ghp_launched_allotted(void);

/* The command that started this process, as it is typed: srun, else mpirun. */
const char *ghp_launched_by(void);

/* The terminal into which the launcher empties this process's stderr, which is a pipe to it: open for its width alone,
 * until the process ends; -1 if stderr is not such a pipe, or the launcher is on another host or writes elsewhere.
 *
 * Local
 * Tested   tests/tools/run/test_watched.sh */
int ghp_launched_terminal(void);

#endif
