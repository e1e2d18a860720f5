/* executor/platform/failpoint.h - failpoints: at one point of a run this process stops (SIGSTOP), exits or hangs, so
 * that tests and bench/recovery/faults meet a run in each of its phases, and do to it there what they want. Never
 * unless it was asked for.
 *
 * To add a point: a row here, and ghp_failpoint_reach where it comes.
 *
 * Call order: set -> reach. */
#ifndef GHP_EXECUTOR_PLATFORM_FAILPOINT_H
#define GHP_EXECUTOR_PLATFORM_FAILPOINT_H

#include "core/base/status.h"

#define GHP_FAILPOINT_LIST(X)                                                                      \
    X(MPI, "mpi")         /* before MPI starts */                                                  \
    X(START, "start")     /* before the plan is read */                                            \
    X(RESUME, "resume")   /* before a checkpoint is read */                                        \
    X(SAMPLES, "samples") /* the first of an instruction: */                                       \
    X(FORWARD, "forward")                                                                          \
    X(BACKWARD, "backward")                                                                        \
    X(RESHARD, "reshard")                                                                          \
    X(STATISTICS, "statistics")                                                                    \
    X(NORM, "norm")                                                                                \
    X(METRICS, "metrics")                                                                          \
    X(ALL_REDUCE, "all-reduce")                                                                    \
    X(REDUCE_SCATTER, "reduce-scatter")                                                            \
    X(ALL_GATHER, "all-gather")                                                                    \
    X(AVERAGE, "average")                                                                          \
    X(SEND, "send")                                                                                \
    X(RECEIVE, "receive")                                                                          \
    X(UPDATE, "update")                                                                            \
    X(GATHER, "gather")         /* before a checkpoint is gathered */                              \
    X(WRITE, "write")           /* a checkpoint is half-written; worker 0 */                       \
    X(RENAME, "rename")         /* it is on disk, under no name of a checkpoint; worker 0 */       \
    X(EVALUATION, "evaluation") /* before a batch of it */                                         \
    X(COMPARISON, "comparison") /* of the replicas, after the last step */                         \
    X(END, "end")               /* before MPI ends */

enum ghp_failpoint {
#define GHP_FAILPOINT_ENUM(id, text) GHP_FAILPOINT_##id,
    GHP_FAILPOINT_LIST(GHP_FAILPOINT_ENUM)
#undef GHP_FAILPOINT_ENUM
        GHP_FAILPOINT_COUNT
};

/* Sets one, of the form ACTION@POINT[:TIME[:WORKER]]: `stop`, `exit` or `hang`, a name of the list, the TIME-th time
 * that it comes in this process [1], and the worker as the launcher counts [the last].
 *
 * Returns   GHP_OK; GHP_ERR_USAGE
 * Local
 * Tested   tests/executor/platform/test_failpoint.c, tests/tools/hardship/test_stall.sh */
enum ghp_status ghp_failpoint_set(const char *text);

/* The run has come to the point: what is set there happens. Local. */
void ghp_failpoint_reach(enum ghp_failpoint point);

#endif
