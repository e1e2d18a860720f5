/* bench/runs/case_plan.c - the plan that a publication's system trained by, as ghp's splits and stages. */
#include "bench/runs/case.h"

#include "core/optimizer/optimizer.h"
#include "core/plan/plan.h"
#include "planner/expect/degrees.h"

#include <stdlib.h>
#include <string.h>

/* Gradients that a system reduces together. Systems that begin after the backward pass have one bucket of all. */
enum { ALL_BYTES = 1 };
static const struct {
    const char *system;
    int64_t bucket_bytes;
    int least_tp; /* it does so from this size of tensor parallelism on */
} buckets[] = {
    {"megatron", ALL_BYTES, 1},  /* its own DDP of 2021: megatron/model/distributed.py */
    {"chainermn", ALL_BYTES, 1}, /* pure_nccl's multi_node_mean_grad, in its optimizers.py */
    /* with tensor parallelism it computes and reduces in one stream: nccl_use_compute_stream, in its GPT's setting
     * up */
    {"oneflow-gpt", ALL_BYTES, 2},
    {"", (int64_t)25 << 20, 1}, /* torch.nn.parallel.DistributedDataParallel, bucket_cap_mb */
};

/* Words of the sharding column. PyTorch's FSDP names its strategies in torch.distributed.fsdp.ShardingStrategy. */
static const struct {
    const char *word;
    enum ghp_param_sharding sharding;
} shardings[] = {
    {"hybrid_shard", GHP_SHARDING_COUNT},
    {"full_shard", GHP_SHARDING_PASS},
    {"shard_grad_op", GHP_SHARDING_MICRO_BATCH},
    {"zero-3", GHP_SHARDING_PASS},
    {"zero3", GHP_SHARDING_PASS},
    {"zero-2", GHP_SHARDING_GRADIENTS},
    {"zero2", GHP_SHARDING_GRADIENTS},
    {"fsdp", GHP_SHARDING_PASS},
    {"optimizer", GHP_SHARDING_NONE},
    {"zero-1", GHP_SHARDING_NONE},
    {"zero1", GHP_SHARDING_NONE},
};

bool ghp_run_case_sharding(const struct ghp_run_row *row, enum ghp_param_sharding *sharding)
{
    *sharding = GHP_SHARDING_NONE;
    for (size_t i = 0; i < sizeof shardings / sizeof shardings[0]; i++) {
        if (!ghp_run_row_has(row, GHP_COLUMN_SHARDING, shardings[i].word)) continue;
        *sharding = shardings[i].sharding;
        return *sharding != GHP_SHARDING_COUNT;
    }
    return false;
}

/* Shards all matrices. */
static void set_sharding(struct ghp_run_case *item)
{
    enum ghp_param_sharding sharding;

    if (!ghp_run_case_sharding(item->row, &sharding) || sharding == GHP_SHARDING_NONE) return;
    for (int v = 0; v < item->model.n_layers; v++) {
        const struct ghp_layer *layer = &item->model.layers[v];
        struct ghp_split split = item->splits[v];

        split.sharding = sharding;
        if ((layer->op != GHP_OP_LINEAR && layer->op != GHP_OP_EMBEDDING) ||
            ghp_sharding_check(layer, split, item->lowering.problem) != GHP_OK)
            continue;
        item->splits[v] = split;
    }
    ghp_degrees_share_latency(&item->model, item->splits, &item->machine);
}

/* Micro-batches: as the row says, or else the global batch over what all replicas take at once. Tensor parallelism
 * leaves open whose batch a device's is: without a word of accumulation one micro-batch is enough if it can be. Stages
 * have more than one, or all but one of them would wait. */
static int micro_batches(const struct ghp_run_case *item, int64_t replicas, int stages)
{
    int64_t global = item->lowering.problem.global_batch;
    int64_t each = ghp_run_row_number(item->row, GHP_COLUMN_DEVICE_BATCH, 0);
    int64_t said = ghp_run_row_before(item->row, GHP_COLUMN_NOTE, " accumulation steps");

    if (said > 0 && said <= global) return (int)said;
    if (each < 1 || each * replicas >= global) return 1;
    if (each * item->devices == global && stages < 2) return 1;
    return (int)(global / (each * replicas));
}

/* Systems whose attention wrote its scores to memory in the year of the source: before flash attention (Dao et al.,
 * arXiv 2205.14135, May 2022), or by Megatron-LM's and OneFlow's own kernels, which the note of a row overrides. */
static bool stores_scores(const struct ghp_run_row *row)
{
    static const char *const years[] = {"2019", "2020", "2021"};

    if (ghp_run_row_has(row, GHP_COLUMN_NOTE, "flash")) return false;
    for (size_t i = 0; i < sizeof years / sizeof years[0]; i++)
        if (ghp_run_row_has(row, GHP_COLUMN_SOURCE, years[i])) return true;
    return false;
}

static int64_t bucket_bytes(const struct ghp_run_case *item, int tp)
{
    size_t i = 0;

    while (buckets[i].system[0] != '\0' &&
           (!ghp_run_row_has(item->row, GHP_COLUMN_SYSTEM, buckets[i].system) ||
            tp < buckets[i].least_tp))
        i++;
    return buckets[i].bucket_bytes == ALL_BYTES ? INT64_MAX / 4 : buckets[i].bucket_bytes;
}

enum ghp_status ghp_run_case_plan(struct ghp_run_case *item)
{
    const struct ghp_run_row *row = item->row;
    int tp = ghp_run_row_count(row, GHP_COLUMN_TP, 1);
    int pp = ghp_run_row_count(row, GHP_COLUMN_PP, 1);
    int64_t batch = ghp_run_row_number(row, GHP_COLUMN_GLOBAL_BATCH, 0);
    int replicas = tp > 0 && pp > 0 ? item->devices / (tp * pp) : 0;
    struct ghp_degrees degrees = {tp, pp, ghp_run_row_has(row, GHP_COLUMN_RECOMPUTE, "full")};

    item->lowering = (struct ghp_lowering){.model = &item->model,
                                           .problem = {item->devices, batch},
                                           .element_bytes = item->precision.element_bytes};
    item->splits = ghp_alloc((size_t)item->model.n_layers, sizeof *item->splits);
    item->recompute = ghp_alloc((size_t)item->model.n_layers, sizeof *item->recompute);
    if (item->splits == NULL || item->recompute == NULL) return GHP_NO_MEMORY();
    if (ghp_degrees_staging(&item->model, item->lowering.problem, &degrees,
                            micro_batches(item, replicas > 0 ? replicas : 1, pp), item->recompute,
                            &item->staging) != GHP_OK ||
        ghp_degrees_splits(&item->model,
                           ghp_degrees_problem(item->lowering.problem, &degrees,
                                               ghp_staging_micro_batches(&item->staging)),
                           &degrees, item->splits) != GHP_OK) {
        ghp_run_case_refuse(item, "%s", ghp_status_message());
        return GHP_OK;
    }
    set_sharding(item);
    item->lowering.staging = ghp_staging_trivial(&item->staging) && item->staging.recompute == NULL
                                 ? NULL
                                 : &item->staging;
    item->stores_scores = stores_scores(row);
    item->lowering.method.bucket_bytes = bucket_bytes(item, tp);
    if (ghp_run_row_has(row, GHP_COLUMN_PRECISION, "fp16")) item->lowering.reduced_bytes = 2;
    if (ghp_has_attention(&item->model)) item->lowering.method.optimizer = &ghp_optimizer_adamw;
    return GHP_OK;
}
