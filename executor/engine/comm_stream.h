/* executor/engine/comm_stream.h - the communication stream of a worker, with any transport: jobs in order, concurrent
 * with the compute stream.
 *
 * If tensors are in host memory, or pass through it, a communication stream is a thread
 * (executor/platform/task_thread.h) that does one job after the other. If the device transport enqueues, the job is
 * called at once, and the work that it enqueues is done in the device's communication stream, in order. Either way a
 * job sees what the compute stream had done when it was posted, and the compute stream sees the job's work after
 * ghp_comm_stream_wait. A late communication stream has no thread: the caller of follow does the jobs, so no work is
 * hidden. This shows what the thread gains.
 *
 * Call order: open -> post, follow, settle ... -> close. One thread posts, follows and settles. */
#ifndef GHP_EXECUTOR_ENGINE_COMM_STREAM_H
#define GHP_EXECUTOR_ENGINE_COMM_STREAM_H

#include "executor/platform/task_thread.h"
#include "executor/transport/exec_context.h"

struct ghp_comm_stream;

struct ghp_comm_stream_work {
    int jobs; /* 0 .. jobs - 1; a late communication stream's are followed before they are posted again */
    ghp_task_thread_fn *run; /* does a job; on a device it may use the communication stream alone */
    void *context;           /* handed through */
    bool late;               /* without any thread; no matter if the device transport enqueues */
};

/* Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND
 * Tested    tests/executor/engine/test_comm_stream.c, tests/executor/engine/test_device.c */
enum ghp_status ghp_comm_stream_open(const struct ghp_exec_context *exec,
                                     const struct ghp_comm_stream_work *work,
                                     struct ghp_comm_stream **comm_stream);
/* Finishes the jobs posted so far; accepts NULL. */
void ghp_comm_stream_close(struct ghp_comm_stream *comm_stream);

/* Adds a job. Returns the failure of a job that is called at once; of others see follow. */
enum ghp_status ghp_comm_stream_post(struct ghp_comm_stream *comm_stream, int job);

/* The compute stream continues only when the job's latest run (and all posted before it) is done. Does nothing if the
 * job has never run.
 *
 * Returns   GHP_OK, or the failure of a job */
enum ghp_status ghp_comm_stream_wait(struct ghp_comm_stream *comm_stream, int job);

/* All jobs posted so far are followed: the compute stream's end is theirs too. */
enum ghp_status ghp_comm_stream_join(struct ghp_comm_stream *comm_stream);

#endif
