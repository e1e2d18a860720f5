/* executor/backend/cuda/opened.c - what kernels need of the opened backend: its GPU as this thread's, libraries when a
 * kernel first needs them, and a prepared pass run with what it fuses. See backend_cuda_private.h. */
#include "executor/backend/cuda/backend_cuda_private.h"

enum ghp_status ghp_cuda_enter(struct ghp_backend *backend)
{
    static _Thread_local int entered = -1;
    int device = ghp_cuda_of(backend)->device;

    if (entered == device) return GHP_OK;
    GHP_TRY(GHP_CUDA(cudaSetDevice(device)));
    entered = device;
    return GHP_OK;
}

enum ghp_status ghp_cuda_need_cudnn(struct ghp_backend *backend)
{
    struct ghp_cuda *cuda = ghp_cuda_of(backend);
    const struct ghp_cudnn *cudnn = NULL;

    if (cuda->cudnn != NULL) return GHP_OK;
    GHP_TRY(ghp_cudnn_load(&cudnn));
    GHP_TRY(GHP_CUDNN(cudnn, cudnnCreate(&cuda->cudnn_handle)));
    cuda->cudnn = cudnn;
    return GHP_CUDNN(cudnn,
                     cudnnSetStream(cuda->cudnn_handle, cuda->streams[GHP_DEVICE_STREAM_COMPUTE]));
}

enum ghp_status ghp_cuda_need_cublaslt(struct ghp_backend *backend)
{
    struct ghp_cuda *cuda = ghp_cuda_of(backend);
    const struct ghp_cublaslt *lt = NULL;

    if (cuda->cublaslt != NULL) return GHP_OK;
    GHP_TRY(ghp_cublaslt_load(&lt));
    GHP_TRY(GHP_CUBLASLT(lt, cublasLtCreate(&cuda->cublaslt_handle)));
    cuda->cublaslt = lt;
    return GHP_OK;
}

/* Zeroes in dx what the ReLU that made x did not let through. */
static enum ghp_status run_mask(const struct ghp_cuda_kernel *kernel,
                                const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct ghp_local relu = {.op = GHP_OP_RELU,
                                   .n = l->n,
                                   .c = l->c,
                                   .h = l->h,
                                   .w = l->w,
                                   .k = l->c,
                                   .p = l->h,
                                   .q = l->w};
    const struct ghp_kernel_arguments mask = {.at = {.y = (void *)(uintptr_t)args->at.x[0],
                                                     .dy = args->at.dx[0],
                                                     .dx = {args->at.dx[0]}}};

    return ghp_cuda_status(
        kernel->mask->launch(ghp_cuda_launch(kernel->base.backend), &relu, &mask), "mask");
}

int64_t ghp_cuda_epilogue_scratch(const struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;

    return kernel->fused.sums ? ghp_sum_scratch(l->n * l->p * l->q, l->k) : 0;
}

/* The sums of a convolution's output, if a batch norm is to read them. */
static enum ghp_status run_sums(const struct ghp_cuda_kernel *kernel,
                                const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct ghp_sum_job job = {.what = GHP_SUM_SQUARES,
                                    .rows = l->n * l->p * l->q,
                                    .c = l->k,
                                    .x = args->at.y,
                                    .out = args->at.sums,
                                    .scratch = args->at.scratch};

    if (args->at.sums == NULL) return GHP_OK;
    return ghp_cuda_status(ghp_launch_sum(ghp_cuda_launch(kernel->base.backend), &job), "sums");
}

/* Runs bias and ReLU after a convolution or linear layer, or the ReLU's mask after its gradient, in place; or sums of
 * its output. */
static enum ghp_status run_epilogue(const struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    struct ghp_bias_job job = {.rows = l->n * l->p * l->q,
                               .c = l->k,
                               .x = args->at.y,
                               .b = kernel->fused.bias ? args->at.w[1] : NULL,
                               .relu = kernel->fused.relu,
                               .y = args->at.y};

    if (kernel->base.pass == GHP_PASS_BACKWARD_DATA) return run_mask(kernel, args);
    if (kernel->fused.sums) return run_sums(kernel, args);
    return ghp_cuda_status(ghp_launch_bias(ghp_cuda_launch(kernel->base.backend), &job), "bias");
}

enum ghp_status ghp_cuda_kernel_run(struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    GHP_TRY(kernel->run(kernel, args));
    return kernel->epilogue ? run_epilogue(kernel, args) : GHP_OK;
}
