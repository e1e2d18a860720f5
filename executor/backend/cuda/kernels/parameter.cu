// executor/backend/cuda/kernels/parameter.cu - parameter: a tensor for every sample, whose channels are innermost there.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

// y [n][pixels][k] of w [k][pixels].
template <typename T>
__global__ void parameter_kernel(int64_t n, int64_t pixels, int64_t k, const float *w, T *y)
{
    for (int64_t item = first_item(); item < n * pixels * k; item += item_stride())
        y[item] = narrow<T>(w[item % k * pixels + item / k % pixels]);
}

template <typename T>
__global__ void parameter_weight_kernel(int64_t n, int64_t pixels, int64_t k, const T *dy,
                                        float *dw)
{
    for (int64_t item = first_item(); item < pixels * k; item += item_stride()) {
        float sum = 0;

        for (int64_t i = 0; i < n; i++)
            sum += widen(dy[i * pixels * k + item]);
        dw[item % k * pixels + item / k] = sum;
    }
}

cudaError_t parameter_forward(struct ghp_launch launch, const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args)
{
    int64_t pixels = local->p * local->q;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(parameter_kernel<T>, blocks_for(local->n * pixels * local->k), kThreads, 0,
                launch.stream, local->n, pixels, local->k, (const float *)args->at.w[0],
                (T *)args->at.y);
    });
}

cudaError_t parameter_weight(struct ghp_launch launch, const struct ghp_local *local,
                             const struct ghp_kernel_arguments *args)
{
    int64_t pixels = local->p * local->q;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(parameter_weight_kernel<T>, blocks_for(pixels * local->k), kThreads, 0,
                launch.stream, local->n, pixels, local->k, (const T *)args->at.dy,
                (float *)args->at.dw[0]);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_parameter[] = {
    {GHP_OP_PARAMETER, GHP_PASS_FORWARD, parameter_forward, nullptr},
    {GHP_OP_PARAMETER, GHP_PASS_BACKWARD_WEIGHT, parameter_weight, nullptr},
    {},
};
