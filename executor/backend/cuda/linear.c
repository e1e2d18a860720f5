/* executor/backend/cuda/linear.c - linear layers by cuBLASLt.
 *
 * x [n][c], w [k][c], y [n][k] in memory are for cuBLASLt (n counts the positions of all samples), which counts columns
 * first, x c x n, w c x k, y k x n: y = w^T x, dx = w dy, dw = x dy^T. In bf16 it reads the weights' copies, or if
 * there are none casts them in scratch, ahead of the workspace; their gradient is made in float. A bias and a ReLU that
 * the forward pass fuses are cuBLASLt's; in bf16 it takes the bias rounded, as PyTorch's autocast gives it: its copy,
 * or cast with the weights. If cuBLASLt has no such product, ghp's own kernel adds the bias. A data gradient that is
 * added to others' is added by the product.
 *
 * Several products of one kernel run as one batch if their tensors lie at equal distances, by the algorithm of the one
 * product if that takes batches: in each of them it sums in the same order. Else they run one after the other. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t MOST_WORKSPACE_BYTES = INT64_C(64) << 20;

struct operand {
    int64_t rows, columns; /* as it lies, columns first */
    cudaDataType_t type;
    bool transposed;
};

struct product { /* d = a b */
    struct operand a, b, d;
};

struct linear {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes;
    bool fuses; /* the product takes bias and ReLU along */
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
    int64_t c = l->c, rows = l->n * l->h;
    const struct operand x = {c, rows, type, false}, w = {c, l->k, type, false},
                         y = {l->k, rows, type, false};
    struct product p;

    switch (kernel->base.pass) {
    case GHP_PASS_FORWARD: p = (struct product){w, x, y}; break;
    case GHP_PASS_BACKWARD_DATA: p = (struct product){w, y, x}; break;
    default: p = (struct product){x, y, w}; break;
    }
    p.a.transposed = kernel->base.pass == GHP_PASS_FORWARD;
    p.b.transposed = kernel->base.pass == GHP_PASS_BACKWARD_WEIGHT;
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
    if (linear->desc != NULL) lt->cublasLtMatmulDescDestroy(linear->desc);
    free(linear);
    kernel->data = NULL;
}

static enum ghp_status make_layout(const struct ghp_cublaslt *lt, const struct operand *o,
                                   cublasLtMatrixLayout_t *layout)
{
    return GHP_CUBLASLT(lt, cublasLtMatrixLayoutCreate(layout, o->type, (uint64_t)o->rows,
                                                       (uint64_t)o->columns, o->rows));
}

static enum ghp_status set_transposed(const struct ghp_cublaslt *lt, cublasLtMatmulDesc_t desc,
                                      cublasLtMatmulDescAttributes_t which, bool transposed)
{
    cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;

    return GHP_CUBLASLT(lt,
                        cublasLtMatmulDescSetAttribute(desc, which, &operation, sizeof operation));
}

/* Sets whether the product itself adds the bias and applies the ReLU, or a kernel after it. */
static enum ghp_status set_epilogue(struct ghp_cuda_kernel *kernel, bool fuses)
{
    struct linear *linear = kernel->data;
    bool bias = kernel->fused.bias, relu = kernel->fused.relu;
    cublasLtEpilogue_t epilogue = !fuses         ? CUBLASLT_EPILOGUE_DEFAULT
                                  : bias && relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                  : bias         ? CUBLASLT_EPILOGUE_BIAS
                                  : relu         ? CUBLASLT_EPILOGUE_RELU
                                                 : CUBLASLT_EPILOGUE_DEFAULT;

    linear->fuses = fuses;
    if (fuses && bias && is_bf16(kernel)) {
        cudaDataType_t type = CUDA_R_16BF;

        GHP_TRY(GHP_CUBLASLT(lt_of(kernel), cublasLtMatmulDescSetAttribute(
                                                linear->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                &type, sizeof type)));
    }
    kernel->epilogue = (bias || relu) && !fuses;
    return GHP_CUBLASLT(lt_of(kernel),
                        cublasLtMatmulDescSetAttribute(linear->desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                       &epilogue, sizeof epilogue));
}

static enum ghp_status describe(struct ghp_cuda_kernel *kernel)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    struct product p = product_of(kernel);
    int32_t multiprocessors = ghp_cuda_multiprocessors(kernel);
    cublasComputeType_t compute =
        kernel->base.backend->config.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    struct linear *linear = ghp_alloc(1, sizeof *linear);

    if (linear == NULL) return GHP_NO_MEMORY();
    kernel->data = linear;
    kernel->release = release_linear;
    GHP_TRY(GHP_CUBLASLT(lt, cublasLtMatmulDescCreate(&linear->desc, compute, CUDA_R_32F)));
    GHP_TRY(set_transposed(lt, linear->desc, CUBLASLT_MATMUL_DESC_TRANSA, p.a.transposed));
    GHP_TRY(set_transposed(lt, linear->desc, CUBLASLT_MATMUL_DESC_TRANSB, p.b.transposed));
    if (multiprocessors > 0)
        GHP_TRY(GHP_CUBLASLT(
            lt, cublasLtMatmulDescSetAttribute(linear->desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
                                               &multiprocessors, sizeof multiprocessors)));
    GHP_TRY(make_layout(lt, &p.a, &linear->a));
    GHP_TRY(make_layout(lt, &p.b, &linear->b));
    return make_layout(lt, &p.d, &linear->d);
}

/* Whether cuBLASLt has the product, as it is described now, by this algorithm. */
static bool takes(const struct ghp_cuda_kernel *kernel, const cublasLtMatmulAlgo_t *algorithm,
                  cublasLtMatmulHeuristicResult_t *result)
{
    const struct linear *linear = kernel->data;

    return lt_of(kernel)->cublasLtMatmulAlgoCheck(
               ghp_cuda_of(kernel->base.backend)->cublaslt_handle, linear->desc, linear->a,
               linear->b, linear->d, linear->d, algorithm, result) == CUBLAS_STATUS_SUCCESS &&
           result->state == CUBLAS_STATUS_SUCCESS;
}

/* ---- running ---- */

/* The place in scratch of a bias in bf16: after the weights. */
static int64_t bias_at(const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_round(ghp_local_weight_elements(&kernel->base.local) * 2);
}

/* The weights in bf16, and the bias that the product adds, if any. */
static enum ghp_status cast(const struct ghp_cuda_kernel *kernel, const struct ghp_tensors *at,
                            char *scratch, bool bias)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct ghp_cast weights = {ghp_local_weight_elements(l), at->w[0], scratch};
    const struct ghp_cast added = {bias ? l->k : 0, at->w[1], scratch + bias_at(kernel)};
    cudaStream_t stream = ghp_cuda_launch(kernel->base.backend).stream;

    return ghp_cuda_status(ghp_launch_two_to_bf16(stream, weights, added), "to bf16");
}

/* The addresses of a product's tensors. */
struct tensors {
    const void *a, *b, *bias;
    void *d;
};

static bool adds_bias(const struct ghp_cuda_kernel *kernel)
{
    return ((const struct linear *)kernel->data)->fuses && kernel->fused.bias;
}

/* Whether the product casts in scratch what it reads of the weights. */
static bool casts(const struct ghp_cuda_kernel *kernel, const struct ghp_tensors *at)
{
    return is_bf16(kernel) && kernel->base.pass != GHP_PASS_BACKWARD_WEIGHT &&
           (at->w_bf16[0] == NULL || (adds_bias(kernel) && at->w_bf16[1] == NULL));
}

static struct tensors tensors_of(const struct ghp_cuda_kernel *kernel, const struct ghp_tensors *at)
{
    enum ghp_pass pass = kernel->base.pass;
    char *scratch = ghp_cuda_aligned(at->scratch);
    const void *w = at->w[0], *bias = at->w[1];

    if (casts(kernel, at)) {
        w = scratch;
        bias = scratch + bias_at(kernel);
    } else if (is_bf16(kernel)) {
        w = at->w_bf16[0];
        bias = at->w_bf16[1];
    }
    return (struct tensors){.a = pass == GHP_PASS_BACKWARD_WEIGHT ? at->x[0] : w,
                            .b = pass == GHP_PASS_FORWARD ? at->x[0] : at->dy,
                            .bias = bias,
                            .d = pass == GHP_PASS_FORWARD         ? at->y
                                 : pass == GHP_PASS_BACKWARD_DATA ? at->dx[0]
                                                                  : at->dw[0]};
}

static enum ghp_status multiply(struct ghp_cuda_kernel *kernel, struct tensors t, char *workspace,
                                int64_t bytes)
{
    const struct linear *linear = kernel->data;
    struct ghp_backend *backend = kernel->base.backend;
    float one = 1, beta = kernel->fused.add ? 1 : 0;

    if (adds_bias(kernel))
        GHP_TRY(GHP_CUBLASLT(lt_of(kernel), cublasLtMatmulDescSetAttribute(
                                                linear->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                &t.bias, sizeof t.bias)));
    return GHP_CUBLASLT(lt_of(kernel),
                        cublasLtMatmul(ghp_cuda_of(backend)->cublaslt_handle, linear->desc, &one,
                                       t.a, linear->a, t.b, linear->b, &beta, t.d, linear->d, t.d,
                                       linear->d, &linear->algorithm, workspace, (size_t)bytes,
                                       ghp_cuda_launch(backend).stream));
}

static enum ghp_status run_linear(struct ghp_cuda_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    const struct linear *linear = kernel->data;
    char *scratch = ghp_cuda_aligned(args->at.scratch);

    if (casts(kernel, &args->at)) GHP_TRY(cast(kernel, &args->at, scratch, adds_bias(kernel)));
    return multiply(kernel, tensors_of(kernel, &args->at), scratch + kernel->workspace_at,
                    linear->workspace_bytes);
}

/* ---- several at once ---- */

/* Elements from one product's tensors to the next one's. */
struct strides {
    int64_t a, b, bias, d;
};

/* Whether the distance to `more` is `n` times that from `first` to `second`, forwards; sets it, in elements. */
static bool is_even(const void *first, const void *second, const void *more, int n,
                    int64_t element_bytes, int64_t *stride)
{
    int64_t bytes = (const char *)second - (const char *)first;

    *stride = bytes / element_bytes;
    return bytes >= 0 && bytes % element_bytes == 0 &&
           (const char *)more - (const char *)first == n * bytes;
}

static bool are_even(const struct ghp_cuda_kernel *kernel, struct ghp_joint_run run,
                     struct strides *s)
{
    const struct ghp_kernel_arguments *args = run.args;
    const struct tensors first = tensors_of(kernel, &args[0].at),
                         second = tensors_of(kernel, &args[1].at);
    int64_t bytes = is_bf16(kernel) ? 2 : 4,
            d_bytes = kernel->base.pass == GHP_PASS_BACKWARD_WEIGHT ? 4 : bytes;
    bool even = !casts(kernel, &args[0].at);

    for (int i = 1; i < run.n && even; i++) {
        const struct tensors t = tensors_of(kernel, &args[i].at);

        even = !casts(kernel, &args[i].at) && is_even(first.a, second.a, t.a, i, bytes, &s->a) &&
               is_even(first.b, second.b, t.b, i, bytes, &s->b) &&
               is_even(first.d, second.d, t.d, i, d_bytes, &s->d) &&
               (!adds_bias(kernel) || is_even(first.bias, second.bias, t.bias, i, bytes, &s->bias));
    }
    return even;
}

/* The descriptors are those of n products from now on. */
static enum ghp_status set_batch(const struct ghp_cuda_kernel *kernel, int32_t n,
                                 const struct strides *s)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    const struct linear *linear = kernel->data;
    const struct {
        cublasLtMatrixLayout_t layout;
        int64_t stride;
    } all[] = {{linear->a, s->a}, {linear->b, s->b}, {linear->d, s->d}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        GHP_TRY(
            GHP_CUBLASLT(lt, cublasLtMatrixLayoutSetAttribute(
                                 all[i].layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n)));
        GHP_TRY(GHP_CUBLASLT(lt, cublasLtMatrixLayoutSetAttribute(
                                     all[i].layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                     &all[i].stride, sizeof all[i].stride)));
    }
    if (!adds_bias(kernel)) return GHP_OK;
    return GHP_CUBLASLT(lt, cublasLtMatmulDescSetAttribute(linear->desc,
                                                           CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
                                                           &s->bias, sizeof s->bias));
}

/* Runs them as one batch, unless cuBLASLt has none by this algorithm, or not within so much scratch. */
static enum ghp_status run_batch(struct ghp_cuda_kernel *kernel, struct ghp_joint_run run,
                                 const struct strides *strides, bool *done)
{
    const struct linear *linear = kernel->data;
    const struct ghp_tensors *at = &run.args[0].at;
    char *scratch = ghp_cuda_aligned(at->scratch);
    int64_t room = run.scratch_bytes - (scratch - (char *)at->scratch);
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_SUCCESS};
    enum ghp_status status = set_batch(kernel, run.n, strides);

    *done =
        status == GHP_OK && takes(kernel, &linear->algorithm, &result) &&
        (int64_t)result.workspaceSize <= room &&
        multiply(kernel, tensors_of(kernel, at), scratch, (int64_t)result.workspaceSize) == GHP_OK;
    GHP_TRY(status);
    return set_batch(kernel, 1, &(struct strides){0});
}

static enum ghp_status run_all_linear(struct ghp_cuda_kernel *kernel, struct ghp_joint_run run)
{
    struct strides strides = {0};
    bool done = false;

    if (run.n > 1 && !kernel->epilogue && are_even(kernel, run, &strides))
        GHP_TRY(run_batch(kernel, run, &strides, &done));
    for (int i = 0; i < run.n && !done; i++)
        GHP_TRY(ghp_cuda_kernel_run(kernel, &run.args[i]));
    return GHP_OK;
}

/* ---- names of algorithms: the structure's words, which restore it in the same version ---- */

enum { WORDS = sizeof(cublasLtMatmulAlgo_t) / sizeof(uint64_t) };

static void name_algorithm(const cublasLtMatmulAlgo_t *algorithm, char *text, size_t n)
{
    size_t used = 0;

    for (int i = 0; i < WORDS; i++)
        used += (size_t)snprintf(text + used, n - used, i > 0 ? ".%" PRIx64 : "%" PRIx64,
                                 algorithm->data[i]);
}

static bool parse_name(const char *text, cublasLtMatmulAlgo_t *algorithm)
{
    for (int i = 0; i < WORDS; i++) {
        char *end = NULL;

        if (i > 0 && *text++ != '.') return false;
        algorithm->data[i] = strtoull(text, &end, 16);
        if (end == text) return false;
        text = end;
    }
    return *text == '\0';
}

/* ---- choosing ---- */

static void take(struct ghp_cuda_kernel *kernel, const cublasLtMatmulHeuristicResult_t *result)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    struct linear *linear = kernel->data;
    char name[WORDS * 17 + 1];

    linear->algorithm = result->algo;
    linear->workspace_bytes = (int64_t)result->workspaceSize;
    kernel->base.scratch_bytes = ghp_cuda_scratch(kernel->workspace_at + linear->workspace_bytes);
    name_algorithm(&result->algo, name, sizeof name);
    ghp_choice_text(kernel->algorithm, "cublaslt", (int64_t)lt->cublasLtGetVersion(), name);
}

static void take_candidate(struct ghp_cuda_kernel *kernel, int candidate)
{
    const struct linear *linear = kernel->data;

    take(kernel, &linear->found[candidate]);
}

/* By what a name of this version says. */
static bool take_named(struct ghp_cuda_kernel *kernel, const char *rest)
{
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_SUCCESS};
    cublasLtMatmulAlgo_t algorithm;

    if (!parse_name(rest, &algorithm) || !takes(kernel, &algorithm, &result)) return false;
    result.algo = algorithm;
    take(kernel, &result);
    return true;
}

/* What an algorithm may do: the most workspace, how aligned tensors are at least, and how split sums are joined: in
 * float (in place is in the result's own numbers), and if results must repeat not at all. */
static enum ghp_status set_rules(const struct ghp_cuda_kernel *kernel,
                                 cublasLtMatmulPreference_t rules)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const struct ghp_cublaslt *lt = lt_of(kernel);
    uint64_t workspace = (uint64_t)MOST_WORKSPACE_BYTES;
    uint32_t aligned = GHP_ALIGN_BYTES;
    bool floats = product_of(kernel).d.type == CUDA_R_32F;
    uint32_t joined =
        kernel->base.backend->config.exact
            ? CUBLASLT_REDUCTION_SCHEME_NONE
            : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                  (floats ? CUBLASLT_REDUCTION_SCHEME_INPLACE : CUBLASLT_REDUCTION_SCHEME_NONE);

    GHP_TRY(GHP_CUBLASLT(
        lt, cublasLtMatmulPreferenceSetAttribute(rules, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &workspace, sizeof workspace)));
    GHP_TRY(GHP_CUBLASLT(
        lt, cublasLtMatmulPreferenceSetAttribute(rules, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                 &joined, sizeof joined)));
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++)
        GHP_TRY(GHP_CUBLASLT(lt, cublasLtMatmulPreferenceSetAttribute(rules, alignments[i],
                                                                      &aligned, sizeof aligned)));
    return GHP_OK;
}

/* The heuristics' candidates; n is 0 if they have none for such a product. */
static enum ghp_status list(struct ghp_cuda_kernel *kernel,
                            struct ghp_cuda_candidate_list *candidates)
{
    const struct ghp_cublaslt *lt = lt_of(kernel);
    struct linear *linear = kernel->data;
    cublasLtMatmulPreference_t rules = NULL;
    enum ghp_status status;
    int n = 0;

    GHP_TRY(GHP_CUBLASLT(lt, cublasLtMatmulPreferenceCreate(&rules)));
    status = set_rules(kernel, rules);
    if (status == GHP_OK && lt->cublasLtMatmulAlgoGetHeuristic(
                                ghp_cuda_of(kernel->base.backend)->cublaslt_handle, linear->desc,
                                linear->a, linear->b, linear->d, linear->d, rules,
                                GHP_CUDA_CANDIDATES, linear->found, &n) != CUBLAS_STATUS_SUCCESS)
        n = 0;
    lt->cublasLtMatmulPreferenceDestroy(rules);
    candidates->n = 0;
    for (int i = 0; i < n; i++) {
        if (linear->found[i].state != CUBLAS_STATUS_SUCCESS) continue;
        linear->found[candidates->n] = linear->found[i];
        candidates->workspace_bytes[candidates->n++] = (int64_t)linear->found[i].workspaceSize;
    }
    return status;
}

/* Takes the fastest of the heuristics' first `most`. */
static enum ghp_status take_fastest(struct ghp_cuda_kernel *kernel, int most, bool *taken)
{
    struct ghp_cuda_candidate_list candidates = {.take = take_candidate};
    int winner = -1;

    GHP_TRY(list(kernel, &candidates));
    if (candidates.n > most) candidates.n = most;
    GHP_TRY(ghp_cuda_choose(kernel, &candidates, &winner));
    *taken = winner >= 0;
    return GHP_OK;
}

/* Chooses the algorithm of this name. If it is not available so, with or without what is fused, it takes cuBLASLt's
 * first suggestion, which is the same in a run as it was for the profile. Without such a name it takes the fastest. */
static enum ghp_status choose(struct ghp_cuda_kernel *kernel, const char *name, bool *taken)
{
    const char *rest =
        ghp_choice_rest(name, "cublaslt", (int64_t)lt_of(kernel)->cublasLtGetVersion());

    *taken = rest != NULL && take_named(kernel, rest);
    if (*taken) return GHP_OK;
    return take_fastest(kernel, rest != NULL ? 1 : ghp_cuda_candidates(name), taken);
}

enum ghp_status ghp_cuda_linear_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    struct ghp_choices *choices = &ghp_cuda_of(kernel->base.backend)->choices;
    const struct ghp_local *local = &kernel->base.local;
    const char *kept = ghp_choices_find(choices, ghp_cuda_chosen(kernel));
    const char *name = kept != NULL ? kept : wanted;
    bool taken = false;

    GHP_TRY(ghp_cuda_need_cublaslt(kernel->base.backend));
    GHP_TRY(describe(kernel));
    kernel->run = run_linear;
    kernel->run_all = run_all_linear;
    if (is_bf16(kernel) && kernel->base.pass != GHP_PASS_BACKWARD_WEIGHT)
        kernel->workspace_at =
            bias_at(kernel) + (kernel->fused.bias ? ghp_cuda_round(local->k * 2) : 0);
    if (ghp_kernel_spec_is_fused(kernel->fused)) {
        GHP_TRY(set_epilogue(kernel, true));
        GHP_TRY(choose(kernel, name, &taken));
    }
    if (!taken) {
        GHP_TRY(set_epilogue(kernel, false));
        GHP_TRY(choose(kernel, name, &taken));
    }
    if (!taken) {
        release_linear(kernel);
        kernel->release = NULL;
        kernel->run_all = NULL;
        kernel->workspace_at = 0;
        ghp_cuda_direct_prepare(kernel);
    }
    return ghp_choices_keep(choices, ghp_cuda_chosen(kernel), kernel->algorithm);
}
