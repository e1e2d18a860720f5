/* executor/backend/cuda/pool.c - pools on a GPU. */
#include "executor/backend/cuda/native.h"

static struct ghp_pool_job pool_job(const struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct ghp_window *w = &l->window;
    struct ghp_pool_job job = {.n = l->n,
                               .c = l->c,
                               .h = l->h,
                               .w = l->w,
                               .p = l->p,
                               .q = l->q,
                               .r = w->r,
                               .s = w->s,
                               .stride_h = w->stride_h,
                               .stride_w = w->stride_w,
                               .pad_top = w->pad_top,
                               .pad_left = w->pad_left,
                               .dilation_h = w->dilation_h,
                               .dilation_w = w->dilation_w,
                               .count_pad = w->count_pad,
                               .x = args->at.x[0],
                               .dy = args->at.dy,
                               .y = args->at.y,
                               .dx = args->at.dx[0],
                               .argmax = args->at.saved,
                               .masked = kernel->fused.relu};

    if (l->op != GHP_OP_GLOBAL_AVG_POOL) return job;
    job.r = l->h; /* one window over the image */
    job.s = l->w;
    job.stride_h = job.stride_w = job.dilation_h = job.dilation_w = 1;
    job.pad_top = job.pad_left = 0;
    job.count_pad = false;
    return job;
}

typedef cudaError_t pool_fn(struct ghp_launch launch, const struct ghp_pool_job *job);

static enum ghp_status pool(const struct ghp_cuda_kernel *kernel,
                            const struct ghp_kernel_arguments *args, pool_fn *run)
{
    struct ghp_pool_job job = pool_job(kernel, args);

    return ghp_cuda_native_status(run(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_max(struct ghp_cuda_kernel *kernel,
                               const struct ghp_kernel_arguments *args)
{
    return pool(kernel, args, ghp_launch_max_pool);
}

static enum ghp_status run_max_data(struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    return pool(kernel, args, ghp_launch_max_pool_back);
}

static enum ghp_status run_avg(struct ghp_cuda_kernel *kernel,
                               const struct ghp_kernel_arguments *args)
{
    return pool(kernel, args, ghp_launch_avg_pool);
}

static enum ghp_status run_avg_data(struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    return pool(kernel, args, ghp_launch_avg_pool_back);
}

const struct ghp_cuda_native ghp_cuda_native_pool[] = {
    {GHP_OP_MAX_POOL, GHP_PASS_FORWARD, run_max, NULL, NULL},
    {GHP_OP_MAX_POOL, GHP_PASS_BACKWARD_DATA, run_max_data, NULL, NULL},
    {GHP_OP_AVG_POOL, GHP_PASS_FORWARD, run_avg, NULL, NULL},
    {GHP_OP_AVG_POOL, GHP_PASS_BACKWARD_DATA, run_avg_data, NULL, NULL},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_FORWARD, run_avg, NULL, NULL},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_BACKWARD_DATA, run_avg_data, NULL, NULL},
    {.run = NULL},
};
