/* executor/backend/cuda/conv.c - convolutions by cuDNN: one graph a pass (cuda/graph.h), run by the engine that won.
 *
 * A bias and a ReLU that a forward pass fuses, the sums of its output, or the mask of a ReLU that a gradient takes, are
 * part of a second graph, or left to ghp's own kernels after the first, whichever was faster.
 *
 * Scratch: in bf16 the weights, unless they have a copy, or their gradient, in that precision; then the engine's
 * workspace. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include "core/base/log.h"

#include <stdio.h>
#include <stdlib.h>

static const int64_t MOST_WORKSPACE_BYTES = INT64_C(1) << 30;

_Static_assert((int)GHP_GRAPH_CANDIDATES == (int)GHP_CUDA_CANDIDATES,
               "a list of candidates is long enough");

enum { ALONE, FUSED, GRAPHS };
enum { FUSED_CANDIDATES = 3 }; /* cuDNN compiles them when they are asked for, which takes long */

struct conv {
    struct ghp_graph *graphs[GRAPHS]; /* of the convolution alone; with what it fuses */
    /* taken; FUSED, if there is one, runs. Owned, also while it is one of `plans` */
    struct ghp_graph_plan plan[GRAPHS];
    struct ghp_graph_plans plans; /* owned, but for those taken; empty but while choosing */
};

static bool is_bf16(const struct ghp_cuda_kernel *kernel)
{
    return kernel->base.backend->config.element_bytes == 2;
}

static const struct ghp_cudnn *cudnn_of(const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_of(kernel->base.backend)->cudnn;
}

static enum ghp_status run_conv(struct ghp_cuda_kernel *kernel,
                                const struct ghp_kernel_arguments *args)
{
    const struct conv *conv = kernel->data;
    bool sums = kernel->fused.sums && args->at.sums != NULL;
    int which = conv->plan[FUSED].plan != NULL && sums == kernel->fused.sums ? FUSED : ALONE;
    cudaStream_t stream = ghp_cuda_launch(kernel->base.backend).stream;
    int64_t weights = ghp_local_weight_elements(&kernel->base.local);
    enum ghp_pass pass = kernel->base.pass;
    char *scratch = ghp_cuda_aligned(args->at.scratch);
    void *w = pass == GHP_PASS_BACKWARD_WEIGHT ? args->at.dw[0] : args->at.w[0];
    const void *copy = args->at.w_bf16[0]; /* of weights that are read; NULL: there is none */
    struct ghp_graph_tensors at = {.workspace = scratch + kernel->workspace_at};

    ghp_graph_bind(&at, GHP_GRAPH_X,
                   pass == GHP_PASS_BACKWARD_DATA ? args->at.dx[0] : args->at.x[0]);
    ghp_graph_bind(&at, GHP_GRAPH_W, copy != NULL ? copy : is_bf16(kernel) ? scratch : w);
    ghp_graph_bind(&at, GHP_GRAPH_Y, pass == GHP_PASS_FORWARD ? args->at.y : args->at.dy);
    if (which == FUSED && kernel->fused.bias) ghp_graph_bind(&at, GHP_GRAPH_BIAS, args->at.w[1]);
    if (which == FUSED && sums) {
        ghp_graph_bind(&at, GHP_GRAPH_SUMS, args->at.sums);
        ghp_graph_bind(&at, GHP_GRAPH_SQUARES, args->at.sums + kernel->base.local.k);
    }
    if (which == FUSED && pass == GHP_PASS_BACKWARD_DATA)
        ghp_graph_bind(&at, GHP_GRAPH_MASK, args->at.x[0]);
    if (is_bf16(kernel) && pass != GHP_PASS_BACKWARD_WEIGHT && copy == NULL)
        GHP_TRY(ghp_cuda_status(ghp_launch_to_bf16(stream, weights, w, scratch), "to bf16"));
    GHP_TRY(ghp_graph_run(conv->graphs[which], &conv->plan[which], &at));
    if (is_bf16(kernel) && pass == GHP_PASS_BACKWARD_WEIGHT)
        return ghp_cuda_status(ghp_launch_from_bf16(stream, weights, scratch, w), "from bf16");
    return GHP_OK;
}

/* ---- plans ---- */

static bool is_taken(const struct conv *conv, cudnnBackendDescriptor_t plan)
{
    return plan == conv->plan[ALONE].plan || plan == conv->plan[FUSED].plan;
}

static void drop_plans(struct ghp_cuda_kernel *kernel)
{
    struct conv *conv = kernel->data;

    for (int i = 0; i < conv->plans.n; i++)
        if (!is_taken(conv, conv->plans.items[i].plan))
            ghp_graph_plan_release(cudnn_of(kernel), &conv->plans.items[i]);
    conv->plans.n = 0;
}

static void release_conv(struct ghp_cuda_kernel *kernel)
{
    struct conv *conv = kernel->data;

    if (conv == NULL) return;
    drop_plans(kernel);
    for (int i = 0; i < GRAPHS; i++) {
        ghp_graph_plan_release(cudnn_of(kernel), &conv->plan[i]);
        ghp_graph_close(conv->graphs[i]);
    }
    free(conv);
    kernel->data = NULL;
}

/* What the plans that are taken make of the kernel. */
static void settle(struct ghp_cuda_kernel *kernel)
{
    const struct conv *conv = kernel->data;
    const struct ghp_graph_plan *alone = &conv->plan[ALONE], *fused = &conv->plan[FUSED];
    bool fuses = fused->plan != NULL;
    int64_t workspace = fuses ? fused->workspace_bytes : alone->workspace_bytes,
            after = ghp_cuda_epilogue_scratch(kernel);
    char name[2 * GHP_GRAPH_NAME_BYTES + 4];

    kernel->epilogue = ghp_kernel_spec_is_fused(kernel->fused) && !fuses;
    if (kernel->fused.sums && workspace < alone->workspace_bytes)
        workspace = alone->workspace_bytes; /* evaluations sum nothing */
    kernel->base.scratch_bytes = ghp_cuda_scratch(kernel->workspace_at + workspace);
    if (kernel->epilogue && kernel->base.scratch_bytes < after) kernel->base.scratch_bytes = after;
    snprintf(name, sizeof name, fuses ? "%s & %s" : "%s", alone->name, fused->name);
    ghp_choice_text(kernel->algorithm, "cudnn", (int64_t)cudnn_of(kernel)->cudnnGetVersion(), name);
}

static void take_alone(struct ghp_cuda_kernel *kernel, int candidate)
{
    struct conv *conv = kernel->data;

    conv->plan[ALONE] = conv->plans.items[candidate];
    settle(kernel);
}

/* The first is the plan of the convolution alone. */
static void take_fused(struct ghp_cuda_kernel *kernel, int candidate)
{
    struct conv *conv = kernel->data;
    const struct ghp_graph_plan none = {0};

    conv->plan[FUSED] = candidate > 0 ? conv->plans.items[candidate - 1] : none;
    settle(kernel);
}

static enum ghp_status open_graph(struct ghp_cuda_kernel *kernel, int which)
{
    struct ghp_graph_request request = {.local = kernel->base.local,
                                        .pass = kernel->base.pass,
                                        .bf16 = is_bf16(kernel),
                                        .bias = which == FUSED && kernel->fused.bias,
                                        .relu = which == FUSED && kernel->fused.relu,
                                        .sums = which == FUSED && kernel->fused.sums,
                                        .multiprocessors = ghp_cuda_multiprocessors(kernel)};
    struct ghp_graph_target target = {.handle = ghp_cuda_of(kernel->base.backend)->cudnn_handle};
    struct conv *conv = kernel->data;

    return ghp_graph_open(cudnn_of(kernel), target, &request, &conv->graphs[which]);
}

static enum ghp_status open_conv(struct ghp_cuda_kernel *kernel)
{
    kernel->data = ghp_alloc(1, sizeof(struct conv));
    if (kernel->data == NULL) return GHP_NO_MEMORY();
    kernel->run = run_conv;
    kernel->release = release_conv;
    if (is_bf16(kernel))
        kernel->workspace_at = ghp_cuda_round(ghp_local_weight_elements(&kernel->base.local) * 2);
    return open_graph(kernel, ALONE);
}

/* Takes the engine of this name, if it is available. */
static bool take_named(struct ghp_cuda_kernel *kernel, int which, const char *name)
{
    struct conv *conv = kernel->data;

    if (ghp_graph_find(conv->graphs[which], name, &conv->plan[which]) != GHP_OK) return false;
    settle(kernel);
    return true;
}

/* The heuristics' first `most`, with their workspaces after the first `others` of the candidates. */
static enum ghp_status list(struct ghp_cuda_kernel *kernel, int which, int most, int others,
                            struct ghp_cuda_candidate_list *candidates)
{
    const struct ghp_backend_config *config = &kernel->base.backend->config;
    struct ghp_graph_rules rules = {.tensor_cores = config->tf32,
                                    .repeatable = config->exact,
                                    .most_workspace_bytes = MOST_WORKSPACE_BYTES};
    struct conv *conv = kernel->data;

    GHP_TRY(ghp_graph_list(conv->graphs[which], &rules, most, &conv->plans));
    for (int i = 0; i < conv->plans.n; i++)
        candidates->workspace_bytes[others + i] = conv->plans.items[i].workspace_bytes;
    candidates->n = others + conv->plans.n;
    return GHP_OK;
}

/* By the fastest engine of the heuristics' first `most`; *taken is false if none was found. */
static enum ghp_status choose_alone(struct ghp_cuda_kernel *kernel, int most, bool *taken)
{
    struct conv *conv = kernel->data;
    struct ghp_cuda_candidate_list candidates = {.take = take_alone};
    enum ghp_status status;
    int winner = -1;

    GHP_TRY(list(kernel, ALONE, kernel->base.backend->config.exact ? 1 : most, 0, &candidates));
    status = ghp_cuda_choose(kernel, &candidates, &winner);
    if (status != GHP_OK || winner < 0)
        conv->plan[ALONE].plan = NULL; /* all are still among `plans` */
    drop_plans(kernel);
    *taken = winner >= 0;
    return status;
}

/* Whether what is fused is better off in the convolution's graph. */
static enum ghp_status choose_fused(struct ghp_cuda_kernel *kernel)
{
    struct conv *conv = kernel->data;
    struct ghp_cuda_candidate_list candidates = {
        .take = take_fused, .workspace_bytes = {conv->plan[ALONE].workspace_bytes}};
    enum ghp_status status;
    int winner = -1;

    if (open_graph(kernel, FUSED) != GHP_OK) return GHP_OK;
    GHP_TRY(list(kernel, FUSED, FUSED_CANDIDATES, 1, &candidates));
    status = ghp_cuda_choose(kernel, &candidates, &winner);
    if (status != GHP_OK || winner < 0) take_fused(kernel, 0);
    drop_plans(kernel);
    return status;
}

/* cuDNN is promised tensors at multiples of 16 bytes, and the sums of squares lie right after the others. */
static bool may_fuse(const struct ghp_cuda_kernel *kernel)
{
    return ghp_kernel_spec_is_fused(kernel->fused) &&
           (!kernel->fused.sums || kernel->base.local.k % 4 == 0);
}

/* Chooses the engines by these names, if they are of this version. An engine that is not available is replaced by
 * cuDNN's first suggestion, which is the same in a run as it was for the profile. Without names it takes the
 * fastest. */
static enum ghp_status choose(struct ghp_cuda_kernel *kernel, const char *name, bool *taken)
{
    int64_t version = (int64_t)cudnn_of(kernel)->cudnnGetVersion();
    const char *rest = ghp_choice_rest(name, "cudnn", version);
    int most = rest != NULL ? 1 : ghp_cuda_candidates(name);
    char alone[GHP_CHOICE_NAME_BYTES], *fused = NULL;

    if (rest != NULL) {
        snprintf(alone, sizeof alone, "%s", rest);
        ghp_choice_split(alone, &fused);
        *taken = take_named(kernel, ALONE, alone);
    }
    if (*taken) {
        if (fused != NULL && may_fuse(kernel) && open_graph(kernel, FUSED) == GHP_OK)
            take_named(kernel, FUSED, fused);
        return GHP_OK;
    }
    GHP_TRY(choose_alone(kernel, most, taken));
    return *taken && may_fuse(kernel) && most > 1 ? choose_fused(kernel) : GHP_OK;
}

enum ghp_status ghp_cuda_conv_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    struct ghp_choices *choices = &ghp_cuda_of(kernel->base.backend)->choices;
    const char *kept = ghp_choices_find(choices, ghp_cuda_chosen(kernel));
    const char *name = kept != NULL ? kept : wanted;
    char key[GHP_KEY_BYTES];
    bool taken = false;

    GHP_TRY(ghp_cuda_need_cudnn(kernel->base.backend));
    if (name == NULL || strcmp(name, GHP_CUDA_DIRECT) != 0)
        if (open_conv(kernel) == GHP_OK) GHP_TRY(choose(kernel, name, &taken));
    if (!taken) {
        if (kernel->release != NULL) release_conv(kernel);
        kernel->release = NULL;
        kernel->workspace_at = 0;
        ghp_cuda_direct_prepare(kernel);
        ghp_local_key(&kernel->base.local, key);
        if (kept == NULL)
            ghp_note("cuDNN has no engine for '%s' (%s): a plain kernel runs it", key,
                     ghp_pass_name(kernel->base.pass));
    }
    return ghp_choices_keep(choices, ghp_cuda_chosen(kernel), kernel->algorithm);
}
