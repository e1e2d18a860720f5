/* executor/state/checkpoint_predict.c - see checkpoint.h: what an image takes, before it is made. */
#include "executor/state/checkpoint_private.h"

#include "core/base/clock.h"
#include "core/model/safetensors.h"
#include "core/program/lower/points.h"
#include "executor/state/parameters.h"

/* Seconds to copy `bytes` bytes; 0 if copies are free in the profile. */
static double copy_s(const struct ghp_profile *profile, int64_t bytes)
{
    const struct ghp_rate *rate = &profile->copy;

    return rate->bandwidth_Bps > 0 ? rate->latency_s + (double)bytes / rate->bandwidth_Bps : 0;
}

struct sum {
    const struct ghp_profile *profile;
    int workers;
    double seconds;
};

/* Adds what one collective takes. */
static enum ghp_status add_comm(struct sum *sum, enum ghp_comm_op op, int64_t bytes,
                                struct ghp_ranks ranks)
{
    struct ghp_cost cost = {0};

    if (ranks.count < 2) return GHP_OK;
    GHP_TRY(ghp_profile_comm(sum->profile, op, bytes, ranks, sum->workers, &cost));
    sum->seconds += cost.seconds;
    return GHP_OK;
}

/* Entry i: gathered from who hold it together, or sent by its stage to one worker after the other; copied once more
 * if it lies in parts, and if in blocks; and each replica's. */
static enum ghp_status add_entry(struct ghp_worker *worker, const struct ghp_checkpoint_contents *c,
                                 int i, struct sum *sum)
{
    const struct ghp_placement *placement = ghp_worker_placement(worker);
    const struct ghp_checkpoint_entry *e = &c->entries[i];
    const struct ghp_ranks all = {.count = sum->workers, .stride = 1},
                           pair = {.count = 2, .stride = 1};
    int64_t bytes = ghp_checkpoint_entry_bytes(c, i);
    int parts;

    if (e->worker > 0) return GHP_OK;
    sum->seconds += copy_s(sum->profile, bytes);
    if (e->worker == 0) GHP_TRY(add_comm(sum, GHP_COMM_ALL_GATHER, bytes * sum->workers, all));
    if (!ghp_worker_owns(worker, e->tensor->layer))
        return add_comm(sum, GHP_COMM_TRANSFER, bytes, pair);
    for (int r = placement->held; r < placement->group; r++)
        GHP_TRY(add_comm(sum, GHP_COMM_TRANSFER, bytes, pair));
    parts = ghp_parameters_parts(worker, e->tensor);
    if (parts > 1) sum->seconds += copy_s(sum->profile, bytes);
    if (!e->tensor->is_state && ghp_worker_blocks_weights(worker, e->tensor->layer))
        sum->seconds += copy_s(sum->profile, bytes);
    GHP_TRY(
        add_comm(sum, GHP_COMM_ALL_GATHER, bytes, (struct ghp_ranks){.count = parts, .stride = 1}));
    if (!ghp_buffer_kind_is_moment(e->buffer_kind) ||
        !ghp_worker_has_optimizer_shard(worker, e->tensor->layer))
        return GHP_OK;
    return add_comm(sum, GHP_COMM_ALL_GATHER, bytes / parts,
                    ghp_ranks_replica(placement->number, parts, placement->problem.workers));
}

/* Seconds of a core that the checksum takes for one byte, tried on some. */
static double checksum_s(void)
{
    static const char some[1 << 16];
    double begin_s = ghp_thread_cpu_s();
    volatile uint64_t sum = ghp_safetensors_sum(some, sizeof some);

    (void)sum;
    return (ghp_thread_cpu_s() - begin_s) / (double)sizeof some;
}

enum ghp_status ghp_checkpoint_predict(struct ghp_worker *worker, const struct ghp_profile *profile,
                                       struct ghp_checkpoint_prediction *prediction)
{
    struct sum sum = {.profile = profile, .workers = ghp_worker_program(worker)->problem.workers};
    struct ghp_checkpoint_contents c = {0};
    enum ghp_status status = ghp_checkpoint_contents_init(worker, &c);

    *prediction = (struct ghp_checkpoint_prediction){.image_bytes = c.bytes};
    for (int i = 0; i < c.n && status == GHP_OK; i++)
        status = add_entry(worker, &c, i, &sum);
    prediction->gather_s = sum.seconds;
    prediction->core_s = checksum_s() * (double)c.bytes + copy_s(profile, c.bytes);
    if (status == GHP_ERR_MISSING) {
        prediction->gather_s = -1;
        status = GHP_OK;
    }
    ghp_checkpoint_contents_release(&c);
    return status;
}
