/* planner/expect/degrees.c - see degrees.h. */
#include "planner/expect/degrees.h"

#include <limits.h>
#include <string.h>

/* Whether a linear layer ends a pair: its inputs are divided, as Megatron-LM's RowParallelLinear. */
static bool is_second(const char *name)
{
    static const char *const ends[] = {"c_proj", "o_proj", "down_proj", NULL};

    for (int i = 0; ends[i] != NULL; i++)
        if (strstr(name, ends[i]) != NULL) return true;
    return false;
}

/* Tensor parallelism in transformers: Shoeybi et al., arXiv 1909.08053, section 3. */
static enum ghp_split_kind transformer_split(const struct ghp_model *model,
                                             const struct ghp_layer *layer)
{
    switch (layer->op) {
    case GHP_OP_BIAS:
        layer = &model->layers[layer->inputs[0]];
        return layer->op == GHP_OP_LINEAR && !is_second(layer->name) ? GHP_SPLIT_CHANNEL
                                                                     : GHP_SPLIT_FULL;
    case GHP_OP_LINEAR: return is_second(layer->name) ? GHP_SPLIT_IN : GHP_SPLIT_OUT;
    case GHP_OP_EMBEDDING: return GHP_SPLIT_ROWS;
    case GHP_OP_ATTENTION:
    case GHP_OP_ROTARY:
    case GHP_OP_GELU:
    case GHP_OP_SILU:
    case GHP_OP_MUL:
    case GHP_OP_SOFTMAX_CE: return GHP_SPLIT_CHANNEL;
    default: return GHP_SPLIT_FULL;
    }
}

/* Filters of convolutions and rows of linear layers, each layer's outputs gathered where the next reads them. */
static enum ghp_split_kind filter_split(const struct ghp_layer *layer)
{
    switch (layer->op) {
    case GHP_OP_CONV2D:
    case GHP_OP_LINEAR: return GHP_SPLIT_OUT;
    case GHP_OP_SOFTMAX_CE: return GHP_SPLIT_FULL;
    default: return GHP_SPLIT_CHANNEL;
    }
}

bool ghp_has_attention(const struct ghp_model *model)
{
    for (int v = 0; v < model->n_layers; v++)
        if (model->layers[v].op == GHP_OP_ATTENTION) return true;
    return false;
}

/* Whether a block of a transformer begins with the layer. */
static bool begins_block(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && (strcmp(dot, ".ln_1") == 0 || strcmp(dot, ".input_layernorm") == 0);
}

static enum ghp_status check_heads(const struct ghp_model *model, int tensor)
{
    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *layer = &model->layers[v];

        if (layer->op == GHP_OP_ATTENTION && layer->heads.n % tensor != 0)
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "tensor parallelism of %d does not divide the %lld heads of layer '%s'; "
                "use a divisor of the heads",
                tensor, (long long)layer->heads.n, layer->name);
    }
    return GHP_OK;
}

struct ghp_problem ghp_degrees_problem(struct ghp_problem whole, const struct ghp_degrees *degrees,
                                       int micro_batches)
{
    if (degrees->pipeline < 2) whole.global_batch /= micro_batches;
    return whole;
}

enum ghp_status ghp_degrees_splits(const struct ghp_model *model, struct ghp_problem problem,
                                   const struct ghp_degrees *degrees, struct ghp_split *splits)
{
    bool transformer = ghp_has_attention(model);

    GHP_TRY(check_heads(model, degrees->tensor));
    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *layer = &model->layers[v];

        splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        if (degrees->tensor < 2 || (layer->op == GHP_OP_INPUT && ghp_problem_sharers(problem) == 1))
            continue;
        splits[v].kind = layer->op == GHP_OP_INPUT ? GHP_SPLIT_FULL
                         : transformer             ? transformer_split(model, layer)
                                                   : filter_split(layer);
        splits[v].tp_size = degrees->tensor;
        if (ghp_split_check(layer, splits[v], problem) == GHP_OK) continue;
        splits[v].kind = GHP_SPLIT_FULL;
        GHP_TRY(ghp_split_check(layer, splits[v], problem));
    }
    return GHP_OK;
}

void ghp_degrees_share_latency(const struct ghp_model *model, const struct ghp_split *splits,
                               struct ghp_machine *machine)
{
    int sharded = 0, blocks = 0;

    for (int v = 0; v < model->n_layers; v++) {
        blocks += begins_block(model->layers[v].name);
        sharded += splits[v].sharding != GHP_SHARDING_NONE;
    }
    if (blocks == 0 || sharded < blocks) return;
    machine->intra.latency_s *= (double)blocks / sharded;
    machine->inter.latency_s *= (double)blocks / sharded;
}

/* Marks all layers of each block for recomputation, except for its last sum, which is kept as the next block's input.
 * Returns how many layers it marks. */
static int set_recompute(const struct ghp_model *model, bool *recompute)
{
    bool inside = false;
    int n = 0;

    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *layer = &model->layers[v];
        const char *next = v + 1 < model->n_layers ? model->layers[v + 1].name : "";
        bool last =
            begins_block(next) || strcmp(next, "ln_f") == 0 || strcmp(next, "model.norm") == 0;

        if (begins_block(layer->name)) inside = true;
        recompute[v] = inside && !last && ghp_stage_may_recompute(layer);
        n += recompute[v];
        if (last) inside = false;
    }
    return n;
}

/* Stages of as many blocks each; what is before the blocks is the first's, what is after them the last's. */
static enum ghp_status set_stages(const struct ghp_model *model, struct ghp_problem problem, int n,
                                  struct ghp_staging *staging)
{
    int blocks = 0, seen = 0;

    staging->n = 1;
    staging->stage[0] = (struct ghp_stage){0, problem.workers / n, 0};
    if (n < 2) return GHP_OK;
    for (int v = 0; v < model->n_layers; v++)
        blocks += begins_block(model->layers[v].name);
    if (blocks == 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "network '%s' has no blocks of a transformer to make stages of; leave "
                        "pipeline parallelism out",
                        model->name);
    if (n > GHP_MAX_STAGES || blocks < n || blocks % n != 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "%d blocks of network '%s' do not make %d equal stages of at most %d; use a "
            "divisor of the blocks",
            blocks, model->name, n, GHP_MAX_STAGES);
    for (int v = 0; v < model->n_layers; v++) {
        if (!begins_block(model->layers[v].name)) continue;
        if (seen > 0 && seen % (blocks / n) == 0)
            staging->stage[staging->n++] = (struct ghp_stage){v, problem.workers / n, 0};
        seen++;
    }
    return GHP_OK;
}

/* Whether the workers that divide the layers have one sample of a micro-batch, which each of them holds. */
static bool share_samples(struct ghp_problem problem, const struct ghp_degrees *degrees,
                          int micro_batches)
{
    int64_t replicas = problem.workers / degrees->tensor;

    return degrees->pipeline == 1 && problem.global_batch == replicas * micro_batches;
}

static enum ghp_status check(struct ghp_problem problem, const struct ghp_degrees *degrees,
                             int micro_batches)
{
    int64_t replica = (int64_t)degrees->tensor * degrees->pipeline;
    int64_t least = (int64_t)micro_batches * (problem.workers / degrees->pipeline);
    int alone = 0; /* micro-batches of one sample for each replica */

    if (degrees->tensor < 1 || degrees->pipeline < 1 || problem.workers % replica != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%d workers are not whole replicas of %d x %d; use degrees whose product "
                        "divides the workers",
                        problem.workers, degrees->tensor, degrees->pipeline);
    if (problem.global_batch % (problem.workers / replica) != 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "a batch of %lld does not come out on %lld replicas; use a multiple of %lld",
            (long long)problem.global_batch, (long long)(problem.workers / replica),
            (long long)(problem.workers / replica));
    if (degrees->tensor > 1 && problem.global_batch / (problem.workers / replica) <= INT_MAX)
        alone = (int)(problem.global_batch / (problem.workers / replica));
    if (share_samples(problem, degrees, micro_batches)) return GHP_OK;
    if (problem.global_batch < least && share_samples(problem, degrees, alone))
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "a batch of %lld in %d micro-batch%s deals less than one sample to each of %d workers; "
            "use %lld or more, or --micro-batches %d, each of one sample for %d workers",
            (long long)problem.global_batch, micro_batches, micro_batches > 1 ? "es" : "",
            problem.workers, (long long)least, alone, degrees->tensor);
    if (problem.global_batch < least)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a batch of %lld in %d micro-batch%s deals less than one sample to each of "
                        "%d workers%s; use %lld or more%s",
                        (long long)problem.global_batch, micro_batches,
                        micro_batches > 1 ? "es" : "", problem.workers / degrees->pipeline,
                        degrees->tensor > 1 ? ", also of those that divide layers" : "",
                        (long long)least, micro_batches > 1 ? ", or fewer micro-batches" : "");
    if (micro_batches > 1 && problem.global_batch % least != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a batch of %lld in %d micro-batches does not deal whole samples to %d "
                        "workers; use a multiple of %lld, or other micro-batches",
                        (long long)problem.global_batch, micro_batches,
                        problem.workers / degrees->pipeline, (long long)least);
    return GHP_OK;
}

enum ghp_status ghp_degrees_staging(const struct ghp_model *model, struct ghp_problem problem,
                                    const struct ghp_degrees *degrees, int micro_batches,
                                    bool *recompute, struct ghp_staging *staging)
{
    *staging = (struct ghp_staging){.micro_batches = micro_batches};
    GHP_TRY(check(problem, degrees, micro_batches));
    GHP_TRY(set_stages(model, problem, degrees->pipeline, staging));
    if (degrees->recompute) {
        if (set_recompute(model, recompute) == 0)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "network '%s' has no blocks of a transformer to recompute; leave "
                            "recomputation out",
                            model->name);
        staging->recompute = recompute;
    }
    return ghp_staging_check(staging, model, problem);
}
