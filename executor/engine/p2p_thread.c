/* executor/engine/p2p_thread.c - see engine/p2p_thread.h. */
#include "executor/engine/p2p_thread.h"
#include "core/base/clock.h"

#include "executor/platform/backoff.h"
#include "executor/platform/task_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* While the worker waits for a message it does not compute on the core, and looks cost nothing. Else each look takes
 * ten to thirty microseconds, and the caches' contents, from the computing thread. Then what has come is not yet
 * needed, and links continue with what sockets hold. A device computes without a core, and looks start its copies. */
static const struct ghp_backoff awaited = {0, 5000, 500000, 16},
                                concurrent = {0, 200000, 2000000, 4};

enum stage_of_message { IDLE, POSTED, ACTIVE };

struct ghp_p2p_thread {
    struct ghp_p2p_thread_job job;
    enum stage_of_message *state;
    bool *in_channel; /* an active message: its slices are */
    double *since_s;  /* of an active message */
    int *first_slot;  /* of a message's slices */
    bool *is_done;    /* a slot: its message */
    int *active;      /* messages under way, in the order of posting; the thread's own */
    int n_active;
    int *queue; /* posted, not yet active */
    int n_queue;
    bool on_device;                 /* the messages' tensors are */
    bool ending, waits;             /* waits: somebody does, for a message */
    enum ghp_status status;         /* first failure */
    struct ghp_task_thread *thread; /* its one job is to serve */
    pthread_mutex_t lock;
    pthread_cond_t posted, done;
};

/* ---- on the thread ---- */

/* Hands a message's slices to the channel, if its host memory may be used by now. */
static enum ghp_status enter_channel(struct ghp_p2p_thread *c, int message)
{
    const struct ghp_message *p = &c->job.messages[message];
    bool may = true;

    if (p->bounce != NULL)
        GHP_TRY(p->receives ? ghp_bounce_is_free(p->bounce, &may)
                            : ghp_bounce_fetch(p->bounce, &may));
    if (!may) return GHP_OK;
    if (!p->receives) ghp_message_pack(p);
    c->in_channel[message] = true;
    c->since_s[message] = ghp_now_s();
    for (int i = 0; i < p->n; i++) {
        struct ghp_p2p_message m = ghp_message_of_slice(p, i);

        c->is_done[c->first_slot[message] + i] = false;
        GHP_TRY(c->job.channel->ops->post(c->job.channel, c->first_slot[message] + i, &m));
    }
    return GHP_OK;
}

static enum ghp_status start(struct ghp_p2p_thread *c, int message)
{
    c->in_channel[message] = false;
    c->since_s[message] = ghp_now_s();
    return enter_channel(c, message);
}

static enum ghp_status fail_stalled(const struct ghp_p2p_thread *c, int message, double limit_s)
{
    const struct ghp_message *p = &c->job.messages[message];
    char missing[256] = "";

    if (!c->in_channel[message])
        return GHP_FAIL(
            GHP_ERR_COMM,
            "worker %d waited %.0f s for its device in '%s'; see whether another worker "
            "stopped, or raise --watchdog if they are only slow",
            c->job.control->rank, limit_s, c->job.name(c->job.context, message));
    for (int i = 0; i < p->n; i++) {
        size_t used = strlen(missing);

        if (c->is_done[c->first_slot[message] + i] || used + 16 > sizeof missing) continue;
        snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "",
                 p->slices[i].peer);
    }
    return GHP_FAIL(GHP_ERR_COMM,
                    "worker %d waited %.0f s in '%s': %s rank(s) %s; see why they stopped, or "
                    "raise --watchdog if they are only slow",
                    c->job.control->rank, limit_s, c->job.name(c->job.context, message),
                    p->receives ? "nothing arrived from" : "not taken by", missing);
}

/* Looks at a message's messages. */
static enum ghp_status look(struct ghp_p2p_thread *c, int message, bool *all)
{
    const struct ghp_message *p = &c->job.messages[message];
    double limit_s = c->job.control->watchdog_s;

    if (!c->in_channel[message]) GHP_TRY(enter_channel(c, message));
    *all = c->in_channel[message];
    for (int i = 0; i < p->n && c->in_channel[message]; i++) {
        int slot = c->first_slot[message] + i;

        if (!c->is_done[slot])
            GHP_TRY(c->job.channel->ops->poll(c->job.channel, slot, &c->is_done[slot]));
        *all = *all && c->is_done[slot];
    }
    if (*all || ghp_now_s() - c->since_s[message] <= limit_s) return GHP_OK;
    return fail_stalled(c, message, limit_s);
}

static enum ghp_status finish(struct ghp_p2p_thread *c, int at)
{
    int message = c->active[at];
    const struct ghp_message *p = &c->job.messages[message];

    if (p->receives) ghp_message_join(p);
    if (p->receives && p->bounce != NULL) GHP_TRY(ghp_bounce_deliver(p->bounce));
    GHP_TRY(c->job.done(c->job.context, message));
    memmove(&c->active[at], &c->active[at + 1], (size_t)(--c->n_active - at) * sizeof *c->active);
    pthread_mutex_lock(&c->lock);
    c->state[message] = IDLE;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
    return GHP_OK;
}

/* One round over everything under way; *progress: something was done. */
static enum ghp_status advance(struct ghp_p2p_thread *c, bool *progress)
{
    *progress = false;
    for (int i = 0; i < c->n_active;) {
        bool all, before = c->in_channel[c->active[i]];

        GHP_TRY(look(c, c->active[i], &all));
        *progress = *progress || all || before != c->in_channel[c->active[i]];
        if (all) {
            GHP_TRY(finish(c, i));
        } else {
            i++;
        }
    }
    return GHP_OK;
}

/* Under the lock: takes what was posted. */
static int take_posted(struct ghp_p2p_thread *c)
{
    int n = c->n_queue;

    for (int i = 0; i < n; i++) {
        c->state[c->queue[i]] = ACTIVE;
        c->active[c->n_active++] = c->queue[i];
    }
    c->n_queue = 0;
    return n;
}

static void pause_for(struct ghp_p2p_thread *c, long ns)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&c->posted, &c->lock, &until);
}

/* Called under the lock, directly before a pause, because a caller that began to wait meanwhile signalled a thread that
 * did not listen. */
static void adapt(const struct ghp_p2p_thread *c, struct ghp_backoff_wait *wait)
{
    const struct ghp_backoff *now = c->waits || c->on_device ? &awaited : &concurrent;

    if (wait->backoff != now) *wait = ghp_backoff_begin(now);
}

static enum ghp_status serve(struct ghp_p2p_thread *c)
{
    struct ghp_backoff_wait wait = ghp_backoff_begin(&concurrent);

    for (;;) {
        enum ghp_status status = GHP_OK;
        bool progress = false;
        int n;

        pthread_mutex_lock(&c->lock);
        while (c->n_active == 0 && c->n_queue == 0 && !c->ending)
            pthread_cond_wait(&c->posted, &c->lock);
        adapt(c, &wait);
        if (c->n_queue == 0 && c->n_active > 0 && !c->ending)
            pause_for(c, ghp_backoff_take_ns(&wait));
        n = take_posted(c);
        if (c->ending) {
            pthread_mutex_unlock(&c->lock);
            return GHP_OK;
        }
        pthread_mutex_unlock(&c->lock);
        for (int i = c->n_active - n; i < c->n_active && status == GHP_OK; i++)
            status = start(c, c->active[i]);
        if (status == GHP_OK) status = advance(c, &progress);
        if (status != GHP_OK) return status;
        if (progress || n > 0) wait = ghp_backoff_begin(wait.backoff);
    }
}

static enum ghp_status run(void *context, int job)
{
    struct ghp_p2p_thread *c = context;
    enum ghp_status status = serve(c);

    (void)job;
    pthread_mutex_lock(&c->lock);
    c->status = status;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- for the other thread ---- */

static enum ghp_status make_tables(struct ghp_p2p_thread *c)
{
    size_t n = (size_t)c->job.n + 1;
    int slots = 0;

    c->state = ghp_alloc(n, sizeof *c->state);
    c->in_channel = ghp_alloc(n, sizeof *c->in_channel);
    c->since_s = ghp_alloc(n, sizeof *c->since_s);
    c->first_slot = ghp_alloc(n, sizeof *c->first_slot);
    c->active = ghp_alloc(n, sizeof *c->active);
    c->queue = ghp_alloc(n, sizeof *c->queue);
    for (int i = 0; i < c->job.n && c->first_slot != NULL; i++) {
        c->first_slot[i] = slots;
        slots += c->job.messages[i].n;
        c->on_device = c->on_device || c->job.messages[i].bounce != NULL;
    }
    c->is_done = ghp_alloc((size_t)slots + 1, sizeof *c->is_done);
    return c->state != NULL && c->in_channel != NULL && c->since_s != NULL &&
                   c->first_slot != NULL && c->active != NULL && c->queue != NULL &&
                   c->is_done != NULL
               ? GHP_OK
               : GHP_NO_MEMORY();
}

enum ghp_status ghp_p2p_thread_open(const struct ghp_p2p_thread_job *job,
                                    struct ghp_p2p_thread **p2p_thread)
{
    struct ghp_p2p_thread *c = ghp_alloc(1, sizeof *c);
    pthread_condattr_t monotonic;
    enum ghp_status status;

    *p2p_thread = NULL;
    if (c == NULL) return GHP_NO_MEMORY();
    c->job = *job;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->posted, &monotonic);
    pthread_cond_init(&c->done, NULL);
    pthread_condattr_destroy(&monotonic);
    status = make_tables(c);
    if (status == GHP_OK) status = ghp_task_thread_open(1, run, c, &c->thread);
    if (status != GHP_OK) {
        ghp_p2p_thread_close(c);
        return status;
    }
    ghp_task_thread_post(c->thread, 0);
    *p2p_thread = c;
    return GHP_OK;
}

void ghp_p2p_thread_close(struct ghp_p2p_thread *c)
{
    if (c == NULL) return;
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_signal(&c->posted);
    pthread_mutex_unlock(&c->lock);
    ghp_task_thread_close(c->thread);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->posted);
    pthread_mutex_destroy(&c->lock);
    free(c->is_done);
    free(c->queue);
    free(c->active);
    free(c->first_slot);
    free(c->since_s);
    free(c->in_channel);
    free(c->state);
    free(c);
}

void ghp_p2p_thread_post(struct ghp_p2p_thread *c, int message)
{
    pthread_mutex_lock(&c->lock);
    GHP_ASSERT(c->state[message] == IDLE);
    c->state[message] = POSTED;
    c->queue[c->n_queue++] = message;
    pthread_cond_signal(&c->posted);
    pthread_mutex_unlock(&c->lock);
}

enum ghp_status ghp_p2p_thread_wait(struct ghp_p2p_thread *c, int message)
{
    bool idle;

    pthread_mutex_lock(&c->lock);
    c->waits = c->state[message] != IDLE;
    if (c->waits) pthread_cond_signal(&c->posted);
    while (c->state[message] != IDLE && c->status == GHP_OK)
        pthread_cond_wait(&c->done, &c->lock);
    c->waits = false;
    idle = c->state[message] == IDLE;
    pthread_mutex_unlock(&c->lock);
    return idle ? GHP_OK : ghp_task_thread_wait(c->thread, 1); /* serving failed, so it is done */
}
