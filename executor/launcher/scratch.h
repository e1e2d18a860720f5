/* executor/launcher/scratch.h - the folder of one attempt in which mpirun has its own files, so that all of them can be
 * removed when mpirun was killed and could not; and with them its workers' shared memory.
 *
 * A ghp-launch that is killed leaves its folder, which has its process number in its name and is locked while it lives:
 * the next one of this user removes it.
 *
 * For Open MPI, on this host; mpirun's daemons clean up on others. If a variable such as OMPI_MCA_orte_tmpdir_base
 * already says where mpirun's files are, nothing is made and nothing removed.
 *
 * Tested  tests/executor/launcher/test_scratch.c, bench/recovery/faults */
#ifndef GHP_EXECUTOR_LAUNCHER_SCRATCH_H
#define GHP_EXECUTOR_LAUNCHER_SCRATCH_H

#include "core/base/status.h"

struct ghp_scratch {
    char path[4096]; /* "": none */
    char *before;    /* the value of TMPDIR, owned; NULL: none */
    int hold;        /* the folder, open and locked */
};

/* Removes what a killed one left, and makes it, in $TMPDIR or /tmp; it is $TMPDIR of what is started from now on. If
 * it cannot be made, there is none. Local. */
void ghp_scratch_open(struct ghp_scratch *scratch);

/* Removes it with all in it, and the shared memory of the jobs that it knows. When all processes have ended.
 * Local; accepts a zeroed one. */
void ghp_scratch_close(struct ghp_scratch *scratch);

/* Removes a job's segments from the folder of shared memory. The test gives another folder. */
void ghp_scratch_remove_segments(const char *folder, unsigned job);

#endif
