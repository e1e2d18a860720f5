/* executor/engine/worker/ema.c - an exponential moving average of this worker's weights, next to them in host memory.
 *
 * It begins with the first weights. After each step e = decay e + (1 - decay) w. Running statistics are the training's
 * own. */
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"
#include "executor/platform/parallel.h"

#include <string.h>

enum { ALONE_ELEMENTS = 1 << 14, SWAPPED_BYTES = 4096 };

struct ema_job { /* of one parameter */
    void *weights, *means;
    int64_t n;
    int element_bytes;
    double decay;
    void (*visit)(const struct ema_job *job, int64_t first, int64_t end);
};

static void add(const struct ema_job *job, int64_t first, int64_t end)
{
    const double *wide = job->weights;
    const float *narrow = job->weights;
    double *wide_means = job->means;
    float *narrow_means = job->means;

    for (int64_t i = first; i < end && job->element_bytes == 8; i++)
        wide_means[i] = job->decay * wide_means[i] + (1 - job->decay) * wide[i];
    for (int64_t i = first; i < end && job->element_bytes != 8; i++)
        narrow_means[i] =
            (float)(job->decay * (double)narrow_means[i] + (1 - job->decay) * (double)narrow[i]);
}

static void copy(const struct ema_job *job, int64_t first, int64_t end)
{
    size_t size = (size_t)job->element_bytes, at = (size_t)first * size;

    memcpy((char *)job->means + at, (char *)job->weights + at, (size_t)(end - first) * size);
}

static void swap(const struct ema_job *job, int64_t first, int64_t end)
{
    size_t size = (size_t)job->element_bytes;
    char *a = (char *)job->weights + (size_t)first * size,
         *b = (char *)job->means + (size_t)first * size;

    for (size_t i = 0, n = (size_t)(end - first) * size, step; i < n; i += step) {
        char kept[SWAPPED_BYTES];

        step = n - i < sizeof kept ? n - i : sizeof kept;
        memcpy(kept, a + i, step);
        memcpy(a + i, b + i, step);
        memcpy(b + i, kept, step);
    }
}

static void run_part(void *context, struct ghp_part part)
{
    const struct ema_job *job = context;
    struct ghp_range range = ghp_part_range(part, job->n, 16);

    job->visit(job, range.first, range.end);
}

static bool has_mean(const struct ghp_worker *w, int buffer)
{
    const struct ghp_buffer *b = &w->program.buffers[buffer];

    return b->buffer_kind == GHP_BUFFER_WEIGHT && ghp_layer_trains(w->program.model, b->layer);
}

/* All parameters that train. */
static void each(struct ghp_worker *w,
                 void (*visit)(const struct ema_job *job, int64_t first, int64_t end))
{
    char *at = w->ema;

    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &w->program.buffers[i];
        struct ema_job job = {.weights = w->address[i],
                              .means = at,
                              .n = b->elements,
                              .element_bytes = ghp_parameter_bytes(w->program.element_bytes),
                              .decay = w->ema_decay,
                              .visit = visit};

        if (!has_mean(w, i)) continue;
        ghp_parallel(b->elements < ALONE_ELEMENTS || w->run.threads < 1 ? 1 : w->run.threads,
                     run_part, &job);
        at += b->elements * job.element_bytes;
    }
}

enum ghp_status ghp_worker_open_ema(struct ghp_worker *w, double decay)
{
    int64_t elements = 0;

    for (int i = 0; i < w->program.n_buffers; i++)
        if (has_mean(w, i)) elements += w->program.buffers[i].elements;
    w->ema = ghp_alloc((size_t)elements + 1, (size_t)ghp_parameter_bytes(w->program.element_bytes));
    if (w->ema == NULL) return GHP_NO_MEMORY();
    w->ema_decay = decay;
    each(w, copy);
    return GHP_OK;
}

double ghp_worker_ema(const struct ghp_worker *w)
{
    return w->ema != NULL ? w->ema_decay : 0;
}

void ghp_worker_feed_ema(struct ghp_worker *w)
{
    if (w->ema != NULL) each(w, add);
}

void ghp_worker_swap_ema(struct ghp_worker *w)
{
    if (w->ema != NULL) each(w, swap);
}

void ghp_worker_restart_ema(struct ghp_worker *w)
{
    if (w->ema != NULL) each(w, copy);
}
