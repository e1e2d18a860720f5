/* executor/backend/cuda/direct.c - convolutions and linear layers by ghp's plain kernels: right for every shape, and
 * slow.
 *
 * What is left if cuDNN has no engine for a shape that follows the rules, and what the libraries' results are tested
 * against on the device itself. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include <string.h>

static struct ghp_direct_job job_of(const struct ghp_local *l,
                                    const struct ghp_kernel_arguments *args)
{
    const struct ghp_window *w = &l->window;
    struct ghp_direct_job job = {.n = l->n,
                                 .c = l->c,
                                 .h = l->h,
                                 .w = l->w,
                                 .k = l->k,
                                 .p = l->p,
                                 .q = l->q,
                                 .groups = w->groups,
                                 .r = w->r,
                                 .s = w->s,
                                 .stride_h = w->stride_h,
                                 .stride_w = w->stride_w,
                                 .pad_top = w->pad_top,
                                 .pad_left = w->pad_left,
                                 .dilation_h = w->dilation_h,
                                 .dilation_w = w->dilation_w,
                                 .x = args->at.x[0],
                                 .dy = args->at.dy,
                                 .y = args->at.y,
                                 .dx = args->at.dx[0],
                                 .weights = args->at.w[0],
                                 .weights_bf16 = args->at.w_bf16[0],
                                 .dweights = args->at.dw[0]};

    if (l->op == GHP_OP_CONV2D) return job;
    job.n = l->n * l->h; /* each row is one pixel */
    job.c = l->c;
    job.h = job.w = job.p = job.q = job.r = job.s = job.groups = 1;
    job.stride_h = job.stride_w = job.dilation_h = job.dilation_w = 1;
    job.pad_top = job.pad_left = 0;
    return job;
}

static enum ghp_status run_direct(struct ghp_cuda_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    struct ghp_launch launch = ghp_cuda_launch(kernel->base.backend);
    struct ghp_direct_job job = job_of(&kernel->base.local, args);
    cudaError_t error = cudaErrorInvalidValue;

    job.adds = kernel->fused.add;
    if (kernel->base.pass == GHP_PASS_FORWARD) error = ghp_launch_direct_forward(launch, &job);
    if (kernel->base.pass == GHP_PASS_BACKWARD_DATA) error = ghp_launch_direct_data(launch, &job);
    if (kernel->base.pass == GHP_PASS_BACKWARD_WEIGHT)
        error = ghp_launch_direct_weight(launch, &job);
    return ghp_cuda_status(error, ghp_op_name(kernel->base.local.op));
}

void ghp_cuda_direct_prepare(struct ghp_cuda_kernel *kernel)
{
    kernel->run = run_direct;
    kernel->epilogue = kernel->fused.bias || kernel->fused.relu || kernel->fused.sums;
    kernel->base.scratch_bytes = ghp_cuda_epilogue_scratch(kernel);
    memcpy(kernel->algorithm, GHP_CUDA_DIRECT, sizeof(GHP_CUDA_DIRECT));
}
