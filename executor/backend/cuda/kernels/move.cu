// executor/backend/cuda/kernels/move.cu - copies in another order: blocks of rows, transposes, tables of places. See
// kernels/kernels.h.
#include "executor/backend/cuda/kernels/common.cuh"

// ---- blocks ----

namespace
{

// Units of every block, which begin at multiples of the unit on both sides.
template <typename U>
__global__ void blocks_kernel(int64_t rows, int64_t units, int64_t from_stride, int64_t to_stride,
                              const U *from, U *to)
{
    int64_t n = rows * units;

    for (int64_t i = first_item(); i < n; i += item_stride()) {
        int64_t row = i / units, unit = i % units;

        to[row * to_stride + unit] = from[row * from_stride + unit];
    }
}

template <typename U> void launch_units(cudaStream_t stream, const ghp_block_copy *b)
{
    int64_t size = (int64_t)sizeof(U), units = b->bytes / size;

    enqueue(blocks_kernel<U>, blocks_for(b->rows * units), kThreads, 0, stream, b->rows, units,
            b->from_stride / size, b->to_stride / size, (const U *)b->from, (U *)b->to);
}

} // namespace

extern "C" cudaError_t ghp_launch_blocks(cudaStream_t stream, const struct ghp_block_copy *b)
{
    uint64_t all = (uint64_t)b->bytes | (uint64_t)b->from_stride | (uint64_t)b->to_stride |
                   (uint64_t)(uintptr_t)b->from | (uint64_t)(uintptr_t)b->to;

    if (b->rows * b->bytes == 0) return cudaSuccess;
    if (all % 16 == 0)
        launch_units<uint4>(stream, b);
    else if (all % 8 == 0)
        launch_units<uint2>(stream, b);
    else if (all % 4 == 0)
        launch_units<uint32_t>(stream, b);
    else if (all % 2 == 0)
        launch_units<uint16_t>(stream, b);
    else
        launch_units<uint8_t>(stream, b);
    return cudaGetLastError();
}

// ---- transposes ----

namespace
{

constexpr int kTile = 32;

template <typename U>
__global__ void transpose_kernel(int64_t n, int64_t a, int64_t b, const U *from, U *to)
{
    __shared__ U tile[kTile][kTile + 1];
    int64_t across = ceil_div(b, kTile), down = ceil_div(a, kTile), tiles = n * across * down;

    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        int64_t image = t / (across * down), rest = t % (across * down);
        int64_t row = rest / across * kTile, column = rest % across * kTile;

        for (int i = threadIdx.y; i < kTile; i += blockDim.y)
            if (row + i < a && column + threadIdx.x < b)
                tile[i][threadIdx.x] = from[(image * a + row + i) * b + column + threadIdx.x];
        __syncthreads();
        for (int i = threadIdx.y; i < kTile; i += blockDim.y)
            if (column + i < b && row + threadIdx.x < a)
                to[(image * b + column + i) * a + row + threadIdx.x] = tile[threadIdx.x][i];
        __syncthreads();
    }
}

} // namespace

extern "C" cudaError_t ghp_launch_transpose(cudaStream_t stream, int element_bytes, int64_t n,
                                            int64_t a, int64_t b, const void *from, void *to)
{
    int64_t tiles = n * ((a + kTile - 1) / kTile) * ((b + kTile - 1) / kTile);
    unsigned blocks = (unsigned)(tiles > kMostBlocks ? kMostBlocks : tiles);
    dim3 threads(kTile, 8);

    if (tiles == 0) return cudaSuccess;
    if (element_bytes == 2)
        enqueue(transpose_kernel<uint16_t>, blocks, threads, 0, stream, n, a, b,
                (const uint16_t *)from, (uint16_t *)to);
    else
        enqueue(transpose_kernel<uint32_t>, blocks, threads, 0, stream, n, a, b,
                (const uint32_t *)from, (uint32_t *)to);
    return cudaGetLastError();
}

// ---- tables ----

namespace
{

template <typename T>
__global__ void take_kernel(int64_t n, int64_t in, int64_t out, const int32_t *table, float nothing,
                            const T *x, T *y)
{
    for (int64_t i = first_item(); i < n * out; i += item_stride()) {
        int32_t place = table[i % out];

        y[i] = place < 0 ? narrow<T>(nothing) : x[i / out * in + place];
    }
}

template <typename T>
__global__ void scatter_add_kernel(int64_t n, int64_t in, int64_t out, const int32_t *starts,
                                 const int32_t *list, const T *dy, T *dx)
{
    for (int64_t i = first_item(); i < n * in; i += item_stride()) {
        int64_t element = i % in;
        const T *from = dy + i / in * out;
        float sum = 0;

        for (int32_t j = starts[element]; j < starts[element + 1]; j++)
            sum += widen(from[list[j]]);
        dx[i] = narrow<T>(sum);
    }
}

} // namespace

extern "C" cudaError_t ghp_launch_gather(struct ghp_launch launch, int64_t n, int64_t in, int64_t out,
                                       const int32_t *table, float nothing, const void *x, void *y)
{
    if (n * out == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(take_kernel<T>, blocks_for(n * out), kThreads, 0, launch.stream, n, in, out, table,
                nothing, (const T *)x, (T *)y);
    });
}

extern "C" cudaError_t ghp_launch_scatter_add(struct ghp_launch launch, int64_t n, int64_t in,
                                            int64_t out, const int32_t *starts, const int32_t *list,
                                            const void *dy, void *dx)
{
    if (n * in == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(scatter_add_kernel<T>, blocks_for(n * in), kThreads, 0, launch.stream, n, in, out,
                starts, list, (const T *)dy, (T *)dx);
    });
}
