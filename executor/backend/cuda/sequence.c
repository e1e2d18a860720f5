/* executor/backend/cuda/sequence.c - operations on sequences on a GPU: rotary. */
#include "executor/backend/cuda/native.h"

static enum ghp_status turn(const struct ghp_cuda_kernel *kernel, float sign, const void *from,
                            void *to)
{
    const struct ghp_local *l = &kernel->base.local;
    struct ghp_rotary_job job = {.n = l->n,
                                 .positions = l->h,
                                 .heads = l->c / l->heads.size,
                                 .pairs = l->heads.size / 2,
                                 .base = l->heads.base,
                                 .sign = sign,
                                 .from = from,
                                 .to = to};

    return ghp_cuda_native_status(ghp_launch_rotary(ghp_cuda_launch(kernel->base.backend), &job),
                                  kernel);
}

static enum ghp_status run_rotary(struct ghp_cuda_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    return turn(kernel, 1.0f, args->at.x[0], args->at.y);
}

static enum ghp_status run_rotary_data(struct ghp_cuda_kernel *kernel,
                                       const struct ghp_kernel_arguments *args)
{
    return turn(kernel, -1.0f, args->at.dy, args->at.dx[0]);
}

const struct ghp_cuda_native ghp_cuda_native_sequence[] = {
    {GHP_OP_ROTARY, GHP_PASS_FORWARD, run_rotary, NULL, NULL},
    {GHP_OP_ROTARY, GHP_PASS_BACKWARD_DATA, run_rotary_data, NULL, NULL},
    {.run = NULL},
};
