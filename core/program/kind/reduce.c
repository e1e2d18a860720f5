/* core/program/kind/reduce.c - sums over workers, of a layer's statistics, of norms, of buckets of gradients and
 * weights, and of the metrics; and the gather of what each worker has updated. */
#include "core/program/liveness.h"
#include "core/program/lower/buffer_assignment_private.h"

enum { LAST_WIDENED_BYTES = 64 << 10 }; /* of a gather in bfloat16: by way of scratch */

int64_t ghp_receive_bytes(int64_t bytes, int ranks)
{
    int64_t segment = bytes < GHP_COMM_SEGMENT_BYTES ? bytes : GHP_COMM_SEGMENT_BYTES;
    int64_t least = (int64_t)ranks * GHP_ALIGN_BYTES;
    int64_t row = (int64_t)ranks * (int64_t)sizeof(double); /* the longest element of each */

    segment = (segment + row - 1) / row * row;
    if (segment < least) segment = least;
    return ghp_align(segment);
}

int64_t ghp_instr_receive_bytes(const struct ghp_instr *instr)
{
    if (instr->kind == GHP_INSTR_GATHER && !instr->in_bf16) return 0;
    if (instr->kind == GHP_INSTR_GATHER)
        return ghp_align(instr->bytes < LAST_WIDENED_BYTES ? instr->bytes : LAST_WIDENED_BYTES);
    return ghp_receive_bytes(instr->bytes, instr->ranks.count) +
           (instr->in_bf16 ? ghp_align(instr->bytes) : 0);
}

static enum ghp_status work(const struct ghp_lowering *lowering, const struct ghp_instr *instr,
                            struct ghp_instr_scratch *scratch)
{
    (void)lowering;
    scratch->work_bytes = ghp_receive_bytes(instr->bytes, instr->ranks.count);
    return GHP_OK;
}

/* at.stats, in place. */
static void accesses_stats(const struct ghp_lowering *lowering, const struct ghp_program *program,
                           int index, struct ghp_accesses *t)
{
    const struct ghp_instr *instr = &program->instrs[index];

    (void)lowering;
    ghp_accesses_add(t, (struct ghp_access){ghp_instr_stats(instr), instr->layer,
                                            .operand = GHP_OPERAND(stats)});
}

const struct ghp_kind_facts ghp_kind_facts_stat_reduce = {
    .name = "stat_reduce",
    .purpose =
        "sums statistics of a batch norm, or rows of a loss, over workers; these wait for it",
    .phase = GHP_PHASE_RESHARD,
    .comm = GHP_COMM_ALL_REDUCE,
    .is_double = true,
    .writes = GHP_AT_STATS,
    .accesses = accesses_stats,
    .work = work,
};

const struct ghp_kind_facts ghp_kind_facts_all_reduce = {
    .name = "all_reduce",
    .purpose = "sums a bucket of weight gradients over workers",
    .stream = GHP_STREAM_COMM,
    .comm = GHP_COMM_ALL_REDUCE,
    .reduces = true,
    .y = GHP_LASTING_GRADIENTS,
    .scratch = GHP_LASTING_RECEIVE,
};

/* Each micro-batch's gradients have a buffer of their own, if each is reduced; what is left of the first lies in the
 * optimizer shard, of a further one in its place in the buffer. A sum over groups is of what is left, in place: who
 * waits for it waits for the reduction before it, too, whose the buffer is until then. */
static void assign_scattered(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    bool further = ghp_sharding_reduces_each(instr->sharding) && instr->micro > 0;

    instr->at.x[0] = k->bucket_now[instr->bucket];
    instr->at.y =
        further ? k->part_now[instr->bucket] : k->program->buckets[instr->bucket].gradient_shard;
}

const struct ghp_kind_facts ghp_kind_facts_reduce_scatter = {
    .name = "reduce_scatter",
    .purpose = "sums a bucket of weight gradients, each worker's optimizer shard on that worker",
    .stream = GHP_STREAM_COMM,
    .comm = GHP_COMM_REDUCE_SCATTER,
    .reduces = true,
    .scratch = GHP_LASTING_RECEIVE,
    .assign = assign_scattered,
};

const struct ghp_kind_facts ghp_kind_facts_shard_reduce = {
    .name = "shard_reduce",
    .purpose = "sums an optimizer shard of gradients over the groups of workers that each have all",
    .stream = GHP_STREAM_COMM,
    .comm = GHP_COMM_ALL_REDUCE,
    .reduces = true,
    .scratch = GHP_LASTING_RECEIVE,
    .assign = assign_scattered,
};

const struct ghp_kind_facts ghp_kind_facts_all_gather = {
    .name = "all_gather",
    .purpose = "a bucket of weights from the optimizer shards that workers have updated",
    .stream = GHP_STREAM_COMM,
    .comm = GHP_COMM_ALL_GATHER,
    .of_updates = true,
    .x = GHP_LASTING_WEIGHT_SHARD,
    .y = GHP_LASTING_WEIGHTS,
};

/* at.x[0], the shard -> at.y. */
static void accesses_gathered(const struct ghp_lowering *lowering,
                              const struct ghp_program *program, int index, struct ghp_accesses *t)
{
    (void)lowering;
    ghp_accesses_add(t, (struct ghp_access){GHP_TENSOR_WEIGHTS, program->instrs[index].layer,
                                            .operand = GHP_OPERAND(y), .writes = true});
}

static void assign_gather(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    instr->at.x[0] = k->weight_shard[instr->layer];
}

const struct ghp_kind_facts ghp_kind_facts_gather = {
    .name = "gather",
    .purpose = "a layer's weights from the shards that workers have of them, before a pass",
    .stream = GHP_STREAM_COMM,
    .comm = GHP_COMM_ALL_GATHER,
    .writes = GHP_AT_Y,
    .scratch = GHP_LASTING_RECEIVE,
    .accesses = accesses_gathered,
    .assign = assign_gather,
};

const struct ghp_kind_facts ghp_kind_facts_average = {
    .name = "average",
    .purpose =
        "a bucket of weights becomes the mean of all workers', after a fixed number of steps",
    .stream = GHP_STREAM_COMM,
    .comm = GHP_COMM_ALL_REDUCE,
    .of_updates = true,
    .y = GHP_LASTING_WEIGHTS,
    .scratch = GHP_LASTING_RECEIVE,
};

const struct ghp_kind_facts ghp_kind_facts_metric_reduce = {
    .name = "metric_reduce",
    .purpose = "sums the loss and the correct answers over workers",
    .of_all = "metrics",
    .stream = GHP_STREAM_COMM,
    .comm = GHP_COMM_ALL_REDUCE,
    .is_double = true,
    .metrics = GHP_LASTING_METRICS,
    .scratch = GHP_LASTING_RECEIVE,
};

const struct ghp_kind_facts ghp_kind_facts_norm_reduce = {
    .name = "norm_reduce",
    .purpose = "sums the squares of gradients over all workers of all stages, which wait for it",
    .of_all = "all gradients",
    .phase = GHP_PHASE_UPDATE,
    .comm = GHP_COMM_ALL_REDUCE,
    .is_double = true,
    .y = GHP_LASTING_SQUARES,
    .work = work,
};
