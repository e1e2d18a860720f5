/* executor/data/prefetch.c - see data/prefetch.h.
 *
 * `state` is the number of the present demand in its upper half and the samples made for it in the lower. Even numbers
 * are of demands, odd ones say that there is none. The thread reads the state, makes the next samples (as many as the
 * load has threads, one by each), and adds them only if the state is still what it read; so samples that were begun for
 * an earlier demand never count. The taker first puts an odd number there: from then on nothing more counts, and what
 * counts by then is not written again before the next hint. A late thread can still be at the samples after these,
 * which the taker makes for itself without looking. */
#include "executor/data/prefetch.h"

#include "executor/platform/task_thread.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { DEMAND_SHIFT = 32, THREADS_MOST = 256 };

struct ghp_prefetch {
    struct ghp_load load;
    unsigned char *place;
    /* the demand as the thread sees it: written only while there is none */
    _Atomic(struct ghp_data *) data;
    atomic_int set;
    _Atomic int64_t epoch;
    _Atomic int64_t *samples; /* [load.images] */
    struct ghp_supply hinted; /* the same as the taker remembers it; samples owned: the load's */
    atomic_uint_fast64_t state;
    atomic_bool ending;
    struct ghp_prefetch_count count;
    sem_t wanted;
    struct ghp_task_thread *thread; /* its one job is to serve all demands */
};

static bool is_demand(uint_fast64_t state)
{
    return (state >> DEMAND_SHIFT) % 2 == 0;
}

static int64_t made_of(uint_fast64_t state)
{
    return (int64_t)(state & UINT32_MAX);
}

/* ---- the thread ---- */

/* Makes samples i to i + n - 1, each by a thread: a failure shows when they are taken. */
static bool make_samples(struct ghp_prefetch *a, int64_t i, int64_t n)
{
    struct ghp_load load = a->load;
    int64_t samples[THREADS_MOST];
    struct ghp_supply supply = {
        .data = atomic_load_explicit(&a->data, memory_order_relaxed),
        .set = (enum ghp_data_set)atomic_load_explicit(&a->set, memory_order_relaxed),
        .epoch = atomic_load_explicit(&a->epoch, memory_order_relaxed),
        .samples = samples,
        .n = n};

    for (int64_t s = 0; s < n; s++)
        samples[s] = atomic_load_explicit(&a->samples[i + s], memory_order_relaxed);
    load.first_image = 0;
    load.images = n;
    return ghp_samples_images(&load, &supply, (struct ghp_range){0, n},
                              a->place + i * load.image_bytes) == GHP_OK;
}

/* Makes what is asked for, until there is nothing left or the demand is over. */
static void serve_demand(struct ghp_prefetch *a)
{
    int64_t most = a->load.threads < THREADS_MOST ? a->load.threads : THREADS_MOST;

    for (;;) {
        uint_fast64_t state = atomic_load_explicit(&a->state, memory_order_acquire);
        int64_t made = made_of(state), n = a->load.images - made;

        if (!is_demand(state) || n == 0 || atomic_load_explicit(&a->ending, memory_order_relaxed))
            return;
        if (n > most) n = most;
        if (!make_samples(a, made, n)) return;
        atomic_compare_exchange_strong_explicit(&a->state, &state, state + (uint_fast64_t)n,
                                                memory_order_acq_rel, memory_order_relaxed);
    }
}

/* One job for all demands: posting one for each would share a lock with a thread that may have to wait for its core. */
static enum ghp_status serve(void *context, int job)
{
    struct ghp_prefetch *a = context;

    (void)job;
    /* if the system refuses, it works as any other thread: results and the taker's part stay the same */
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0});
    while (!atomic_load_explicit(&a->ending, memory_order_acquire)) {
        if (sem_wait(&a->wanted) == 0) serve_demand(a);
    }
    return GHP_OK;
}

/* ---- who asks and takes ---- */

/* Ends the demand; returns how many of its samples are there. */
static int64_t end_demand(struct ghp_prefetch *a)
{
    uint_fast64_t state = atomic_load_explicit(&a->state, memory_order_relaxed), none;

    if (!is_demand(state)) return 0;
    none = ((state >> DEMAND_SHIFT) + 1) << DEMAND_SHIFT;
    return made_of(atomic_exchange_explicit(&a->state, none, memory_order_acq_rel));
}

void ghp_prefetch_hint(struct ghp_prefetch *a, const struct ghp_supply *next)
{
    const struct ghp_load *load = &a->load;
    const int64_t *samples = next->samples + load->first_image;
    uint_fast64_t state;

    end_demand(a);
    if (ghp_samples_check(load, next) != GHP_OK) return; /* it shows when it is taken */
    memcpy((int64_t *)(uintptr_t)a->hinted.samples, samples,
           (size_t)load->images * sizeof *samples);
    a->hinted.data = next->data;
    a->hinted.set = next->set;
    a->hinted.epoch = next->epoch;
    for (int64_t i = 0; i < load->images; i++)
        atomic_store_explicit(&a->samples[i], samples[i], memory_order_relaxed);
    atomic_store_explicit(&a->data, next->data, memory_order_relaxed);
    atomic_store_explicit(&a->set, (int)next->set, memory_order_relaxed);
    atomic_store_explicit(&a->epoch, next->epoch, memory_order_relaxed);
    state = atomic_load_explicit(&a->state, memory_order_relaxed);
    atomic_store_explicit(&a->state, ((state >> DEMAND_SHIFT) + 1) << DEMAND_SHIFT,
                          memory_order_release);
    sem_post(&a->wanted);
}

static bool is_hinted(const struct ghp_prefetch *a, const struct ghp_supply *s)
{
    return a->hinted.data == s->data && a->hinted.set == s->set && a->hinted.epoch == s->epoch &&
           memcmp(a->hinted.samples, s->samples + a->load.first_image,
                  (size_t)a->load.images * sizeof *s->samples) == 0;
}

enum ghp_status ghp_prefetch_take(struct ghp_prefetch *a, const struct ghp_supply *supply,
                                  void *images)
{
    int64_t made = end_demand(a), n = a->load.images;

    if (made > 0 && !is_hinted(a, supply)) made = 0;
    if (made > 0) memcpy(images, a->place, (size_t)(made * a->load.image_bytes));
    GHP_TRY(ghp_samples_images(&a->load, supply, (struct ghp_range){made, n}, images));
    a->count.made += made;
    a->count.taken += n;
    return GHP_OK;
}

struct ghp_prefetch_count ghp_prefetch_counted(const struct ghp_prefetch *a)
{
    return a != NULL ? a->count : (struct ghp_prefetch_count){0};
}

/* ---- opening and closing ---- */

enum ghp_status ghp_prefetch_open(const struct ghp_load *load, void *place,
                                  struct ghp_prefetch **prefetch)
{
    struct ghp_prefetch *a = ghp_alloc(1, sizeof *a);
    enum ghp_status status = GHP_OK;

    *prefetch = NULL;
    if (a == NULL) return GHP_NO_MEMORY();
    a->load = *load;
    a->place = place;
    a->samples = ghp_alloc((size_t)load->images, sizeof *a->samples);
    a->hinted.samples = ghp_alloc((size_t)load->images, sizeof *a->hinted.samples);
    atomic_init(&a->state, (uint_fast64_t)1 << DEMAND_SHIFT); /* none */
    sem_init(&a->wanted, 0, 0);
    if (a->samples == NULL || a->hinted.samples == NULL) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_task_thread_open(1, serve, a, &a->thread);
    if (status != GHP_OK) {
        ghp_prefetch_close(a);
        return status;
    }
    ghp_task_thread_post(a->thread, 0);
    *prefetch = a;
    return GHP_OK;
}

void ghp_prefetch_close(struct ghp_prefetch *a)
{
    if (a == NULL) return;
    end_demand(a);
    atomic_store_explicit(&a->ending, true, memory_order_release);
    sem_post(&a->wanted);
    ghp_task_thread_close(a->thread);
    sem_destroy(&a->wanted);
    free(a->samples);
    free((int64_t *)(uintptr_t)a->hinted.samples);
    free(a);
}
