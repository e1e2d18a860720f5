// executor/backend/cuda/kernels/window_attention.cu - attention within windows of an image: a warp a query, a key, or a
// number of the table.
//
// A warp takes 32 keys (or queries) of a window at a time, one a lane, for the products, then 32 channels of a head, one
// a lane, for the sums; larger heads take several rounds. Weights are recomputed from the saved logarithms. Every sum
// has one order: the same bits every time.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

#include "core/model/attention.h" // after row.h, which declares the functions of core as C's
#include "core/model/window_attention.h"

namespace
{

struct window_job {
    int64_t n, positions, heads, size;
    int64_t h, w, across; // pixels of a window, windows in a row
    int64_t seam_h, seam_w; // rows and columns before the other end of a rolled image; as many as h and w: no seam
    float scale;
    const void *x[3]; // queries, keys, values
    void *y;
    const void *dy;
    void *dx[3];       // null where not wanted
    float *logarithms; // [n][head][position]; forward may be null
    const float *table; // [offset][head]
    const void *own; // [n][offset][head] of each sample, or null
};

constexpr int kWindowWarps = kThreads / 32;

__device__ __forceinline__ int window_lane()
{
    return threadIdx.x % 32;
}

__device__ __forceinline__ float window_sum(float mine)
{
    for (int offset = 16; offset > 0; offset /= 2)
        mine += __shfl_xor_sync(~0u, mine, offset);
    return mine;
}

__device__ __forceinline__ float window_greatest(float mine)
{
    for (int offset = 16; offset > 0; offset /= 2)
        mine = fmaxf(mine, __shfl_xor_sync(~0u, mine, offset));
    return mine;
}

// What each lane holds, where all lanes of its warp can read it until the next call.
__device__ __forceinline__ const float *window_shared(float (&room)[kWindowWarps][32], float mine)
{
    float *row = room[threadIdx.x / 32];

    __syncwarp();
    row[window_lane()] = mine;
    __syncwarp();
    return row;
}

struct Place { // one head of a window of a sample
    int64_t n, window, head;
};

// A query, key or value of the head.
template <typename T>
__device__ __forceinline__ T *window_row(const window_job &j, T *tensor, Place at, int64_t pixel)
{
    return tensor +
           ((at.n * j.positions + at.window * j.h * j.w + pixel) * j.heads + at.head) * j.size;
}

template <typename T>
__device__ __forceinline__ float window_product(int64_t n, const T *a, const T *b)
{
    float sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += widen(a[i]) * widen(b[i]);
    return sum;
}

__device__ __forceinline__ int64_t window_logarithm(const window_job &j, Place at, int64_t pixel)
{
    return (at.n * j.heads + at.head) * j.positions + at.window * j.h * j.w + pixel;
}

__device__ __forceinline__ bool window_sees(const window_job &j, Place at, int64_t query, int64_t key)
{
    int64_t rows = j.positions / (j.h * j.w) / j.across;
    bool down = (query / j.w < j.seam_h) == (key / j.w < j.seam_h);
    bool right = (query % j.w < j.seam_w) == (key % j.w < j.seam_w);

    return (down || at.window / j.across < rows - 1) && (right || at.window % j.across < j.across - 1);
}

// Far below all others of a key that is hidden.
template <typename T>
__device__ __forceinline__ float window_score(const window_job &j, Place at, int64_t query, int64_t key)
{
    int64_t down = query / j.w - key / j.w + j.h - 1, right = query % j.w - key % j.w + j.w - 1;
    int64_t place = (down * (2 * j.w - 1) + right) * j.heads + at.head;
    float number;

    if (!window_sees(j, at, query, key)) return -1e30f;
    number = j.table[place];
    if (j.own != nullptr)
        number += widen(((const T *)j.own)[at.n * (2 * j.h - 1) * (2 * j.w - 1) * j.heads + place]);
    return j.scale * window_product(j.size, window_row(j, (const T *)j.x[0], at, query),
                                    window_row(j, (const T *)j.x[1], at, key)) +
           number;
}

struct WindowWeight { // of a value, and the gradient of its score
    float p, slope;
};

template <typename T>
__device__ __forceinline__ WindowWeight window_weight(const window_job &j, Place at, int64_t query,
                                                      int64_t key)
{
    const T *dy = window_row(j, (const T *)j.dy, at, query);
    float p = expf(window_score<T>(j, at, query, key) - j.logarithms[window_logarithm(j, at, query)]);
    float of_p = window_product(j.size, dy, window_row(j, (const T *)j.x[2], at, key));

    return {p, p * (of_p - window_product(j.size, dy, window_row(j, (const T *)j.y, at, query)))};
}

// to[channel] = the sum of weight(pixel) times from's pixel, over the pixels of a window, by a warp.
template <typename T, typename F>
__device__ __forceinline__ void window_mean(const window_job &j, Place at, const T *from, T *to, F weight)
{
    __shared__ float room[kWindowWarps][32];
    int64_t pixels = j.h * j.w;

    for (int64_t channel = window_lane(); channel - window_lane() < j.size; channel += 32) {
        float sum = 0;

        for (int64_t first = 0; first < pixels; first += 32) {
            int64_t mine = first + window_lane(), rows = pixels - first < 32 ? pixels - first : 32;
            const float *all = window_shared(room, mine < pixels ? weight(mine) : 0.0f);

            if (channel < j.size)
                for (int64_t r = 0; r < rows; r++)
                    sum += all[r] * widen(window_row(j, from, at, first + r)[channel]);
        }
        if (channel < j.size) to[channel] = narrow<T>(sum);
    }
}

// f(head's place, pixel) of each pixel of each head, by a warp.
template <typename F> __device__ __forceinline__ void each_window_pixel(const window_job &j, F f)
{
    int64_t pixels = j.h * j.w, windows = j.positions / pixels;

    for (int64_t i = (int64_t)blockIdx.x * kWindowWarps + threadIdx.x / 32; i < j.n * j.heads * j.positions;
         i += (int64_t)gridDim.x * kWindowWarps)
        f(Place{i / pixels / j.heads / windows, i / pixels / j.heads % windows, i / pixels % j.heads},
          i % pixels);
}

template <typename T> __global__ void window_forward_kernel(window_job j)
{
    each_window_pixel(j, [&](Place at, int64_t query) {
        float greatest = -1e30f, sum = 0;

        for (int64_t key = window_lane(); key < j.h * j.w; key += 32)
            greatest = fmaxf(greatest, window_score<T>(j, at, query, key));
        greatest = window_greatest(greatest);
        for (int64_t key = window_lane(); key < j.h * j.w; key += 32)
            sum += expf(window_score<T>(j, at, query, key) - greatest);
        float logarithm = greatest + logf(window_sum(sum));
        window_mean(j, at, (const T *)j.x[2], window_row(j, (T *)j.y, at, query), [&](int64_t key) {
            return expf(window_score<T>(j, at, query, key) - logarithm);
        });
        if (window_lane() == 0 && j.logarithms != nullptr)
            j.logarithms[window_logarithm(j, at, query)] = logarithm;
    });
}

template <typename T> __global__ void window_queries_kernel(window_job j)
{
    each_window_pixel(j, [&](Place at, int64_t query) {
        window_mean(j, at, (const T *)j.x[1], window_row(j, (T *)j.dx[0], at, query),
                    [&](int64_t key) { return j.scale * window_weight<T>(j, at, query, key).slope; });
    });
}

template <typename T> __global__ void window_keys_kernel(window_job j)
{
    each_window_pixel(j, [&](Place at, int64_t key) {
        window_mean(j, at, (const T *)j.x[0], window_row(j, (T *)j.dx[1], at, key),
                    [&](int64_t query) { return j.scale * window_weight<T>(j, at, query, key).slope; });
    });
}

template <typename T> __global__ void window_values_kernel(window_job j)
{
    each_window_pixel(j, [&](Place at, int64_t key) {
        window_mean(j, at, (const T *)j.dy, window_row(j, (T *)j.dx[2], at, key),
                    [&](int64_t query) { return window_weight<T>(j, at, query, key).p; });
    });
}

// A warp a number of a table's gradient: all pairs of pixels that are so far apart, of all windows of as many samples
// as have the table together.
template <typename T, typename O>
__global__ void window_table_kernel(window_job j, int64_t together, O *gradient)
{
    int64_t across = 2 * j.w - 1, numbers = (2 * j.h - 1) * across * j.heads;
    int64_t windows = j.positions / (j.h * j.w);

    for (int64_t to = (int64_t)blockIdx.x * kWindowWarps + threadIdx.x / 32; to < j.n / together * numbers;
         to += (int64_t)gridDim.x * kWindowWarps) {
        int64_t i = to % numbers, first = to / numbers * together; // sample
        int64_t down = i / j.heads / across - (j.h - 1), right = i / j.heads % across - (j.w - 1);
        int64_t rows = j.h - (down < 0 ? -down : down), columns = j.w - (right < 0 ? -right : right);
        int64_t top = down < 0 ? 0 : down, left = right < 0 ? 0 : right; // of the first query
        float sum = 0;

        for (int64_t k = window_lane(); k < together * windows * rows * columns; k += 32) {
            int64_t pair = k % (rows * columns), number = k / (rows * columns);
            int64_t query = (top + pair / columns) * j.w + left + pair % columns;

            sum += window_weight<T>(j, Place{first + number / windows, number % windows, i % j.heads},
                                    query, query - down * j.w - right)
                       .slope;
        }
        sum = window_sum(sum);
        if (window_lane() == 0) gradient[to] = narrow<O>(sum);
    }
}

unsigned window_blocks(int64_t warps)
{
    int64_t blocks = ceil_div(warps, kWindowWarps);

    return (unsigned)(blocks < kMostBlocks ? blocks : kMostBlocks);
}

window_job window_job_of(const struct ghp_local *l, const struct ghp_kernel_arguments *args)
{
    window_job job = {};

    job.n = l->n;
    job.positions = l->h;
    job.heads = l->heads.n;
    job.size = l->heads.size;
    job.h = l->tiles.h;
    job.w = l->tiles.w;
    job.across = l->tiles.across;
    job.seam_h = l->tiles.h - l->tiles.shift_h;
    job.seam_w = l->tiles.w - l->tiles.shift_w;
    job.scale = (float)ghp_attention_scale(&l->heads);
    for (int i = 0; i < 3; i++) {
        job.x[i] = args->at.x[i];
        job.dx[i] = args->at.dx[i];
    }
    job.y = args->at.y;
    job.dy = args->at.dy;
    job.logarithms = (float *)args->at.saved;
    job.table = (const float *)args->at.w[0];
    job.own = ghp_window_has_table(l) ? args->at.x[3] : nullptr;
    return job;
}

cudaError_t window_forward(struct ghp_launch launch, const struct ghp_local *local,
                           const struct ghp_kernel_arguments *args)
{
    window_job job = window_job_of(local, args);

    return by_type(launch, [&](auto type) {
        enqueue(window_forward_kernel<decltype(type)>, window_blocks(job.n * job.heads * job.positions),
                kThreads, 0, launch.stream, job);
    });
}

cudaError_t window_data(struct ghp_launch launch, const struct ghp_local *local,
                        const struct ghp_kernel_arguments *args)
{
    window_job job = window_job_of(local, args);
    unsigned blocks = window_blocks(job.n * job.heads * job.positions);
    void *own = ghp_window_has_table(local) ? args->at.dx[3] : nullptr;
    int64_t numbers = ghp_window_offsets(&local->tiles) * job.heads;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        if (job.dx[0] != nullptr)
            enqueue(window_queries_kernel<T>, blocks, kThreads, 0, launch.stream, job);
        if (job.dx[1] != nullptr)
            enqueue(window_keys_kernel<T>, blocks, kThreads, 0, launch.stream, job);
        if (job.dx[2] != nullptr)
            enqueue(window_values_kernel<T>, blocks, kThreads, 0, launch.stream, job);
        if (own != nullptr)
            enqueue(window_table_kernel<T, T>, window_blocks(job.n * numbers), kThreads, 0, launch.stream,
                    job, (int64_t)1, (T *)own);
    });
}

cudaError_t window_weights(struct ghp_launch launch, const struct ghp_local *local,
                           const struct ghp_kernel_arguments *args)
{
    window_job job = window_job_of(local, args);

    return by_type(launch, [&](auto type) {
        enqueue(window_table_kernel<decltype(type), float>,
                window_blocks(ghp_window_offsets(&local->tiles) * job.heads), kThreads, 0, launch.stream,
                job, job.n, (float *)args->at.dw[0]);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_window_attention[] = {
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_FORWARD, window_forward, nullptr},
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_BACKWARD_DATA, window_data, nullptr},
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_BACKWARD_WEIGHT, window_weights, nullptr},
    {},
};
