/* executor/platform/limits.h - what of a node's processors and memory a container or a batch system leaves a process.
 *
 * Control groups of Linux, of both versions, say it: the processor time of cpu.max (version 1: cpu.cfs_quota_us) and
 * the memory of memory.max (memory.limit_in_bytes), of this process's group and those around it; the tightest counts.
 * The memory that sbatch or salloc were given for the node (--mem, --mem-per-cpu) is a limit, too.
 * Which processors may be used is not said here: the system gives a process those of its cpuset alone, and hwloc and
 * sched_getaffinity see no others (executor/platform/processors.h).
 *
 * Tested    tests/executor/platform/test_limits.c, tests/tools/launch/test_limits.sh */
#ifndef GHP_EXECUTOR_PLATFORM_LIMITS_H
#define GHP_EXECUTOR_PLATFORM_LIMITS_H

#include "executor/platform/processors.h"

#include <stddef.h>
#include <stdint.h>

enum { GHP_LIMITS_TEXT_BYTES = 256 };

struct ghp_limits {
    double cores;         /* seconds of processors a second; 0: no limit */
    int64_t memory_bytes; /* of all that is in the group; 0: no limit */
    /* before the limit, pages of files that can be dropped counted; -1: no limit */
    int64_t memory_left_bytes;
    /* the files or variables that say so; "" without a limit, cut if it is long */
    char cores_by[GHP_LIMITS_TEXT_BYTES], memory_by[GHP_LIMITS_TEXT_BYTES];
};

/* The limits as they are now. A limit that cannot be read is ignored.
 *
 * root   "" for this machine; else a folder that stands for /, for tests
 *
 * Local */
void ghp_limits_read(const char *root, struct ghp_limits *limits);

/* How many of n >= 1 processors threads can keep busy without being stopped: n, or less if there is a limit, which
 * is rounded down, but at least 1. Local. */
int ghp_limits_cores(const struct ghp_limits *limits, int n);

/* The same of these processors here and now. Local. */
int ghp_limits_count(const struct ghp_processors *processors);

/* What the limits leave of this machine, and the files that say so, for people: "1 core by FILE and 512 MiB of memory
 * by FILE".
 *
 * Returns   text, of `bytes` with the end; "" if they leave all
 * Local */
const char *ghp_limits_text(const struct ghp_limits *limits, char *text, size_t bytes);

/* Says it of the limits here and now, if there are any. Local. */
void ghp_limits_note(void);

#endif
