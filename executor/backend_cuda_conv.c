/* executor/backend_cuda_conv.c - convolutions by cuDNN: one graph a pass (cuda_graph.h), run by the engine that won.
 *
 * Scratch: in bf16 the weights, or their gradient, in that precision; then the engine's workspace. */
#include "executor/backend_cuda_private.h"

#include "core/log.h"

#include <stdlib.h>

static const int64_t MOST_WORKSPACE_BYTES = INT64_C(1) << 30;

_Static_assert((int)GHP_GRAPH_CANDIDATES == (int)GHP_CUDA_CANDIDATES, "a contest holds a list");

struct conv {
    struct ghp_graph *graph;
    struct ghp_graph_plan plan;   /* owned, also while it is one of `plans` */
    struct ghp_graph_plans plans; /* owned, but for the one taken; empty but while choosing */
};

static bool is_bf16(const struct ghp_cuda_kernel *kernel)
{
    return kernel->base.backend->config.element_bytes == 2;
}

static const struct ghp_cudnn *cudnn_of(const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_of(kernel->base.backend)->cudnn;
}

static enum ghp_status run_conv(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct conv *conv = kernel->data;
    cudaStream_t stream = ghp_cuda_launch(kernel->base.backend).stream;
    int64_t weights = ghp_local_weight_elements(&kernel->base.local);
    enum ghp_pass pass = kernel->base.pass;
    char *scratch = ghp_cuda_aligned(call->at.scratch);
    void *w = pass == GHP_PASS_BACKWARD_WEIGHT ? call->at.dw[0] : call->at.w[0];
    struct ghp_graph_tensors at = {.x = pass == GHP_PASS_BACKWARD_DATA ? call->at.dx[0]
                                                                       : call->at.x[0],
                                   .w = is_bf16(kernel) ? scratch : w,
                                   .y = pass == GHP_PASS_FORWARD ? call->at.y : call->at.dy,
                                   .workspace = scratch + kernel->workspace_at};

    if (is_bf16(kernel) && pass != GHP_PASS_BACKWARD_WEIGHT)
        GHP_TRY(ghp_cuda_status(ghp_launch_to_bf16(stream, weights, w, scratch), "to bf16"));
    GHP_TRY(ghp_graph_run(conv->graph, &conv->plan, &at));
    if (is_bf16(kernel) && pass == GHP_PASS_BACKWARD_WEIGHT)
        return ghp_cuda_status(ghp_launch_from_bf16(stream, weights, scratch, w), "from bf16");
    return GHP_OK;
}

static void drop_plans(struct ghp_cuda_kernel *kernel)
{
    struct conv *conv = kernel->data;

    for (int i = 0; i < conv->plans.n; i++)
        if (conv->plans.items[i].plan != conv->plan.plan)
            ghp_graph_plan_release(cudnn_of(kernel), &conv->plans.items[i]);
    conv->plans.n = 0;
}

static void release_conv(struct ghp_cuda_kernel *kernel)
{
    struct conv *conv = kernel->data;

    if (conv == NULL) return;
    drop_plans(kernel);
    ghp_graph_plan_release(cudnn_of(kernel), &conv->plan);
    ghp_graph_close(conv->graph);
    free(conv);
    kernel->data = NULL;
}

static void take_plan(struct ghp_cuda_kernel *kernel, const struct ghp_graph_plan *plan)
{
    struct conv *conv = kernel->data;

    conv->plan = *plan;
    kernel->base.scratch_bytes = ghp_cuda_scratch(kernel->workspace_at + plan->workspace_bytes);
    ghp_choice_text(kernel->algorithm, "cudnn", (int64_t)cudnn_of(kernel)->cudnnGetVersion(),
                    plan->name);
}

static void take_candidate(struct ghp_cuda_kernel *kernel, int candidate)
{
    const struct conv *conv = kernel->data;

    take_plan(kernel, &conv->plans.items[candidate]);
}

static enum ghp_status open_graph(struct ghp_cuda_kernel *kernel)
{
    struct ghp_graph_request request = {
        .local = kernel->base.local, .pass = kernel->base.pass, .bf16 = is_bf16(kernel)};
    struct ghp_graph_target target = {.handle = ghp_cuda_of(kernel->base.backend)->cudnn_handle};
    struct conv *conv = ghp_alloc(1, sizeof(*conv));

    if (conv == NULL) return GHP_NO_MEMORY();
    kernel->data = conv;
    kernel->run = run_conv;
    kernel->release = release_conv;
    if (is_bf16(kernel))
        kernel->workspace_at = ghp_cuda_round(ghp_local_weight_elements(&kernel->base.local) * 2);
    return ghp_graph_open(cudnn_of(kernel), target, &request, &conv->graph);
}

/* By the engine of this name, where it is one of this version's. */
static bool take_named(struct ghp_cuda_kernel *kernel, const char *name)
{
    int64_t version = (int64_t)cudnn_of(kernel)->cudnnGetVersion();
    const char *rest = ghp_choice_rest(name, "cudnn", version);
    struct conv *conv = kernel->data;
    struct ghp_graph_plan plan;

    if (rest == NULL || ghp_graph_find(conv->graph, rest, &plan) != GHP_OK) return false;
    take_plan(kernel, &plan);
    return true;
}

/* By the fastest engine of the heuristics' first `most`; *taken is false where none was found. */
static enum ghp_status take_fastest(struct ghp_cuda_kernel *kernel, int most, bool *taken)
{
    const struct ghp_backend_config *config = &kernel->base.backend->config;
    struct ghp_graph_rules rules = {.tensor_cores = config->tf32,
                                    .repeatable = config->exact,
                                    .most_workspace_bytes = MOST_WORKSPACE_BYTES};
    struct conv *conv = kernel->data;
    struct ghp_cuda_contest contest = {.take = take_candidate};
    enum ghp_status status;
    int winner = -1;

    GHP_TRY(ghp_graph_list(conv->graph, &rules, config->exact ? 1 : most, &conv->plans));
    contest.n = conv->plans.n;
    for (int i = 0; i < contest.n; i++)
        contest.workspace_bytes[i] = conv->plans.items[i].workspace_bytes;
    status = ghp_cuda_choose(kernel, &contest, &winner);
    if (status != GHP_OK || winner < 0) conv->plan.plan = NULL; /* all are still among `plans` */
    drop_plans(kernel);
    *taken = winner >= 0;
    return status;
}

enum ghp_status ghp_cuda_conv_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    struct ghp_choices *choices = &ghp_cuda_of(kernel->base.backend)->choices;
    const struct ghp_local *local = &kernel->base.local;
    const char *kept = ghp_choices_find(choices, local, kernel->base.pass);
    const char *name = kept != NULL ? kept : wanted;
    char key[GHP_KEY_BYTES];
    bool taken = false;

    GHP_TRY(ghp_cuda_need_cudnn(kernel->base.backend));
    if (name == NULL || strcmp(name, GHP_CUDA_DIRECT) != 0) {
        taken = open_graph(kernel) == GHP_OK && name != NULL && take_named(kernel, name);
        if (!taken && kernel->data != NULL && ((struct conv *)kernel->data)->graph != NULL)
            GHP_TRY(take_fastest(kernel, ghp_cuda_candidates(name), &taken));
    }
    if (!taken) {
        if (kernel->release != NULL) release_conv(kernel);
        kernel->release = NULL;
        kernel->workspace_at = 0;
        ghp_cuda_direct_prepare(kernel);
        ghp_local_key(local, key);
        if (kept == NULL)
            ghp_note("cuDNN has no engine for '%s' (%s): a plain kernel runs it", key,
                     ghp_pass_name(kernel->base.pass));
    }
    return ghp_choices_keep(choices, local, kernel->base.pass, kernel->algorithm);
}
