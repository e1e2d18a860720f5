/* executor/engine/worker/replicas.c - weights that differ between workers (core/program/sync.h): their average when it
 * is due, and their mean for readers of weights between two averages. */
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"

#include <stdlib.h>
#include <string.h>

bool ghp_worker_averages(const struct ghp_instr *instr, const struct ghp_step *of)
{
    return (of->index + 1) % (uint64_t)instr->period == 0;
}

bool ghp_worker_has_replicas(const struct ghp_worker *w)
{
    return w->program.replicas > 1 && w->run.weight_owner == NULL;
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

static enum ghp_status average(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int element_bytes = ghp_parameter_bytes(w->program.element_bytes);

    if (i == w->dropped) return GHP_OK;
    GHP_TRY(ghp_worker_sum(w, i, instr->at.y, instr->bytes));
    divide(w->address[instr->at.y], instr->bytes / element_bytes, element_bytes,
           instr->ranks.count);
    return GHP_OK;
}

const struct ghp_run_kind ghp_run_kind_average = {ghp_worker_post, average, GHP_FAILPOINT_AVERAGE};

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

/* ---- of workers who mix ---- */

/* All workers, at this point. */
static enum ghp_status meet(struct ghp_worker *w, struct ghp_comm **world)
{
    struct ghp_transport *transport = w->exec.transport;
    struct ghp_ranks all = {.count = w->program.problem.workers, .stride = 1};

    *world = NULL;
    if (all.count == 1) return GHP_OK;
    GHP_TRY(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, world));
    (*world)->label = "the mean of all workers";
    return ghp_control_barrier(transport->control, *world);
}

/* What lies at `data` becomes the mean of all workers'. */
static enum ghp_status average_at(struct ghp_worker *w, struct ghp_comm *world, void *data,
                                  int64_t bytes)
{
    int element_bytes = ghp_parameter_bytes(w->program.element_bytes);
    struct ghp_reduction sum = {
        .in = data, .out = data, .elements = bytes / element_bytes, .element_bytes = element_bytes};
    enum ghp_status status;

    if (world == NULL) return GHP_OK;
    sum.scratch_bytes = ghp_receive_bytes(bytes, world->ranks.count);
    sum.scratch = ghp_alloc((size_t)sum.scratch_bytes, 1);
    status = ghp_control_agree(w->exec.transport->control, world,
                               sum.scratch == NULL ? GHP_NO_MEMORY() : GHP_OK);
    if (status == GHP_OK) status = world->ops->all_reduce(world, &sum);
    if (status == GHP_OK) divide(data, sum.elements, element_bytes, world->ranks.count);
    free(sum.scratch);
    return status;
}

/* Running statistics lie by themselves: saves them one after the other, or brings them back. */
static void copy_states(struct ghp_worker *w, bool back)
{
    char *at = w->saved_states;

    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &w->program.buffers[i];

        if (b->buffer_kind != GHP_BUFFER_STATE) continue;
        memcpy(back ? w->address[i] : (void *)at, back ? (void *)at : w->address[i],
               (size_t)b->bytes);
        at += b->bytes;
    }
}

static enum ghp_status save_states(struct ghp_worker *w)
{
    int64_t bytes = 0;

    for (int i = 0; i < w->program.n_buffers; i++)
        if (w->program.buffers[i].buffer_kind == GHP_BUFFER_STATE)
            bytes += w->program.buffers[i].bytes;
    if (w->saved_states == NULL) w->saved_states = ghp_alloc((size_t)bytes + 1, 1);
    if (w->saved_states == NULL) return GHP_NO_MEMORY();
    copy_states(w, false);
    return GHP_OK;
}

enum ghp_status ghp_worker_settle_mixes(struct ghp_worker *w)
{
    return w->mixer != NULL ? w->run.mixing->settle(w->mixer) : GHP_OK;
}

/* The servers' weights, or the mean of all workers'; of statistics always the mean. */
static enum ghp_status take_mixed(struct ghp_worker *w)
{
    const struct ghp_bucket *bucket = &w->program.buckets[0];
    struct ghp_comm *world;

    GHP_TRY(ghp_worker_settle_mixes(w));
    GHP_TRY(meet(w, &world));
    GHP_TRY(save_states(w));
    GHP_TRY(copy_weights(w, false));
    if (w->program.servers > 0)
        GHP_TRY(w->run.mixing->move(w->mixer, GHP_BUFFER_WEIGHT, true));
    else
        GHP_TRY(average_at(w, world, w->address[bucket->weights], bucket->bytes));
    for (int i = 0; i < w->program.n_buffers; i++)
        if (w->program.buffers[i].buffer_kind == GHP_BUFFER_STATE)
            GHP_TRY(average_at(w, world, w->address[i], w->program.buffers[i].bytes));
    return GHP_OK;
}

enum ghp_status ghp_worker_give_weights(struct ghp_worker *w)
{
    ghp_worker_restart_ema(w);
    if (w->mixer == NULL || w->program.servers == 0) return GHP_OK;
    return w->run.mixing->move(w->mixer, GHP_BUFFER_WEIGHT, false);
}

enum ghp_status ghp_worker_take_mean(struct ghp_worker *w)
{
    if (w->mixer != NULL) return take_mixed(w);
    ghp_worker_swap_ema(w);
    if (!ghp_worker_has_replicas(w)) return GHP_OK;
    GHP_ASSERT(!w->updates_pending);
    GHP_TRY(copy_weights(w, false));
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_AVERAGE) GHP_TRY(average(w, i));
    return GHP_OK;
}

enum ghp_status ghp_worker_return_mean(struct ghp_worker *w)
{
    ghp_worker_swap_ema(w);
    if (w->mixer != NULL) copy_states(w, true);
    return ghp_worker_has_replicas(w) || w->mixer != NULL ? copy_weights(w, true) : GHP_OK;
}
