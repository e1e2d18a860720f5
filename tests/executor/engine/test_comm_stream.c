/* A lane in host memory, with its thread and late: jobs in order of posting, all done that are followed; a late one
 * does nothing before, on the thread of who follows; closing finishes what was posted; a failure is every later
 * follow's. */
#include "executor/engine/comm_stream.h"
#include "tests/check.h"

#include <pthread.h>

enum { JOBS = 3, ROUNDS = 4 };

struct diary {
    int n, jobs[JOBS * ROUNDS];
    int fails_at; /* job, or -1 */
    pthread_t by; /* who did the last */
};

static enum ghp_status note(void *context, int job)
{
    struct diary *d = context;

    if (job == d->fails_at) return GHP_FAIL(GHP_ERR_COMM, "job %d went wrong", job);
    d->jobs[d->n++] = job;
    d->by = pthread_self();
    return GHP_OK;
}

static struct ghp_comm_stream *open_comm_stream(struct diary *d, bool late)
{
    static const struct ghp_collectives_ops ops = {.enqueues = false};
    struct ghp_collectives collectives = {.ops = &ops};
    struct ghp_exec_context exec = {.backend_ops = &ghp_backend_reference,
                                    .collectives = &collectives};
    struct ghp_comm_stream_work work = {.jobs = JOBS, .run = note, .context = d, .late = late};
    struct ghp_comm_stream *comm_stream = NULL;

    CHECK_STATUS(ghp_comm_stream_open(&exec, &work, &comm_stream), GHP_OK);
    return comm_stream;
}

static void post_all(struct ghp_comm_stream *comm_stream)
{
    for (int job = 0; job < JOBS; job++)
        CHECK_STATUS(ghp_comm_stream_post(comm_stream, job), GHP_OK);
}

static void check_order(bool late)
{
    struct diary d = {.fails_at = -1};
    struct ghp_comm_stream *comm_stream = open_comm_stream(&d, late);

    CHECK_STATUS(ghp_comm_stream_wait(comm_stream, 1), GHP_OK); /* never posted */
    for (int round = 0; round < ROUNDS; round++) {
        post_all(comm_stream);
        if (late) CHECK_EQ(d.n, round * JOBS);
        CHECK_STATUS(ghp_comm_stream_wait(comm_stream, 1), GHP_OK);
        if (late) CHECK_EQ(d.n, round * JOBS + 2);
        if (round == ROUNDS - 1) break; /* closing does the rest */
        CHECK_STATUS(ghp_comm_stream_join(comm_stream), GHP_OK);
        CHECK_EQ(d.n, (round + 1) * JOBS);
        CHECK((pthread_equal(d.by, pthread_self()) != 0) == late);
        CHECK_STATUS(ghp_comm_stream_wait(comm_stream, 0), GHP_OK); /* done long ago */
        CHECK_EQ(d.n, (round + 1) * JOBS);
    }
    ghp_comm_stream_close(comm_stream);
    CHECK_EQ(d.n, ROUNDS * JOBS);
    for (int i = 0; i < d.n; i++)
        CHECK_EQ(d.jobs[i], i % JOBS);
}

static void check_failure(bool late)
{
    struct diary d = {.fails_at = 1};
    struct ghp_comm_stream *comm_stream = open_comm_stream(&d, late);

    post_all(comm_stream);
    CHECK_STATUS(ghp_comm_stream_wait(comm_stream, 2), GHP_ERR_COMM);
    CHECK_MESSAGE("job 1 went wrong");
    CHECK_STATUS(ghp_comm_stream_join(comm_stream), GHP_ERR_COMM);
    ghp_comm_stream_close(comm_stream);
    CHECK_EQ(d.n, 1);
}

CHECK_TEST(comm_stream)
{
    for (int late = 0; late < 2; late++) {
        check_order(late != 0);
        check_failure(late != 0);
    }
    ghp_comm_stream_close(NULL);
    return check_end();
}
