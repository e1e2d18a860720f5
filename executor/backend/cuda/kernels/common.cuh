// executor/backend/cuda/kernels/common.cuh - what the kernels share: numbers, vectors, grids. See kernels/kernels.h.
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_COMMON_CUH
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_COMMON_CUH

#include "executor/backend/cuda/kernels/kernels.h"

#include <cuda_bf16.h>

// How a grid is started: by CUDA; tests put a grid in its place that a processor walks through.
#ifdef GHP_GRID_HEADER
#include GHP_GRID_HEADER
#else
#define GHP_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

// A product that is not fused with a sum after it.
__device__ __forceinline__ float rounded_product(float a, float b)
{
    return __fmul_rn(a, b);
}

template <typename... P, typename... A>
static inline void enqueue(void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared,
                           cudaStream_t stream, A... arguments)
{
    kernel<<<blocks, threads, shared, stream>>>(static_cast<P>(arguments)...);
}

__device__ __forceinline__ int64_t global_nanoseconds()
{
    int64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ __forceinline__ void pause_thread()
{
    __nanosleep(1000);
}
#endif

typedef __nv_bfloat16 bf16;

__device__ __forceinline__ float widen(float x)
{
    return x;
}

__device__ __forceinline__ float widen(bf16 x)
{
    return __bfloat162float(x);
}

template <typename T> __device__ __forceinline__ T narrow(float x);

template <> __device__ __forceinline__ float narrow<float>(float x)
{
    return x;
}

template <> __device__ __forceinline__ bf16 narrow<bf16>(float x)
{
    return __float2bfloat16_rn(x);
}

// V numbers that are loaded and stored at once; addresses are multiples of its size.
template <typename T, int V> struct alignas(sizeof(T) * V) Vector {
    T v[V];
};

// Numbers of one 16-byte access.
template <typename T> constexpr int full_width = 16 / (int)sizeof(T);

template <typename T, int V>
__device__ __forceinline__ void load(const T *from, int64_t i, float (&to)[V])
{
    Vector<T, V> x = *reinterpret_cast<const Vector<T, V> *>(from + i);
#pragma unroll
    for (int j = 0; j < V; j++)
        to[j] = widen(x.v[j]);
}

template <typename T, int V>
__device__ __forceinline__ void store(T *to, int64_t i, const float (&from)[V])
{
    Vector<T, V> x;
#pragma unroll
    for (int j = 0; j < V; j++)
        x.v[j] = narrow<T>(from[j]);
    *reinterpret_cast<Vector<T, V> *>(to + i) = x;
}

__host__ __device__ static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1 << 20;

// Blocks of kThreads for a number of items; kernels stride over the rest.
static inline unsigned blocks_for(int64_t items)
{
    int64_t blocks = ceil_div(items, kThreads);

    return (unsigned)(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

__device__ __forceinline__ int64_t first_item()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ int64_t item_stride()
{
    return (int64_t)gridDim.x * blockDim.x;
}

// For a grid over [rows][c], x across channels and y down rows: the first of the V channels that a thread keeps, and
// f(row) for each of its rows.
template <int V> __device__ __forceinline__ int64_t own_column()
{
    return ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
}

template <typename F> __device__ __forceinline__ void each_own_row(int64_t rows, F f)
{
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < rows;
         row += (int64_t)gridDim.y * blockDim.y)
        f(row);
}

// Calls f with a value of the activations' type.
template <typename F> static inline cudaError_t by_type(struct ghp_launch launch, F f)
{
    if (launch.bf16)
        f(bf16());
    else
        f(float());
    return cudaGetLastError();
}

#endif
