/* executor/engine/lane.h - the communication stream of a worker, whoever carries: jobs in order, beside the compute stream.
 *
 * Where tensors lie in host memory, or are carried through it, a lane is a thread (executor/engine/stream.h) that does one job
 * after the other. Where the carrier enqueues, the job is called at once and what it enqueues is done in the device's
 * communication queue, in order. Either way a job sees what the compute stream had done when it was posted, and the
 * compute stream sees the job's work after ghp_lane_follow. A lane that works late has no thread: who follows does the
 * jobs, so nothing is hidden, which tells what the thread gains.
 *
 * Call order: open -> post, follow, settle ... -> close. One thread posts, follows and settles. */
#ifndef GHP_EXECUTOR_ENGINE_LANE_H
#define GHP_EXECUTOR_ENGINE_LANE_H

#include "executor/engine/stream.h"
#include "executor/transport/team.h"

struct ghp_lane;

struct ghp_lane_work {
    int jobs;           /* 0 .. jobs - 1; a late lane's are followed before they are posted again */
    ghp_stream_fn *run; /* does a job; on a device it may use the communication queue alone */
    void *context;      /* handed through */
    bool late;          /* without any thread; no matter where the carrier enqueues */
};

/* Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND
 * Tested    tests/executor/engine/test_lane.c, tests/executor/engine/test_device.c */
enum ghp_status ghp_lane_open(const struct ghp_team *team, const struct ghp_lane_work *work,
                              struct ghp_lane **lane);
/* Finishes the jobs posted so far; accepts NULL. */
void ghp_lane_close(struct ghp_lane *lane);

/* Adds a job. Returns the failure of a job that is called at once; of others see follow. */
enum ghp_status ghp_lane_post(struct ghp_lane *lane, int job);

/* The compute stream goes on only when the job's latest run (and all posted before it) is done; nothing where the job
 * has never run.
 *
 * Returns   GHP_OK, or the failure of a job */
enum ghp_status ghp_lane_follow(struct ghp_lane *lane, int job);

/* All jobs posted so far are followed: the compute stream's end is theirs too. */
enum ghp_status ghp_lane_join(struct ghp_lane *lane);

#endif
