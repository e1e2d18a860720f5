/* executor/lane.c - see lane.h. */
#include "executor/lane.h"

#include <stdlib.h>

struct lane_job {
    int64_t ticket;         /* of its latest run, 0: none */
    struct ghp_mark *ready; /* in the compute queue, when it was posted; on a device */
    struct ghp_mark *done;  /* in the communication queue, after it; where the carrier enqueues */
};

struct ghp_lane {
    struct ghp_device device;
    bool queues; /* the carrier enqueues: no thread */
    int n;
    int64_t posted;
    int last; /* job posted last, -1: none */
    struct lane_job *jobs;
    ghp_stream_fn *run;
    void *context;
    struct ghp_stream_thread *thread;
};

/* On the thread: the job's input is there only when the compute queue has made it. */
static enum ghp_status run_beside(void *context, int job)
{
    struct ghp_lane *lane = context;
    struct ghp_device d = lane->device;

    if (d.ops != NULL)
        GHP_TRY(d.ops->follow(d.backend, GHP_QUEUE_COMM, lane->jobs[job].ready));
    return lane->run(lane->context, job);
}

/* A job's marks are made when it first runs: few of a worker's instructions are jobs. */
static enum ghp_status open_marks(const struct ghp_lane *lane, struct lane_job *job)
{
    struct ghp_device d = lane->device;

    if (d.ops == NULL || job->ready != NULL) return GHP_OK;
    GHP_TRY(d.ops->mark_open(d.backend, false, &job->ready));
    return lane->queues ? d.ops->mark_open(d.backend, false, &job->done) : GHP_OK;
}

enum ghp_status ghp_lane_open(const struct ghp_team *team, int jobs, ghp_stream_fn *run,
                              void *context, struct ghp_lane **result)
{
    enum ghp_status status = GHP_OK;
    struct ghp_lane *lane = ghp_alloc(1, sizeof(*lane));

    *result = NULL;
    if (lane == NULL) return GHP_NO_MEMORY();
    *lane = (struct ghp_lane){.device = ghp_team_device(team),
                              .queues = team->carrier_ops->queues,
                              .n = jobs,
                              .last = -1,
                              .run = run,
                              .context = context};
    lane->jobs = ghp_alloc((size_t)jobs, sizeof(*lane->jobs));
    if (lane->jobs == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    if (!lane->queues)
        GHP_TRY_GOTO(status, ghp_stream_open(jobs + 1, run_beside, lane, &lane->thread), fail);
    *result = lane;
    return GHP_OK;
fail:
    ghp_lane_close(lane);
    return status;
}

void ghp_lane_close(struct ghp_lane *lane)
{
    struct ghp_device d;

    if (lane == NULL) return;
    d = lane->device;
    ghp_stream_close(lane->thread);
    for (int i = 0; d.ops != NULL && lane->jobs != NULL && i < lane->n; i++) {
        d.ops->mark_close(d.backend, lane->jobs[i].ready);
        d.ops->mark_close(d.backend, lane->jobs[i].done);
    }
    free(lane->jobs);
    free(lane);
}

enum ghp_status ghp_lane_post(struct ghp_lane *lane, int job)
{
    struct lane_job *j = &lane->jobs[job];
    struct ghp_device d = lane->device;

    GHP_TRY(open_marks(lane, j));
    if (d.ops != NULL) GHP_TRY(d.ops->set(d.backend, GHP_QUEUE_COMPUTE, j->ready));
    lane->last = job;
    if (!lane->queues) {
        j->ticket = ghp_stream_post(lane->thread, job);
        return GHP_OK;
    }
    j->ticket = ++lane->posted;
    GHP_TRY(d.ops->follow(d.backend, GHP_QUEUE_COMM, j->ready));
    GHP_TRY(lane->run(lane->context, job));
    return d.ops->set(d.backend, GHP_QUEUE_COMM, j->done);
}

enum ghp_status ghp_lane_follow(struct ghp_lane *lane, int job)
{
    struct lane_job *j = &lane->jobs[job];
    struct ghp_device d = lane->device;

    if (j->ticket == 0) return GHP_OK;
    if (!lane->queues) return ghp_stream_wait(lane->thread, j->ticket);
    return d.ops->follow(d.backend, GHP_QUEUE_COMPUTE, j->done);
}

enum ghp_status ghp_lane_join(struct ghp_lane *lane)
{
    return lane->last < 0 ? GHP_OK : ghp_lane_follow(lane, lane->last);
}
