/* executor/platform/task_thread.c - see platform/task_thread.h. */
#include "executor/platform/task_thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 1024 };

struct ghp_task_thread {
    ghp_task_thread_fn *run;
    void *context;
    int capacity;
    int *jobs;            /* ring */
    int64_t posted, done; /* jobs so far: tickets */
    bool ending;
    enum ghp_status status; /* first failure */
    char message[MESSAGE_BYTES];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t posted_one, done_one;
};

static void *serve(void *argument)
{
    struct ghp_task_thread *s = argument;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        enum ghp_status status = GHP_OK;
        bool skip;
        int job;

        while (s->done == s->posted && !s->ending)
            pthread_cond_wait(&s->posted_one, &s->lock);
        if (s->done == s->posted) break;
        job = s->jobs[s->done % s->capacity];
        skip = s->status != GHP_OK;
        pthread_mutex_unlock(&s->lock);
        if (!skip) status = s->run(s->context, job);
        pthread_mutex_lock(&s->lock);
        if (status != GHP_OK) {
            s->status = status;
            snprintf(s->message, sizeof s->message, "%s", ghp_status_message());
        }
        s->done++;
        pthread_cond_broadcast(&s->done_one);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

enum ghp_status ghp_task_thread_open(int capacity, ghp_task_thread_fn *run, void *context,
                                     struct ghp_task_thread **thread)
{
    struct ghp_task_thread *s = ghp_alloc(1, sizeof *s);

    *thread = NULL;
    if (s == NULL) return GHP_NO_MEMORY();
    s->run = run;
    s->context = context;
    s->capacity = capacity;
    s->jobs = ghp_alloc((size_t)capacity, sizeof *s->jobs);
    if (s->jobs == NULL) {
        free(s);
        return GHP_NO_MEMORY();
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->posted_one, NULL);
    pthread_cond_init(&s->done_one, NULL);
    if (pthread_create(&s->thread, NULL, serve, s) != 0) {
        free(s->jobs);
        free(s);
        return GHP_FAIL(GHP_ERR_NO_MEMORY,
                        "cannot start another thread; raise the limit of processes (ulimit -u)");
    }
    *thread = s;
    return GHP_OK;
}

void ghp_task_thread_close(struct ghp_task_thread *s)
{
    if (s == NULL) return;
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_signal(&s->posted_one);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->done_one);
    pthread_cond_destroy(&s->posted_one);
    pthread_mutex_destroy(&s->lock);
    free(s->jobs);
    free(s);
}

int64_t ghp_task_thread_post(struct ghp_task_thread *s, int job)
{
    int64_t ticket;

    pthread_mutex_lock(&s->lock);
    while (s->posted - s->done >= s->capacity)
        pthread_cond_wait(&s->done_one, &s->lock);
    s->jobs[s->posted % s->capacity] = job;
    ticket = ++s->posted;
    pthread_cond_signal(&s->posted_one);
    pthread_mutex_unlock(&s->lock);
    return ticket;
}

enum ghp_status ghp_task_thread_wait(struct ghp_task_thread *s, int64_t ticket)
{
    enum ghp_status status;

    pthread_mutex_lock(&s->lock);
    while (s->done < ticket)
        pthread_cond_wait(&s->done_one, &s->lock);
    status = s->status;
    pthread_mutex_unlock(&s->lock);
    /* message is written once, before status is seen here */
    return status == GHP_OK ? GHP_OK : GHP_FAIL(status, "%s", s->message);
}
