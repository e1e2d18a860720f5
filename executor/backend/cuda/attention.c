/* executor/backend/cuda/attention.c - attention by cuDNN in bf16, else by ghp's own kernels (kernels/attention.cu).
 *
 * Own kernels run float, windows, capped scores, dropout, token ids and divided positions, sizes of a head that are not
 * a multiple of 8, cards that cuDNN has no engine for, and versions of cuDNN that want tensors cleared (before 9.6) or
 * that have known faults. What the forward pass saves is the same either way, so one pass may run by cuDNN and the
 * other by own kernels.
 *
 * Scratch: the logarithms of a forward pass that saves none; the sums of a backward pass; then the engine's
 * workspace. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include "core/base/log.h"
#include "core/model/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Engines of the backward pass ask for 4 bytes a score, or 6 if sums have one order (test_cuda_attention.c). */
static const int64_t MOST_WORKSPACE_BYTES = INT64_C(8) << 30;
static const float HIDDEN = -1e30f;

struct attention {
    struct ghp_graph *graph;
    struct ghp_graph_plan plan;   /* taken; owned, also while it is one of `plans` */
    struct ghp_graph_plans plans; /* owned, but for the one taken; empty but while choosing */
    float scale;
    int64_t sums_at; /* in scratch: dqueries in float */
    const struct ghp_cuda_row *own;
};

static const struct ghp_cudnn *cudnn_of(const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_of(kernel->base.backend)->cudnn;
}

/* Bytes of one float for each head and position. */
static int64_t row_bytes(const struct ghp_local *l)
{
    return l->n * l->heads.n * l->h * (int64_t)sizeof(float);
}

static enum ghp_status run_attention(struct ghp_cuda_kernel *kernel,
                                     const struct ghp_kernel_arguments *args)
{
    const struct attention *a = kernel->data;
    const struct ghp_tensors *at = &args->at;
    char *scratch = ghp_cuda_aligned(at->scratch);
    struct ghp_graph_tensors t = {.workspace = scratch + kernel->workspace_at};
    bool backward = kernel->base.pass == GHP_PASS_BACKWARD_DATA;

    if (backward && (at->dx[0] == NULL || at->dx[1] == NULL || at->dx[2] == NULL))
        return ghp_cuda_status(
            a->own->launch(ghp_cuda_launch(kernel->base.backend), &kernel->base.local, args),
            "attention");
    ghp_graph_bind(&t, GHP_GRAPH_QUERIES, at->x[0]);
    ghp_graph_bind(&t, GHP_GRAPH_KEYS, at->x[1]);
    ghp_graph_bind(&t, GHP_GRAPH_VALUES, at->x[2]);
    ghp_graph_bind(&t, GHP_GRAPH_RESULT, at->y);
    ghp_graph_bind(&t, GHP_GRAPH_LOGARITHMS, at->saved != NULL ? at->saved : scratch);
    ghp_graph_bind(&t, GHP_GRAPH_SCALE, &a->scale);
    if (kernel->base.local.heads.causal) ghp_graph_bind(&t, GHP_GRAPH_HIDDEN, &HIDDEN);
    if (backward) {
        ghp_graph_bind(&t, GHP_GRAPH_DRESULT, at->dy);
        ghp_graph_bind(&t, GHP_GRAPH_DQUERIES, at->dx[0]);
        ghp_graph_bind(&t, GHP_GRAPH_DKEYS, at->dx[1]);
        ghp_graph_bind(&t, GHP_GRAPH_DVALUES, at->dx[2]);
        ghp_graph_bind(&t, GHP_GRAPH_MEANS, scratch);
        if (!kernel->base.backend->config.exact)
            ghp_graph_bind(&t, GHP_GRAPH_QUERIES_SUM, scratch + a->sums_at);
    }
    return ghp_graph_run(a->graph, &a->plan, &t);
}

/* ---- plans ---- */

static void drop_plans(struct ghp_cuda_kernel *kernel)
{
    struct attention *a = kernel->data;

    for (int i = 0; i < a->plans.n; i++)
        if (a->plans.items[i].plan != a->plan.plan)
            ghp_graph_plan_release(cudnn_of(kernel), &a->plans.items[i]);
    a->plans.n = 0;
}

static void release_attention(struct ghp_cuda_kernel *kernel)
{
    struct attention *a = kernel->data;

    if (a == NULL) return;
    drop_plans(kernel);
    ghp_graph_plan_release(cudnn_of(kernel), &a->plan);
    ghp_graph_close(a->graph);
    free(a);
    kernel->data = NULL;
}

static void settle(struct ghp_cuda_kernel *kernel)
{
    const struct attention *a = kernel->data;

    kernel->base.scratch_bytes = ghp_cuda_scratch(kernel->workspace_at + a->plan.workspace_bytes);
    ghp_choice_text(kernel->algorithm, "cudnn", (int64_t)cudnn_of(kernel)->cudnnGetVersion(),
                    a->plan.name);
}

static void take(struct ghp_cuda_kernel *kernel, int candidate)
{
    struct attention *a = kernel->data;

    a->plan = a->plans.items[candidate];
    settle(kernel);
}

static enum ghp_status open_attention(struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;
    bool exact = kernel->base.backend->config.exact,
         backward = kernel->base.pass == GHP_PASS_BACKWARD_DATA;
    const struct ghp_graph_request request = {.local = *l,
                                              .pass = kernel->base.pass,
                                              .bf16 = true,
                                              .exact = exact,
                                              .multiprocessors = ghp_cuda_multiprocessors(kernel)};
    struct ghp_graph_target target = {.handle = ghp_cuda_of(kernel->base.backend)->cudnn_handle};
    struct attention *a = ghp_alloc(1, sizeof *a);

    if (a == NULL) return GHP_NO_MEMORY();
    kernel->data = a;
    kernel->run = run_attention;
    kernel->release = release_attention;
    a->own = kernel->row;
    a->scale = (float)ghp_attention_scale(&l->heads);
    a->sums_at = ghp_cuda_round(row_bytes(l));
    kernel->workspace_at = a->sums_at;
    if (backward && !exact) kernel->workspace_at += ghp_cuda_round(row_bytes(l) * l->heads.size);
    return ghp_graph_open(cudnn_of(kernel), target, &request, &a->graph);
}

/* The engine of this name, if it is of this version; else the fastest of cuDNN's suggestions.
 *
 * taken   receives whether there is one */
static enum ghp_status choose(struct ghp_cuda_kernel *kernel, const char *name, bool *taken)
{
    const struct ghp_backend_config *config = &kernel->base.backend->config;
    const struct ghp_graph_rules rules = {.tensor_cores = true,
                                          .repeatable = config->exact,
                                          .most_workspace_bytes = MOST_WORKSPACE_BYTES};
    const char *rest = ghp_choice_rest(name, "cudnn", (int64_t)cudnn_of(kernel)->cudnnGetVersion());
    struct ghp_cuda_candidate_list candidates = {.take = take};
    struct attention *a = kernel->data;
    enum ghp_status status;
    int winner = -1, most = rest != NULL || config->exact ? 1 : ghp_cuda_candidates(name);

    *taken = rest != NULL && ghp_graph_find(a->graph, rest, &a->plan) == GHP_OK;
    if (*taken) {
        settle(kernel);
        return GHP_OK;
    }
    GHP_TRY(ghp_graph_list(a->graph, &rules, most, &a->plans));
    for (int i = 0; i < a->plans.n; i++)
        candidates.workspace_bytes[i] = a->plans.items[i].workspace_bytes;
    candidates.n = a->plans.n;
    status = ghp_cuda_choose(kernel, &candidates, &winner);
    if (status != GHP_OK || winner < 0) a->plan.plan = NULL; /* all are still among `plans` */
    drop_plans(kernel);
    *taken = winner >= 0;
    return status;
}

bool ghp_cuda_attention_suits(const struct ghp_local *l, int64_t version)
{
    bool faulty = version == 91000 || version == 91001;
    /* backward passes of up to 9.15 read past the keys if their number is not a multiple of 128 */
    bool short_tile = version <= 91500 && l->h % 128 != 0;

    return l->keys == 0 && !ghp_attention_has_ids(l) && l->heads.size % 8 == 0 &&
           l->heads.window == 0 && l->heads.softcap == 0 && l->heads.dropout == 0 &&
           version >= 90600 && !faulty && !short_tile;
}

enum ghp_status ghp_cuda_attention_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    struct ghp_choices *choices = &ghp_cuda_of(kernel->base.backend)->choices;
    const char *kept = ghp_choices_find(choices, ghp_cuda_chosen(kernel));
    const char *name = kept != NULL ? kept : wanted;
    char key[GHP_KEY_BYTES];
    bool taken = false;

    GHP_TRY(ghp_cuda_native_prepare(kernel));
    if (kernel->base.backend->config.element_bytes != 2 ||
        (name != NULL && strcmp(name, "own") == 0))
        return GHP_OK;
    GHP_TRY(ghp_cuda_need_cudnn(kernel->base.backend));
    if (ghp_cuda_attention_suits(&kernel->base.local,
                                 (int64_t)cudnn_of(kernel)->cudnnGetVersion()) &&
        open_attention(kernel) == GHP_OK)
        GHP_TRY(choose(kernel, name, &taken));
    if (!taken) {
        release_attention(kernel);
        kernel->release = NULL;
        kernel->workspace_at = 0;
        GHP_TRY(ghp_cuda_native_prepare(kernel));
        ghp_local_key(&kernel->base.local, key);
        if (kept == NULL)
            ghp_note("cuDNN has no engine for '%s' (%s): a plain kernel runs it", key,
                     ghp_pass_name(kernel->base.pass));
    }
    return ghp_choices_keep(choices, ghp_cuda_chosen(kernel), kernel->algorithm);
}
