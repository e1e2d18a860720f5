/* executor/backend/cuda/backend_cuda.c - the GPU backend: opening, kernels, sums. See backend_cuda_private.h,
 * docs/how-to/gpu.md.
 *
 * Workers of a node take its GPUs in turns by their seats. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static enum ghp_status cuda_check(void)
{
    return ghp_cuda_find(NULL);
}

static bool cuda_has_precision(int element_bytes)
{
    return element_bytes == 4 || element_bytes == 2;
}

static bool cuda_has(enum ghp_op op, enum ghp_pass pass)
{
    if (op == GHP_OP_CONV2D || op == GHP_OP_LINEAR || op == GHP_OP_CONV_TRANSPOSE)
        return ghp_op_has_pass(op, pass);
    return ghp_cuda_native_has(op, pass);
}

static void cuda_close(struct ghp_backend *backend)
{
    struct ghp_cuda *cuda;

    if (backend == NULL) return;
    cuda = ghp_cuda_of(backend);
    if (cuda != NULL && ghp_cuda_enter(backend) == GHP_OK) {
        cudaDeviceSynchronize();
        if (cuda->cudnn_handle != NULL) cuda->cudnn->cudnnDestroy(cuda->cudnn_handle);
        if (cuda->cublaslt_handle != NULL) cuda->cublaslt->cublasLtDestroy(cuda->cublaslt_handle);
        for (int i = 0; i < GHP_DEVICE_STREAM_COUNT; i++)
            if (cuda->streams[i] != NULL) cudaStreamDestroy(cuda->streams[i]);
        cudaGetLastError();
        ghp_choices_release(&cuda->choices);
    }
    free(cuda);
    free(backend);
}

/* Communication comes first if both have work: what waits for it is longer. */
enum ghp_status ghp_cuda_open_stream(struct ghp_backend *backend, enum ghp_device_stream stream)
{
    bool first = stream == GHP_DEVICE_STREAM_COMM || stream >= GHP_DEVICE_STREAM_LANES;
    cudaStream_t *opened = &ghp_cuda_of(backend)->streams[stream];
    int least = 0, greatest = 0;

    if (*opened != NULL) return GHP_OK;
    GHP_TRY(GHP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
    return GHP_CUDA(
        cudaStreamCreateWithPriority(opened, cudaStreamNonBlocking, first ? greatest : least));
}

/* bfloat16 and what else the kernels are written for came with Ampere.
 *
 * multiprocessors   receives the GPU's */
static enum ghp_status check_gpu(const struct ghp_backend_config *config, int device,
                                 int *multiprocessors)
{
    struct cudaDeviceProp gpu;

    GHP_TRY(GHP_CUDA(cudaGetDeviceProperties(&gpu, device)));
    if (gpu.major < 8)
        return GHP_FAIL(GHP_ERR_BACKEND,
                        "GPU %d ('%.80s') has compute capability %d.%d, and ghp takes 8.0 and "
                        "later (Ampere, such as A100); hide it by CUDA_VISIBLE_DEVICES, or use "
                        "--backend onednn",
                        device, gpu.name, gpu.major, gpu.minor);
    *multiprocessors = gpu.multiProcessorCount;
    if (config->reduce_multiprocessors < *multiprocessors) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--reduce-multiprocessors %d leaves products none: GPU %d ('%.80s') has %d; "
                    "give fewer",
                    config->reduce_multiprocessors, device, gpu.name, *multiprocessors);
}

static enum ghp_status cuda_open(const struct ghp_backend_config *config,
                                 struct ghp_backend **backend)
{
    struct ghp_backend *opened;
    enum ghp_status status;
    int count = 0, multiprocessors = 0;

    if (!cuda_has_precision(config->element_bytes))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "backend 'cuda' has no numbers of %d bytes; use float, tf32 or bf16, or "
                        "'--backend reference' for double",
                        config->element_bytes);
    GHP_TRY(ghp_cuda_find(&count));
    GHP_TRY(check_gpu(config, config->local_rank % count, &multiprocessors));
    opened = ghp_alloc(1, sizeof *opened);
    if (opened == NULL) return GHP_NO_MEMORY();
    opened->config = *config;
    opened->library = ghp_alloc(1, sizeof(struct ghp_cuda));
    if (opened->library == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    ghp_cuda_of(opened)->device = config->local_rank % count;
    ghp_cuda_of(opened)->multiprocessors = multiprocessors;
    GHP_TRY_GOTO(status, ghp_cuda_enter(opened), fail);
    for (int i = 0; i < GHP_DEVICE_STREAM_LANES; i++)
        GHP_TRY_GOTO(status, ghp_cuda_open_stream(opened, (enum ghp_device_stream)i), fail);
    *backend = opened;
    return GHP_OK;
fail:
    cuda_close(opened);
    return status;
}

/* ---- kernels ---- */

static void cuda_release(struct ghp_kernel *kernel)
{
    struct ghp_cuda_kernel *mine = (struct ghp_cuda_kernel *)kernel;

    if (mine == NULL) return;
    if (kernel->turned != NULL) {
        cuda_release(kernel->turned);
        free(kernel);
        return;
    }
    if (mine->release != NULL)
        mine->release(mine);
    else
        free(mine->data);
    free(mine);
}

static enum ghp_status fill_in(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    switch (kernel->base.local.op) {
    case GHP_OP_CONV2D: return ghp_cuda_conv_prepare(kernel, wanted);
    case GHP_OP_LINEAR: return ghp_cuda_linear_prepare(kernel, wanted);
    case GHP_OP_ATTENTION: return ghp_cuda_attention_prepare(kernel, wanted);
    default: return ghp_cuda_native_prepare(kernel);
    }
}

/* Those that are added in the product, or while a row is in registers. */
static bool takes_sum(enum ghp_op op)
{
    return op == GHP_OP_LINEAR || op == GHP_OP_LAYER_NORM || op == GHP_OP_RMS_NORM;
}

/* Whether a pass can take so much along. */
static bool takes(enum ghp_op op, enum ghp_pass pass, struct ghp_kernel_spec fused)
{
    if (!ghp_kernel_spec_is_fused(fused)) return true;
    if (pass == GHP_PASS_BACKWARD_DATA && fused.add)
        return takes_sum(op) && !fused.bias && !fused.relu && !fused.stats && !fused.gradient;
    if (op == GHP_OP_CONV2D && pass == GHP_PASS_BACKWARD_DATA)
        return !fused.bias && !fused.stats && !fused.add && !fused.gradient && !fused.sums;
    if (op == GHP_OP_CONV2D && fused.sums)
        return pass == GHP_PASS_FORWARD && !fused.bias && !fused.relu;
    if (op == GHP_OP_CONV2D || op == GHP_OP_LINEAR)
        return pass == GHP_PASS_FORWARD && !fused.stats && !fused.add && !fused.gradient &&
               !fused.sums;
    return ghp_cuda_native_takes(op, pass, fused);
}

static enum ghp_status cuda_prepare_with(struct ghp_backend *backend, const struct ghp_local *local,
                                         enum ghp_pass pass, const char *algorithm,
                                         struct ghp_kernel_spec fused, struct ghp_kernel **kernel)
{
    struct ghp_cuda_kernel *made;
    enum ghp_status status;

    *kernel = NULL;
    if (!ghp_local_has_pass(local, pass))
        return GHP_FAIL(GHP_ERR_INPUT, "'%s' has no pass '%s'; ask for one that the operation has",
                        ghp_op_name(local->op), ghp_pass_name(pass));
    if (!takes(local->op, pass, fused)) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    if (local->op == GHP_OP_CONV_TRANSPOSE)
        return ghp_kernel_prepare_turned(&ghp_backend_cuda, backend, local, pass, kernel);
    made = ghp_alloc(1, sizeof *made);
    if (made == NULL) return GHP_NO_MEMORY();
    made->base = (struct ghp_kernel){.backend = backend,
                                     .local = *local,
                                     .pass = pass,
                                     .parts = 1,
                                     .algorithm = made->algorithm};
    made->fused = fused;
    if (pass == GHP_PASS_BACKWARD_DATA && fused.relu)
        made->mask = ghp_cuda_native_row(GHP_OP_RELU, GHP_PASS_BACKWARD_DATA);
    status = fill_in(made, algorithm);
    if (status == GHP_OK)
        *kernel = &made->base;
    else
        cuda_release(&made->base);
    return status;
}

static enum ghp_status cuda_prepare_as(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, const char *algorithm,
                                       struct ghp_kernel **kernel)
{
    const struct ghp_kernel_spec nothing = {0};

    return cuda_prepare_with(backend, local, pass, algorithm, nothing, kernel);
}

static enum ghp_status cuda_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                    enum ghp_pass pass, struct ghp_kernel **kernel)
{
    return cuda_prepare_as(backend, local, pass, NULL, kernel);
}

/* With `exact` a bias is added by itself, as where it follows a sum of partial tensors. */
static bool cuda_fuses(const struct ghp_backend *backend, enum ghp_op op, enum ghp_pass pass)
{
    const struct ghp_kernel_spec bias = {.bias = true}, relu = {.relu = true}, add = {.add = true},
                                 gradient = {.gradient = true};

    if (backend->config.exact) return false;
    if (op == GHP_OP_RELU) return pass == GHP_PASS_BACKWARD_DATA; /* in a sum of gradients */
    if (pass == GHP_PASS_FORWARD && takes(op, pass, add)) return true;
    return takes(op, pass, bias) || takes(op, pass, relu) || takes(op, pass, gradient);
}

static bool cuda_adds(const struct ghp_backend *backend, enum ghp_op op)
{
    return !backend->config.exact && takes_sum(op);
}

/* In bfloat16, which rounds more than float sums do (kernels/given_sums.cu), and for which cuDNN has engines. */
static bool cuda_sums(const struct ghp_backend *backend)
{
    return backend->config.element_bytes == 2 && !backend->config.exact;
}

static enum ghp_status cuda_run(struct ghp_kernel *kernel, const struct ghp_kernel_arguments *args)
{
    if (kernel->turned != NULL) {
        const struct ghp_kernel_arguments turned = ghp_kernel_arguments_turned(args);

        return cuda_run(kernel->turned, &turned);
    }
    GHP_TRY(ghp_cuda_enter(kernel->backend));
    return ghp_cuda_kernel_run((struct ghp_cuda_kernel *)kernel, args);
}

static bool cuda_joins(const struct ghp_kernel *kernel)
{
    const struct ghp_cuda_kernel *mine = (const struct ghp_cuda_kernel *)kernel;

    return kernel->turned == NULL && mine->run_all != NULL && !kernel->backend->config.exact;
}

static enum ghp_status cuda_run_all(struct ghp_kernel *kernel, struct ghp_joint_run run)
{
    struct ghp_cuda_kernel *mine = (struct ghp_cuda_kernel *)kernel;

    GHP_TRY(ghp_cuda_enter(kernel->backend));
    return mine->run_all(mine, run);
}

/* ---- sums ---- */

static enum ghp_status cuda_accumulate(struct ghp_backend *backend, void *to, const void *from,
                                       struct ghp_buffer_extent extent)
{
    struct ghp_elementwise_job job = {
        .what = GHP_ELEMENTWISE_ADD, .n = extent.n, .a = to, .b = from, .out = to};
    struct ghp_launch launch = ghp_cuda_launch(backend);

    GHP_TRY(ghp_cuda_enter(backend));
    if (extent.bytes == 8)
        return ghp_cuda_status(ghp_launch_add_doubles(launch.stream, extent.n, from, to), "sum");
    launch.bf16 = extent.bytes == 2;
    return ghp_cuda_status(ghp_launch_elementwise(launch, &job), "accumulate");
}

static enum ghp_status cuda_accumulate_masked(struct ghp_backend *backend,
                                              const struct ghp_masked_sum *sum)
{
    struct ghp_launch launch = ghp_cuda_launch(backend);

    GHP_TRY(ghp_cuda_enter(backend));
    launch.bf16 = sum->extent.bytes == 2;
    return ghp_cuda_status(ghp_launch_masked_sum(launch, sum->extent.n, sum->to, sum->from, sum->y),
                           "gated sum");
}

static enum ghp_status cuda_copy_weight(struct ghp_backend *backend, const void *w, void *copy,
                                        int64_t n)
{
    GHP_TRY(ghp_cuda_enter(backend));
    return ghp_cuda_status(ghp_launch_to_bf16(ghp_cuda_launch(backend).stream, n, w, copy),
                           "to bf16");
}

const struct ghp_backend_ops ghp_backend_cuda = {
    .name = "cuda",
    .device = &ghp_cuda_device,
    .check = cuda_check,
    .has_precision = cuda_has_precision,
    .has_tf32 = true,
    .vocabulary_multiple = 64,
    .has = cuda_has,
    .open = cuda_open,
    .close = cuda_close,
    .prepare = cuda_prepare,
    .prepare_as = cuda_prepare_as,
    .fuses = cuda_fuses,
    .adds = cuda_adds,
    .sums = cuda_sums,
    .prepare_nchw16c = cuda_prepare_with,
    .scratch_bytes = ghp_kernel_scratch_bytes,
    .algorithm = ghp_kernel_algorithm,
    .run = cuda_run,
    .joins = cuda_joins,
    .run_all = cuda_run_all,
    .release = cuda_release,
    .copy_weight = cuda_copy_weight,
    .square = ghp_cuda_square,
    .update = ghp_cuda_update_one,
    .update_all = ghp_cuda_update_all,
    .accumulate = cuda_accumulate,
    .accumulate_masked = cuda_accumulate_masked,
};
