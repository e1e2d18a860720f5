/* executor/engine/comm_stream.c - see comm_stream.h. */
#include "executor/engine/comm_stream.h"

#include <stdlib.h>

struct comm_stream_job {
    int64_t ticket;                 /* of its latest run, 0: none */
    struct ghp_device_event *ready; /* in the compute stream, when it was posted */
    /* in the communication stream, after it; if the device transport enqueues */
    struct ghp_device_event *done;
};

struct ghp_comm_stream {
    struct ghp_device device;
    bool enqueues; /* the device transport enqueues: no thread */
    int64_t posted;
    int last; /* job posted last, -1: none */
    struct comm_stream_job *jobs;
    struct ghp_comm_stream_work work;
    struct ghp_task_thread *thread; /* NULL: none */
    int *waiting;                   /* [work.jobs] ring of jobs posted; without any thread */
    int64_t done;                   /* of those posted, without any thread */
    enum ghp_status status;         /* of them */
};

/* On the thread: the job's input is there only when the compute stream has made it. */
static enum ghp_status run_concurrent(void *context, int job)
{
    struct ghp_comm_stream *comm_stream = context;
    struct ghp_device d = comm_stream->device;

    GHP_TRY(d.ops->wait_event(d.backend, GHP_DEVICE_STREAM_COMM, comm_stream->jobs[job].ready));
    return comm_stream->work.run(comm_stream->work.context, job);
}

/* Without any thread: the jobs up to this ticket, unless one has failed. */
static enum ghp_status run_waiting(struct ghp_comm_stream *comm_stream, int64_t ticket)
{
    while (comm_stream->done < ticket && comm_stream->status == GHP_OK)
        comm_stream->status = run_concurrent(
            comm_stream, comm_stream->waiting[comm_stream->done++ % comm_stream->work.jobs]);
    return comm_stream->status;
}

/* A job's events are made when it first runs: few of a worker's instructions are jobs. */
static enum ghp_status open_events(const struct ghp_comm_stream *comm_stream,
                                   struct comm_stream_job *job)
{
    struct ghp_device d = comm_stream->device;

    if (job->ready != NULL) return GHP_OK;
    GHP_TRY(d.ops->event_open(d.backend, false, &job->ready));
    return comm_stream->enqueues ? d.ops->event_open(d.backend, false, &job->done) : GHP_OK;
}

enum ghp_status ghp_comm_stream_open(const struct ghp_exec_context *exec,
                                     const struct ghp_comm_stream_work *work,
                                     struct ghp_comm_stream **result)
{
    enum ghp_status status = GHP_OK;
    struct ghp_comm_stream *comm_stream = ghp_alloc(1, sizeof *comm_stream);

    *result = NULL;
    if (comm_stream == NULL) return GHP_NO_MEMORY();
    *comm_stream =
        (struct ghp_comm_stream){.device = ghp_device_complete(ghp_exec_context_device(exec)),
                                 .enqueues = exec->collectives->ops->enqueues,
                                 .last = -1,
                                 .work = *work};
    comm_stream->jobs = ghp_alloc((size_t)work->jobs, sizeof *comm_stream->jobs);
    comm_stream->waiting = ghp_alloc((size_t)work->jobs, sizeof *comm_stream->waiting);
    if (comm_stream->jobs == NULL || comm_stream->waiting == NULL)
        GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    if (!comm_stream->enqueues && !work->late)
        GHP_TRY_GOTO(
            status,
            ghp_task_thread_open(work->jobs + 1, run_concurrent, comm_stream, &comm_stream->thread),
            fail);
    *result = comm_stream;
    return GHP_OK;
fail:
    ghp_comm_stream_close(comm_stream);
    return status;
}

void ghp_comm_stream_close(struct ghp_comm_stream *comm_stream)
{
    struct ghp_device d;

    if (comm_stream == NULL) return;
    d = comm_stream->device;
    ghp_task_thread_close(comm_stream->thread);
    if (comm_stream->work.late && !comm_stream->enqueues)
        run_waiting(comm_stream, comm_stream->posted);
    for (int i = 0; comm_stream->jobs != NULL && i < comm_stream->work.jobs; i++) {
        d.ops->event_close(d.backend, comm_stream->jobs[i].ready);
        d.ops->event_close(d.backend, comm_stream->jobs[i].done);
    }
    free(comm_stream->waiting);
    free(comm_stream->jobs);
    free(comm_stream);
}

enum ghp_status ghp_comm_stream_post(struct ghp_comm_stream *comm_stream, int job)
{
    struct comm_stream_job *j = &comm_stream->jobs[job];
    struct ghp_device d = comm_stream->device;

    GHP_TRY(open_events(comm_stream, j));
    GHP_TRY(d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, j->ready));
    comm_stream->last = job;
    if (comm_stream->thread != NULL) {
        j->ticket = ghp_task_thread_post(comm_stream->thread, job);
        return GHP_OK;
    }
    j->ticket = ++comm_stream->posted;
    if (!comm_stream->enqueues) {
        GHP_ASSERT(comm_stream->posted - comm_stream->done <= comm_stream->work.jobs);
        comm_stream->waiting[(comm_stream->posted - 1) % comm_stream->work.jobs] = job;
        return GHP_OK;
    }
    GHP_TRY(run_concurrent(comm_stream, job));
    return d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMM, j->done);
}

enum ghp_status ghp_comm_stream_wait(struct ghp_comm_stream *comm_stream, int job)
{
    struct comm_stream_job *j = &comm_stream->jobs[job];
    struct ghp_device d = comm_stream->device;

    if (j->ticket == 0) return GHP_OK;
    if (comm_stream->thread != NULL) return ghp_task_thread_wait(comm_stream->thread, j->ticket);
    if (!comm_stream->enqueues) return run_waiting(comm_stream, j->ticket);
    return d.ops->wait_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, j->done);
}

enum ghp_status ghp_comm_stream_join(struct ghp_comm_stream *comm_stream)
{
    return comm_stream->last < 0 ? GHP_OK : ghp_comm_stream_wait(comm_stream, comm_stream->last);
}
