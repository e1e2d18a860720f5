// executor/backend/cuda/kernels/elementwise.cuh - a function of each element, or of two elements at the same place.
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_ELEMENTWISE_CUH
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_ELEMENTWISE_CUH

#include "executor/backend/cuda/kernels/common.cuh"

// out, a and b may be the same: each number is read before it is written, by one thread. The first groups * full_width
// numbers are read in vectors.
template <typename F, typename T>
__global__ void map_kernel(int64_t n, int64_t groups, const T *a, const T *b, T *out, F f)
{
    constexpr int V = full_width<T>;

    for (int64_t g = first_item(); g < groups; g += item_stride()) {
        float x[V], y[V], z[V];

        load<T, V>(a, g * V, x);
        if (b != nullptr) load<T, V>(b, g * V, y);
#pragma unroll
        for (int j = 0; j < V; j++)
            z[j] = f(x[j], b != nullptr ? y[j] : 0);
        store<T, V>(out, g * V, z);
    }
    for (int64_t i = groups * V + first_item(); i < n; i += item_stride())
        out[i] = narrow<T>(f(widen(a[i]), b != nullptr ? widen(b[i]) : 0));
}

// out[i] = f(a[i], b[i]); b NULL: f(a[i], 0).
template <typename F>
cudaError_t map(struct ghp_launch launch, int64_t n, const void *a, const void *b, void *out, F f)
{
    if (n == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;
        int64_t groups = ((uintptr_t)a | (uintptr_t)b | (uintptr_t)out) % 16 == 0 ? n / full_width<T> : 0;

        enqueue(map_kernel<F, T>, blocks_for(groups > 0 ? ceil_div(n, full_width<T>) : n), kThreads, 0,
                launch.stream, n, groups, (const T *)a, (const T *)b, (T *)out, f);
    });
}

#endif
