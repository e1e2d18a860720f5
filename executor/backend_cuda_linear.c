/* executor/backend_cuda_linear.c - linear layers by cuBLASLt.
 *
 * x [n][c], w [k][c], y [n][k] in memory are for cuBLASLt, which counts columns first, x c x n, w c x k, y k x n:
 * y = w^T x, dx = w dy, dw = x dy^T. In bf16 the weights are cast in scratch, ahead of the workspace; their gradient is
 * made in float. */
#include "executor/backend_cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MOST_WORKSPACE_BYTES = INT64_C(64) << 20;

struct operand {
    int64_t rows, columns; /* as it lies, columns first */
    cudaDataType_t type;
    bool turned;
};

struct product { /* d = a b */
    struct operand a, b, d;
};

struct linear {
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes;
    cublasLtMatmulHeuristicResult_t found[GHP_CUDA_CANDIDATES];
};

static bool is_bf16(const struct ghp_cuda_kernel *kernel)
{
    return kernel->base.backend->config.element_bytes == 2;
}

static const struct ghp_cublaslt *lt_of(const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_of(kernel->base.backend)->cublaslt;
}

static struct product product_of(const struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;
    cudaDataType_t type = is_bf16(kernel) ? CUDA_R_16BF : CUDA_R_32F;
    int64_t c = l->c * l->h * l->w;
    const struct operand x = {c, l->n, type, false}, w = {c, l->k, type, false},
                         y = {l->k, l->n, type, false};
    struct product p;

    switch (kernel->base.pass) {
    case GHP_PASS_FORWARD: p = (struct product){w, x, y}; break;
    case GHP_PASS_BACKWARD_DATA: p = (struct product){w, y, x}; break;
    default: p = (struct product){x, y, w}; break;
    }
    p.a.turned = kernel->base.pass == GHP_PASS_FORWARD;
    p.b.turned = kernel->base.pass == GHP_PASS_BACKWARD_WEIGHT;
    if (kernel->base.pass == GHP_PASS_BACKWARD_WEIGHT) p.d.type = CUDA_R_32F;
    return p;
}

/* ---- descriptors ---- */

static void release_linear(struct ghp_cuda_kernel *kernel)
{
    struct linear *linear = kernel->data;
    const struct ghp_cublaslt *lt = lt_of(kernel);

    if (linear == NULL) return;
    if (linear->d != NULL) lt->cublasLtMatrixLayoutDestroy(linear->d);
    if (linear->b != NULL) lt->cublasLtMatrixLayoutDestroy(linear->b);
    if (linear->a != NULL) lt->cublasLtMatrixLayoutDestroy(linear->a);
    if (linear->how != NULL) lt->cublasLtMatmulDescDestroy(linear->how);
    free(linear);
    kernel->data = NULL;
}

static enum ghp_status make_layout(const struct ghp_cublaslt *lt, const struct operand *o,
                                   cublasLtMatrixLayout_t *layout)
{
    return GHP_CUBLASLT(lt, cublasLtMatrixLayoutCreate(layout, o->type, (uint64_t)o->rows,
                                                       (uint64_t)o->columns, o->rows));
}

static enum ghp_status set_turned(const struct ghp_cublaslt *lt, cublasLtMatmulDesc_t how,
                                  cublasLtMatmulDescAttributes_t which, bool turned)
{
    cublasOperation_t operation = turned ? CUBLAS_OP_T : CUBLAS_OP_N;

    return GHP_CUBLASLT(lt,
                        cublasLtMatmulDescSetAttribute(how, which, &operation, sizeof(operation)));
}

static enum ghp_status describe(struct ghp_cuda_kernel *kernel)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    struct product p = product_of(kernel);
    cublasComputeType_t compute =
        kernel->base.backend->config.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    struct linear *linear = ghp_alloc(1, sizeof(*linear));

    if (linear == NULL) return GHP_NO_MEMORY();
    kernel->data = linear;
    kernel->release = release_linear;
    GHP_TRY(GHP_CUBLASLT(lt, cublasLtMatmulDescCreate(&linear->how, compute, CUDA_R_32F)));
    GHP_TRY(set_turned(lt, linear->how, CUBLASLT_MATMUL_DESC_TRANSA, p.a.turned));
    GHP_TRY(set_turned(lt, linear->how, CUBLASLT_MATMUL_DESC_TRANSB, p.b.turned));
    GHP_TRY(make_layout(lt, &p.a, &linear->a));
    GHP_TRY(make_layout(lt, &p.b, &linear->b));
    return make_layout(lt, &p.d, &linear->d);
}

/* ---- running ---- */

static enum ghp_status run_linear(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct linear *linear = kernel->data;
    const struct ghp_tensors *at = &call->at;
    struct ghp_backend *backend = kernel->base.backend;
    cudaStream_t stream = ghp_cuda_launch(backend).stream;
    enum ghp_pass pass = kernel->base.pass;
    char *scratch = ghp_cuda_aligned(at->scratch);
    const void *w = at->w[0], *a, *b;
    void *d;
    float one = 1, zero = 0;

    if (is_bf16(kernel) && pass != GHP_PASS_BACKWARD_WEIGHT) {
        GHP_TRY(ghp_cuda_status(
            ghp_launch_to_bf16(stream, ghp_local_weight_elements(&kernel->base.local), w, scratch),
            "to bf16"));
        w = scratch;
    }
    a = pass == GHP_PASS_BACKWARD_WEIGHT ? at->x[0] : w;
    b = pass == GHP_PASS_FORWARD ? at->x[0] : at->dy;
    d = pass == GHP_PASS_FORWARD ? at->y : pass == GHP_PASS_BACKWARD_DATA ? at->dx[0] : at->dw[0];
    return GHP_CUBLASLT(lt_of(kernel),
                        cublasLtMatmul(ghp_cuda_of(backend)->cublaslt_handle, linear->how, &one, a,
                                       linear->a, b, linear->b, &zero, d, linear->d, d, linear->d,
                                       &linear->algorithm, scratch + kernel->workspace_at,
                                       (size_t)linear->workspace_bytes, stream));
}

/* ---- names of algorithms: "a66 t20 s1 r0 z0 c3 g5 i0 k0" ---- */

static const struct part { /* of a configuration */
    char letter;
    cublasLtMatmulAlgoConfigAttributes_t attribute;
    size_t bytes;
} parts[] = {{'a', CUBLASLT_ALGO_CONFIG_ID, 4},
             {'t', CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
             {'s', CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
             {'r', CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
             {'z', CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
             {'c', CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
             {'g', CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
             {'i', CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
             {'k', CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2}};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static void name_algorithm(const struct ghp_cublaslt *lt, const cublasLtMatmulAlgo_t *algorithm,
                           char *text, size_t n)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < PARTS && used < n; i++) {
        uint32_t value = 0; /* shorter ones fill the lower bytes */
        size_t written = 0;

        if (lt->cublasLtMatmulAlgoConfigGetAttribute(algorithm, parts[i].attribute, &value,
                                                     parts[i].bytes,
                                                     &written) != CUBLAS_STATUS_SUCCESS)
            value = 0;
        used += (size_t)snprintf(text + used, n - used, "%s%c%u", i > 0 ? " " : "", parts[i].letter,
                                 value);
    }
}

static bool parse_name(const char *text, uint32_t values[PARTS])
{
    for (int i = 0; i < PARTS; i++) {
        char *end = NULL;

        if (i > 0 && *text++ != ' ') return false;
        if (*text++ != parts[i].letter || *text < '0' || *text > '9') return false;
        values[i] = (uint32_t)strtoul(text, &end, 10);
        text = end;
    }
    return *text == '\0';
}

/* Sets what differs: some algorithms refuse to be told even what they are. */
static enum ghp_status set_part(const struct ghp_cublaslt *lt, const struct part *part,
                                uint32_t wanted, cublasLtMatmulAlgo_t *algorithm)
{
    uint32_t value = 0;
    size_t written = 0;

    if (lt->cublasLtMatmulAlgoConfigGetAttribute(algorithm, part->attribute, &value, part->bytes,
                                                 &written) != CUBLAS_STATUS_SUCCESS)
        value = 0;
    if (value == wanted) return GHP_OK;
    return GHP_CUBLASLT(
        lt, cublasLtMatmulAlgoConfigSetAttribute(algorithm, part->attribute, &wanted, part->bytes));
}

static enum ghp_status init_algorithm(const struct ghp_cuda_kernel *kernel,
                                      const uint32_t values[PARTS], cublasLtMatmulAlgo_t *algorithm)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    struct product p = product_of(kernel);
    cublasComputeType_t compute =
        kernel->base.backend->config.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;

    GHP_TRY(
        GHP_CUBLASLT(lt, cublasLtMatmulAlgoInit(ghp_cuda_of(kernel->base.backend)->cublaslt_handle,
                                                compute, CUDA_R_32F, p.a.type, p.b.type, p.d.type,
                                                p.d.type, (int)values[0], algorithm)));
    for (int i = 1; i < PARTS; i++)
        GHP_TRY(set_part(lt, &parts[i], values[i], algorithm));
    return GHP_OK;
}

/* ---- choosing ---- */

static void take(struct ghp_cuda_kernel *kernel, const cublasLtMatmulHeuristicResult_t *result)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    struct linear *linear = kernel->data;
    char name[GHP_GRAPH_NAME_BYTES];

    linear->algorithm = result->algo;
    linear->workspace_bytes = (int64_t)result->workspaceSize;
    kernel->base.scratch_bytes = ghp_cuda_scratch(kernel->workspace_at + linear->workspace_bytes);
    name_algorithm(lt, &result->algo, name, sizeof(name));
    ghp_choice_text(kernel->algorithm, "cublaslt", (int64_t)lt->cublasLtGetVersion(), name);
}

static void take_candidate(struct ghp_cuda_kernel *kernel, int candidate)
{
    const struct linear *linear = kernel->data;

    take(kernel, &linear->found[candidate]);
}

static bool take_named(struct ghp_cuda_kernel *kernel, const char *name)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    const char *rest = ghp_choice_rest(name, "cublaslt", (int64_t)lt->cublasLtGetVersion());
    struct linear *linear = kernel->data;
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_SUCCESS};
    cublasLtMatmulAlgo_t algorithm;
    uint32_t values[PARTS];

    if (rest == NULL || !parse_name(rest, values)) return false;
    if (init_algorithm(kernel, values, &algorithm) != GHP_OK) return false;
    if (lt->cublasLtMatmulAlgoCheck(ghp_cuda_of(kernel->base.backend)->cublaslt_handle, linear->how,
                                    linear->a, linear->b, linear->d, linear->d, &algorithm,
                                    &result) != CUBLAS_STATUS_SUCCESS ||
        result.state != CUBLAS_STATUS_SUCCESS)
        return false;
    result.algo = algorithm;
    take(kernel, &result);
    return true;
}

/* What an algorithm may do: the most workspace, how aligned tensors are at least, and how split sums are joined: in float,
 * and where results must repeat not at all. */
static enum ghp_status set_rules(const struct ghp_cuda_kernel *kernel,
                                 cublasLtMatmulPreference_t rules)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const struct ghp_cublaslt *lt = lt_of(kernel);
    uint64_t workspace = (uint64_t)MOST_WORKSPACE_BYTES;
    uint32_t aligned = GHP_ALIGN_BYTES;
    uint32_t joined =
        kernel->base.backend->config.exact
            ? CUBLASLT_REDUCTION_SCHEME_NONE
            : CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

    GHP_TRY(GHP_CUBLASLT(
        lt, cublasLtMatmulPreferenceSetAttribute(rules, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &workspace, sizeof(workspace))));
    GHP_TRY(GHP_CUBLASLT(
        lt, cublasLtMatmulPreferenceSetAttribute(rules, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                 &joined, sizeof(joined))));
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++)
        GHP_TRY(GHP_CUBLASLT(lt, cublasLtMatmulPreferenceSetAttribute(rules, alignments[i],
                                                                      &aligned, sizeof(aligned))));
    return GHP_OK;
}

/* The heuristics' candidates; n is 0 where they have none for such a product. */
static enum ghp_status list(struct ghp_cuda_kernel *kernel, struct ghp_cuda_contest *contest)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    struct linear *linear = kernel->data;
    cublasLtMatmulPreference_t rules = NULL;
    enum ghp_status status;
    int n = 0;

    GHP_TRY(GHP_CUBLASLT(lt, cublasLtMatmulPreferenceCreate(&rules)));
    status = set_rules(kernel, rules);
    if (status == GHP_OK && lt->cublasLtMatmulAlgoGetHeuristic(
                                ghp_cuda_of(kernel->base.backend)->cublaslt_handle, linear->how,
                                linear->a, linear->b, linear->d, linear->d, rules,
                                GHP_CUDA_CANDIDATES, linear->found, &n) != CUBLAS_STATUS_SUCCESS)
        n = 0;
    lt->cublasLtMatmulPreferenceDestroy(rules);
    contest->n = 0;
    for (int i = 0; i < n; i++) {
        if (linear->found[i].state != CUBLAS_STATUS_SUCCESS) continue;
        linear->found[contest->n] = linear->found[i];
        contest->workspace_bytes[contest->n++] = (int64_t)linear->found[i].workspaceSize;
    }
    return status;
}

/* Of the heuristics' first `most`. */
static enum ghp_status take_fastest(struct ghp_cuda_kernel *kernel, int most, bool *taken)
{
    struct ghp_cuda_contest contest = {.take = take_candidate};
    int winner = -1;

    GHP_TRY(list(kernel, &contest));
    if (contest.n > most) contest.n = most;
    GHP_TRY(ghp_cuda_choose(kernel, &contest, &winner));
    *taken = winner >= 0;
    return GHP_OK;
}

enum ghp_status ghp_cuda_linear_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    struct ghp_choices *choices = &ghp_cuda_of(kernel->base.backend)->choices;
    const struct ghp_local *local = &kernel->base.local;
    const char *kept = ghp_choices_find(choices, local, kernel->base.pass);
    const char *name = kept != NULL ? kept : wanted;
    bool taken = false;

    GHP_TRY(ghp_cuda_need_cublaslt(kernel->base.backend));
    GHP_TRY(describe(kernel));
    kernel->run = run_linear;
    if (is_bf16(kernel) && kernel->base.pass != GHP_PASS_BACKWARD_WEIGHT)
        kernel->workspace_at = ghp_cuda_round(ghp_local_weight_elements(local) * 2);
    taken = name != NULL && strcmp(name, GHP_CUDA_DIRECT) != 0 && take_named(kernel, name);
    if (!taken) GHP_TRY(take_fastest(kernel, ghp_cuda_candidates(name), &taken));
    if (!taken) {
        release_linear(kernel);
        kernel->release = NULL;
        kernel->workspace_at = 0;
        ghp_cuda_direct_prepare(kernel);
    }
    return ghp_choices_keep(choices, local, kernel->base.pass, kernel->algorithm);
}
