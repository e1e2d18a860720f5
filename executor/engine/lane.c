/* executor/engine/lane.c - see lane.h. */
#include "executor/engine/lane.h"

#include <stdlib.h>

struct lane_job {
    int64_t ticket;         /* of its latest run, 0: none */
    struct ghp_mark *ready; /* in the compute queue, when it was posted; on a device */
    struct ghp_mark *done;  /* in the communication queue, after it; where the carrier enqueues */
};

struct ghp_lane {
    struct ghp_device device;
    bool queues; /* the carrier enqueues: no thread */
    int64_t posted;
    int last; /* job posted last, -1: none */
    struct lane_job *jobs;
    struct ghp_lane_work work;
    struct ghp_stream_thread *thread; /* NULL: none */
    int *waiting;                     /* [work.jobs] ring of jobs posted; without any thread */
    int64_t done;                     /* of those posted, without any thread */
    enum ghp_status status;           /* of them */
};

/* On the thread: the job's input is there only when the compute queue has made it. */
static enum ghp_status run_beside(void *context, int job)
{
    struct ghp_lane *lane = context;
    struct ghp_device d = lane->device;

    if (d.ops != NULL)
        GHP_TRY(d.ops->follow(d.backend, GHP_QUEUE_COMM, lane->jobs[job].ready));
    return lane->work.run(lane->work.context, job);
}

/* Without any thread: the jobs up to this ticket, unless one has failed. */
static enum ghp_status run_waiting(struct ghp_lane *lane, int64_t ticket)
{
    while (lane->done < ticket && lane->status == GHP_OK)
        lane->status = run_beside(lane, lane->waiting[lane->done++ % lane->work.jobs]);
    return lane->status;
}

/* A job's marks are made when it first runs: few of a worker's instructions are jobs. */
static enum ghp_status open_marks(const struct ghp_lane *lane, struct lane_job *job)
{
    struct ghp_device d = lane->device;

    if (d.ops == NULL || job->ready != NULL) return GHP_OK;
    GHP_TRY(d.ops->mark_open(d.backend, false, &job->ready));
    return lane->queues ? d.ops->mark_open(d.backend, false, &job->done) : GHP_OK;
}

enum ghp_status ghp_lane_open(const struct ghp_team *team, const struct ghp_lane_work *work,
                              struct ghp_lane **result)
{
    enum ghp_status status = GHP_OK;
    struct ghp_lane *lane = ghp_alloc(1, sizeof(*lane));

    *result = NULL;
    if (lane == NULL) return GHP_NO_MEMORY();
    *lane = (struct ghp_lane){.device = ghp_team_device(team),
                              .queues = team->carrier_ops->queues,
                              .last = -1,
                              .work = *work};
    lane->jobs = ghp_alloc((size_t)work->jobs, sizeof(*lane->jobs));
    lane->waiting = ghp_alloc((size_t)work->jobs, sizeof(*lane->waiting));
    if (lane->jobs == NULL || lane->waiting == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    if (!lane->queues && !work->late)
        GHP_TRY_GOTO(status, ghp_stream_open(work->jobs + 1, run_beside, lane, &lane->thread),
                     fail);
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
    if (lane->work.late && !lane->queues) run_waiting(lane, lane->posted);
    for (int i = 0; d.ops != NULL && lane->jobs != NULL && i < lane->work.jobs; i++) {
        d.ops->mark_close(d.backend, lane->jobs[i].ready);
        d.ops->mark_close(d.backend, lane->jobs[i].done);
    }
    free(lane->waiting);
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
    if (lane->thread != NULL) {
        j->ticket = ghp_stream_post(lane->thread, job);
        return GHP_OK;
    }
    j->ticket = ++lane->posted;
    if (!lane->queues) {
        GHP_ASSERT(lane->posted - lane->done <= lane->work.jobs);
        lane->waiting[(lane->posted - 1) % lane->work.jobs] = job;
        return GHP_OK;
    }
    GHP_TRY(run_beside(lane, job));
    return d.ops->set(d.backend, GHP_QUEUE_COMM, j->done);
}

enum ghp_status ghp_lane_follow(struct ghp_lane *lane, int job)
{
    struct lane_job *j = &lane->jobs[job];
    struct ghp_device d = lane->device;

    if (j->ticket == 0) return GHP_OK;
    if (lane->thread != NULL) return ghp_stream_wait(lane->thread, j->ticket);
    if (!lane->queues) return run_waiting(lane, j->ticket);
    return d.ops->follow(d.backend, GHP_QUEUE_COMPUTE, j->done);
}

enum ghp_status ghp_lane_join(struct ghp_lane *lane)
{
    return lane->last < 0 ? GHP_OK : ghp_lane_follow(lane, lane->last);
}
