/* executor/engine/worker_replicas.c - weights that differ between workers (core/program/sync.h): their average when it
 * is due, and their mean for whoever reads weights between two averages. */
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"

bool ghp_worker_averages(const struct ghp_instr *instr, const struct ghp_step *of)
{
    return (of->index + 1) % (uint64_t)instr->period == 0;
}

bool ghp_worker_has_replicas(const struct ghp_worker *w)
{
    return ghp_sync_replicas(w->work.sync, w->work.problem.workers) > 1 && w->work.lender == NULL;
}

/* In host memory: a device's worker with replicas is not opened. */
static void divide(void *sums, int64_t n, int element_bytes, int by)
{
    double *wide = sums;
    float *narrow = sums;

    for (int64_t i = 0; i < n && element_bytes == 8; i++)
        wide[i] /= by;
    for (int64_t i = 0; i < n && element_bytes != 8; i++)
        narrow[i] /= (float)by;
}

enum ghp_status ghp_worker_average(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int element_bytes = ghp_parameter_bytes(w->work.element_bytes);

    if (i == w->dropped) return GHP_OK;
    GHP_TRY(ghp_worker_sum(w, i, instr->at.y, instr->bytes));
    divide(w->address[instr->at.y], instr->bytes / element_bytes, element_bytes,
           instr->ranks.count);
    return GHP_OK;
}

/* All buckets of weights, or back from where take_mean left them. */
static enum ghp_status copy_weights(struct ghp_worker *w, bool back)
{
    for (int b = 0; b < w->program.n_buckets; b++) {
        const struct ghp_bucket *bucket = &w->program.buckets[b];
        int to = back ? bucket->weights : bucket->buffer,
            from = back ? bucket->buffer : bucket->weights;

        GHP_TRY(ghp_device_copy(w->arena.device, GHP_DEVICE_STREAM_COMPUTE,
                                (struct ghp_copy){w->address[to], w->address[from], bucket->bytes,
                                                  GHP_COPY_ON_DEVICE}));
    }
    return ghp_device_finish(w->arena.device, GHP_DEVICE_STREAM_COMPUTE);
}

enum ghp_status ghp_worker_take_mean(struct ghp_worker *w)
{
    if (!ghp_worker_has_replicas(w)) return GHP_OK;
    GHP_ASSERT(!w->updates_pending);
    GHP_TRY(copy_weights(w, false));
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_AVERAGE) GHP_TRY(ghp_worker_average(w, i));
    return GHP_OK;
}

enum ghp_status ghp_worker_return_mean(struct ghp_worker *w)
{
    return ghp_worker_has_replicas(w) ? copy_weights(w, true) : GHP_OK;
}
