// executor/backend/cuda/kernels/conv.cu - convolutions by their definition: right for every shape, and slow. A linear
// layer is one of a window and images of 1 x 1. See kernels/kernels.h.
#include "executor/backend/cuda/kernels/window.cuh"

namespace
{

__device__ __forceinline__ float weight_at(const ghp_direct_job &j, int64_t i)
{
    return j.weights_bf16 != nullptr ? widen(((const bf16 *)j.weights_bf16)[i]) : j.weights[i];
}

// x[n][h][w][c], weights [k][r][s][c / groups], y[n][p][q][k].
template <typename T> __global__ void forward_kernel(ghp_direct_job j)
{
    int64_t each = j.c / j.groups, of_group = j.k / j.groups, n = j.n * j.p * j.q * j.k;

    for (int64_t i = first_item(); i < n; i += item_stride()) {
        int64_t k = i % j.k, first = k / of_group * each;
        float sum = 0;

        each_input(j, i / j.k, [&](int64_t place, int64_t in) {
            const T *from = (const T *)j.x + in * j.c + first;
            int64_t w = (k * j.r * j.s + place) * each;
            float part = 0; // of a pixel: shorter sums round less

            for (int64_t c = 0; c < each; c++)
                part += widen(from[c]) * weight_at(j, w + c);
            sum += part;
        });
        ((T *)j.y)[i] = narrow<T>(sum);
    }
}

template <typename T> __global__ void data_kernel(ghp_direct_job j)
{
    int64_t each = j.c / j.groups, of_group = j.k / j.groups, n = j.n * j.h * j.w * j.c;

    for (int64_t i = first_item(); i < n; i += item_stride()) {
        int64_t c = i % j.c, group = c / each;
        float sum = 0;

        each_window(j, i / j.c, [&](const window &w) {
            const T *from = (const T *)j.dy + w.at * j.k;
            float part = 0;

            for (int64_t k = group * of_group; k < (group + 1) * of_group; k++)
                part += widen(from[k]) *
                        weight_at(j, (k * j.r * j.s + w.place) * each + c % each);
            sum += part;
        });
        T *dx = (T *)j.dx + i;
        *dx = narrow<T>(j.adds ? widen(*dx) + sum : sum);
    }
}

// One block a weight: threads take pixels in turns, their sums are added in order.
template <typename T> __global__ void weight_kernel(ghp_direct_job j)
{
    __shared__ double of_thread[kThreads];
    int64_t each = j.c / j.groups, of_group = j.k / j.groups;
    int64_t weights = j.k * j.r * j.s * each, pixels = j.n * j.p * j.q;

    for (int64_t i = blockIdx.x; i < weights; i += gridDim.x) {
        int64_t c = i % each, s = i / each % j.s, r = i / each / j.s % j.r,
                k = i / each / j.s / j.r;
        int64_t channel = k / of_group * each + c;
        double sum = 0;

        for (int64_t at = threadIdx.x; at < pixels; at += blockDim.x) {
            int64_t q = at % j.q, p = at / j.q % j.p, sample = at / j.q / j.p;
            int64_t y = p * j.stride_h - j.pad_top + r * j.dilation_h;
            int64_t x = q * j.stride_w - j.pad_left + s * j.dilation_w;

            if (y < 0 || y >= j.h || x < 0 || x >= j.w) continue;
            sum +=
                (double)(widen(((const T *)j.dy)[at * j.k + k]) *
                         widen(((const T *)j.x)[((sample * j.h + y) * j.w + x) * j.c + channel]));
        }
        of_thread[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (unsigned t = 1; t < blockDim.x; t++)
                sum += of_thread[t];
            j.dweights[i] = (float)sum;
        }
        __syncthreads();
    }
}

} // namespace

extern "C" cudaError_t ghp_launch_direct_forward(struct ghp_launch launch,
                                                 const struct ghp_direct_job *job)
{
    return by_type(launch, [&](auto type) {
        enqueue(forward_kernel<decltype(type)>, blocks_for(job->n * job->p * job->q * job->k),
                kThreads, 0, launch.stream, *job);
    });
}

extern "C" cudaError_t ghp_launch_direct_data(struct ghp_launch launch,
                                              const struct ghp_direct_job *job)
{
    return by_type(launch, [&](auto type) {
        enqueue(data_kernel<decltype(type)>, blocks_for(job->n * job->h * job->w * job->c),
                kThreads, 0, launch.stream, *job);
    });
}

extern "C" cudaError_t ghp_launch_direct_weight(struct ghp_launch launch,
                                                const struct ghp_direct_job *job)
{
    int64_t weights = job->k * job->r * job->s * (job->c / job->groups);
    unsigned blocks = (unsigned)(weights > kMostBlocks ? kMostBlocks : weights), threads = 32;

    while (threads < kThreads && (int64_t)threads < job->n * job->p * job->q) // others have no pixel
        threads *= 2;
    return by_type(launch, [&](auto type) {
        enqueue(weight_kernel<decltype(type)>, blocks, threads, 0, launch.stream, *job);
    });
}
