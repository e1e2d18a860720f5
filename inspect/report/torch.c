/* inspect/report/torch.c - the plan as a Python file, which divides a PyTorch module by it (page/torch.py).
 *
 * PyTorch divides linear layers by columns and rows, and all else by samples. If the plan leaves a tensor in parts
 * between a column-parallel layer and a row-parallel one, so does the file. Every other layer without weights is done
 * by samples there, whatever the plan says of it, because the values are the same. What PyTorch cannot do is refused by
 * the layer's name. */
#include "inspect/report/report_private.h"

#include "core/sharding/split.h"

#include <stdlib.h>

extern const char ghp_torch_py[];

static bool is_linear(const struct ghp_plan *plan, int layer, enum ghp_split_kind kind)
{
    return plan->model.layers[layer].op == GHP_OP_LINEAR && plan->splits[layer].kind == kind;
}

/* Whether it works element by element, so that it may be done on channels as well as on samples. */
static bool is_each(const struct ghp_plan *plan, int layer)
{
    static const enum ghp_op each[] = {
        GHP_OP_BIAS,       GHP_OP_RELU,      GHP_OP_ACTIVATION, GHP_OP_GELU, GHP_OP_SILU,
        GHP_OP_HARD_SWISH, GHP_OP_POINTWISE, GHP_OP_MUL,        GHP_OP_ADD,  GHP_OP_DROPOUT};

    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        if (plan->model.layers[layer].op == each[i]) return true;
    return false;
}

/* Whether a layer's output may stay in parts, as far as it and its neighbours say; `parts` are all layers'. */
static bool may_stay(const struct ghp_plan *plan, int layer, const bool *parts)
{
    const struct ghp_layer *l = &plan->model.layers[layer];
    bool out = is_linear(plan, layer, GHP_SPLIT_OUT);

    if (!parts[layer]) return false;
    for (int i = 0; !out && i < l->n_inputs; i++)
        if (!parts[l->inputs[i]]) return false;
    for (int i = 0; i < l->n_consumers; i++) {
        int to = plan->model.edges[l->out_edges[i]].to;

        if (!is_linear(plan, to, GHP_SPLIT_IN) &&
            (is_linear(plan, to, GHP_SPLIT_OUT) || !parts[to]))
            return false;
    }
    return l->n_consumers > 0;
}

/* The layers whose outputs stay in parts: from all that could, those go whose neighbours do not. */
static void find_parts(const struct ghp_plan *plan, bool *parts)
{
    bool again = true;

    for (int i = 0; i < plan->model.n_layers; i++)
        parts[i] = is_linear(plan, i, GHP_SPLIT_OUT) ||
                   (is_each(plan, i) && plan->splits[i].kind == GHP_SPLIT_CHANNEL);
    while (again) {
        again = false;
        for (int i = 0; i < plan->model.n_layers; i++)
            if (parts[i] && !may_stay(plan, i, parts)) {
                parts[i] = false;
                again = true;
            }
    }
}

/* ---- what PyTorch cannot do ---- */

static enum ghp_status check_layer(const struct ghp_plan *plan, int layer, int *tp_size,
                                   const char **first)
{
    const struct ghp_layer *l = &plan->model.layers[layer];
    struct ghp_split split = plan->splits[layer];
    char text[64];

    if (l->op == GHP_OP_BATCH_NORM && l->norm.ghost_batch > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (batch_norm) takes statistics of %lld samples at a time, and "
                        "PyTorch's of all that a rank has; give it the statistics \"local\" or "
                        "\"global\"",
                        l->name, (long long)l->norm.ghost_batch);
    if (split.kind == GHP_SPLIT_DATA || split.kind == GHP_SPLIT_FULL) return GHP_OK;
    if (split.kind == GHP_SPLIT_CHANNEL && l->n_params == 0 && l->op != GHP_OP_ATTENTION)
        return GHP_OK;
    if (split.kind == GHP_SPLIT_CHANNEL && l->op == GHP_OP_BIAS) return GHP_OK;
    ghp_split_format(split, text, sizeof text);
    if (l->op != GHP_OP_LINEAR || l->tied > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (%s) is split %s, which PyTorch's placements cannot say; plan "
                        "with --force '%s=data'",
                        l->name, ghp_op_name(l->op), text, l->name);
    if (*tp_size > 1 && split.tp_size != *tp_size)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layers '%s' and '%s' are split over %d and %d workers, but a device mesh "
                        "has one size; plan with --force for the same one",
                        *first, l->name, *tp_size, split.tp_size);
    *tp_size = split.tp_size;
    *first = l->name;
    return GHP_OK;
}

/* Whether batch norms take the statistics of all workers' samples. */
static enum ghp_status find_global_norms(const struct ghp_plan *plan, bool *global)
{
    const char *local = NULL, *others = NULL;

    for (int i = 0; i < plan->model.n_layers && plan->problem.workers > 1; i++) {
        const struct ghp_layer *l = &plan->model.layers[i];

        if (l->op != GHP_OP_BATCH_NORM) continue;
        if (l->norm.local_stats && plan->splits[i].kind == GHP_SPLIT_DATA)
            local = l->name;
        else
            others = l->name;
    }
    *global = others != NULL;
    if (local == NULL || others == NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the batch norm '%s' takes statistics of a worker's samples and '%s' of all "
                    "workers'; give them the same \"statistics\" and split both by data",
                    local, others);
}

/* fully_shard and a layer's placements would divide the same parameters. */
static enum ghp_status check_sharding(const struct ghp_plan *plan, int tp_size, const char *first)
{
    if (plan->method.shard_within > 0 && plan->method.shard_within < plan->problem.workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "parameters are sharded within groups of %d workers, and PyTorch's file "
                        "shards them over all; plan with --shard-within %d",
                        plan->method.shard_within, plan->problem.workers);
    for (int i = 0; i < plan->model.n_layers && tp_size > 1; i++)
        if (plan->splits[i].sharding != GHP_SHARDING_NONE)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "the parameters of '%s' are sharded and '%s' is split over %d workers, "
                            "and PyTorch's file does one of these; plan with --shard none, or with "
                            "--strategy data",
                            plan->model.layers[i].name, first, tp_size);
    return GHP_OK;
}

static enum ghp_status check_plan(const struct ghp_plan *plan, int *tp_size)
{
    const char *first = "";

    *tp_size = 1;
    if (plan->method.reduces_bf16)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "gradients travel in bfloat16, and in PyTorch's file as they "
                        "are; plan with --reduce-precision full");
    if (plan->staging.recompute != NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan recomputes layers in the backward pass, and PyTorch's file does "
                        "not; plan with --recompute never, and without --memory or with a larger "
                        "one");
    if (!ghp_staging_trivial(&plan->staging))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan has stages or micro-batches, which PyTorch's placements cannot "
                        "say; plan with --stages 1 --micro-batches 1");
    if (plan->shares != NULL)
        return GHP_FAIL(GHP_ERR_INPUT, "workers have shares of a batch of their own, which a "
                                       "device mesh cannot say; plan with --load-balance equal");
    if (plan->method.sync.ops != NULL &&
        (plan->method.sync.ops->replicas || plan->method.sync.ops->serves))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan synchronises by '%s', and PyTorch's file sums gradients; plan "
                        "with --sync allreduce",
                        plan->method.sync.ops->name);
    for (int i = 0; i < plan->model.n_layers; i++)
        GHP_TRY(check_layer(plan, i, tp_size, &first));
    return check_sharding(plan, *tp_size, first);
}

/* ---- the file ---- */

/* A linear layer that is split: its module, how, how its input comes and its output goes, its sizes. */
static void put_layer(struct ghp_page *page, const struct ghp_plan *plan, int layer,
                      const bool *parts)
{
    const struct ghp_layer *l = &plan->model.layers[layer];
    bool out = plan->splits[layer].kind == GHP_SPLIT_OUT;

    ghp_page_add(page, "    (\"");
    ghp_page_quote(page, l->name);
    ghp_page_add(page, "\", \"%s\", \"%s\", \"%s\", %lld, %lld),\n", out ? "column" : "row",
                 !out && parts[l->inputs[0]] ? "channel" : "batch",
                 out && parts[layer] ? "channel" : "batch", (long long)l->in.c,
                 (long long)l->out.c);
}

/* The modules whose parameters are sharded, and whether they are gathered for each pass. A bias is its module's. */
static void put_sharded(struct ghp_page *page, const struct ghp_plan *plan)
{
    ghp_page_add(page, "SHARDED = [\n");
    for (int i = 0; i < plan->model.n_layers; i++) {
        const struct ghp_layer *l = &plan->model.layers[i];
        enum ghp_param_sharding sharding = plan->splits[i].sharding;

        if (sharding == GHP_SHARDING_NONE || l->op == GHP_OP_BIAS) continue;
        ghp_page_add(page, "    (\"");
        ghp_page_quote(page, l->name);
        ghp_page_add(page, "\", %s),\n", sharding == GHP_SHARDING_PASS ? "True" : "False");
    }
    ghp_page_add(page, "]\n");
}

enum ghp_status ghp_report_save_torch(const struct ghp_report *report, const char *path)
{
    const struct ghp_plan *plan = report->plan;
    struct ghp_page page = {0};
    enum ghp_status status;
    int tp_size;
    bool *parts, global;

    GHP_TRY(check_plan(plan, &tp_size));
    GHP_TRY(find_global_norms(plan, &global));
    parts = ghp_alloc((size_t)plan->model.n_layers, sizeof *parts);
    if (parts == NULL) return GHP_NO_MEMORY();
    find_parts(plan, parts);
    ghp_page_add(&page, "%s\nNAME = \"", ghp_torch_py);
    ghp_page_quote(&page, plan->model.name);
    ghp_page_add(&page,
                 "\"\nGROUPS, TENSOR_SIZE, BATCH, GLOBAL_NORMS = %d, %d, %lld, %s\nLAYERS = [\n",
                 plan->problem.workers / tp_size, tp_size, (long long)plan->problem.global_batch,
                 global ? "True" : "False");
    for (int i = 0; i < plan->model.n_layers; i++)
        if (is_linear(plan, i, GHP_SPLIT_OUT) || is_linear(plan, i, GHP_SPLIT_IN))
            put_layer(&page, plan, i, parts);
    ghp_page_add(&page, "]\n");
    put_sharded(&page, plan);
    status = ghp_page_save(&page, path);
    ghp_page_release(&page);
    free(parts);
    return status;
}
