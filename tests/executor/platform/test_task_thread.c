/* The communication thread: order, waiting, a full queue, and a failure that every later wait reports. */
#include "executor/platform/task_thread.h"
#include "tests/check.h"

struct diary {
    int jobs[200], n, fails_at;
};

static enum ghp_status note(void *context, int job)
{
    struct diary *d = context;

    if (job == d->fails_at) return GHP_FAIL(GHP_ERR_COMM, "job %d went wrong", job);
    d->jobs[d->n++] = job;
    return GHP_OK;
}

CHECK_TEST(task_thread)
{
    struct diary d = {.fails_at = -1}, broken = {.fails_at = 3};
    struct ghp_task_thread *thread = NULL;
    int64_t ticket = 0;

    CHECK_STATUS(ghp_task_thread_open(4, note, &d, &thread), GHP_OK);
    CHECK_STATUS(ghp_task_thread_wait(thread, 0), GHP_OK);
    for (int i = 0; i < 100; i++) {
        ticket = ghp_task_thread_post(thread, i);
        CHECK_EQ(ticket, i + 1);
    }
    CHECK_STATUS(ghp_task_thread_wait(thread, ticket), GHP_OK);
    CHECK_EQ(d.n, 100);
    for (int i = 0; i < d.n; i++)
        CHECK_EQ(d.jobs[i], i);
    ghp_task_thread_post(thread, 100);
    ghp_task_thread_close(thread); /* finishes what was posted */
    CHECK_EQ(d.n, 101);

    CHECK_STATUS(ghp_task_thread_open(4, note, &broken, &thread), GHP_OK);
    for (int i = 0; i < 10; i++)
        ticket = ghp_task_thread_post(thread, i);
    CHECK_STATUS(ghp_task_thread_wait(thread, ticket), GHP_ERR_COMM);
    CHECK_MESSAGE("job 3 went wrong");
    CHECK_EQ(broken.n, 3);
    ghp_task_thread_close(thread);
    ghp_task_thread_close(NULL);
    return check_end();
}
