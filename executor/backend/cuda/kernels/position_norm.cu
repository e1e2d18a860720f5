// executor/backend/cuda/kernels/position_norm.cu - layer norm, root mean square norm and softmax: the channels of each
// row by themselves.
//
// A warp takes a row, which it reads once and keeps in registers. Longer rows, and those that are not whole vectors,
// take a block each. Each thread adds up channels in order, and threads are added in a fixed order. The gradient of the
// weight is a sum over rows: blocks of rows into a row of scratch each, and these in order.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

#include <type_traits>

namespace
{

// Less their mean where centred, over their deviation from it or from 0.
struct position_norm_job {
    int64_t rows, c;
    double epsilon;
    float offset;
    bool centred;
    bool adds; // to dx
    const void *x, *dy;
    const void *other; // forward: added to x; the sum is written to dx. NULL: none
    void *y, *dx;
    const float *weight; // [c]
    const float *bias;   // forward: added, [c]; NULL: none
    float *dweight;
    float *inverse, *mean; // [rows]; forward: NULL if not kept; mean: only if centred
    double *scratch;
};

// One a pixel, or one for each of its heads.
int64_t rows_of(const struct ghp_local *l)
{
    return l->n * l->h * l->w * (l->c / ghp_local_head(l));
}

position_norm_job job_of(struct ghp_launch launch, const struct ghp_local *l,
                         const struct ghp_kernel_arguments *args)
{
    int64_t rows = rows_of(l);
    float *saved = (float *)args->at.saved;
    bool centred = l->op == GHP_OP_LAYER_NORM;
    position_norm_job job = {};

    job.rows = rows;
    job.c = ghp_local_head(l);
    job.epsilon = l->norm.epsilon;
    job.offset = (float)l->norm.offset;
    job.centred = centred;
    job.adds = launch.adds;
    job.x = args->at.x[0];
    job.other = launch.adds ? args->at.x[1] : nullptr;
    job.dy = args->at.dy;
    job.y = args->at.y;
    job.dx = args->at.dx[0];
    job.weight = (const float *)args->at.w[0];
    job.bias = (const float *)args->at.w[1];
    job.dweight = (float *)args->at.dw[0];
    job.inverse = saved;
    job.mean = centred && saved != nullptr ? saved + rows : nullptr;
    job.scratch = (double *)args->at.scratch;
    return job;
}

constexpr int kRowThreads = 128;
constexpr int64_t kMostRowBlocks = 1 << 16;
constexpr int64_t kRowsOfWeightPart = 64, kMostWeightParts = 64;

unsigned row_blocks(int64_t rows)
{
    return (unsigned)(rows < kMostRowBlocks ? rows : kMostRowBlocks);
}

int64_t parts_of(int64_t rows)
{
    int64_t parts = ceil_div(rows, kRowsOfWeightPart);

    return parts < kMostWeightParts ? parts : kMostWeightParts;
}

__device__ double row_sum(double mine)
{
    __shared__ double of_warp[kRowThreads / 32];
    double sum = 0;

    for (int offset = 16; offset > 0; offset /= 2)
        mine += __shfl_down_sync(~0u, mine, offset);
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int i = 0; i < kRowThreads / 32; i++)
        sum += of_warp[i];
    return sum;
}

// What a block norms of a row: where x is a sum, that is first written.
template <typename T> __device__ const T *summed_row(const position_norm_job &j, int64_t row)
{
    const T *x = (const T *)j.x + row * j.c, *other = (const T *)j.other + row * j.c;
    T *sum = (T *)j.dx + row * j.c;

    if (j.other == nullptr) return x;
    for (int64_t i = threadIdx.x; i < j.c; i += kRowThreads)
        sum[i] = narrow<T>(widen(x[i]) + widen(other[i]));
    return sum; // each thread reads what it wrote
}

template <typename T> __global__ void position_norm_kernel(position_norm_job j)
{
    for (int64_t row = blockIdx.x; row < j.rows; row += gridDim.x) {
        const T *x = summed_row<T>(j, row);
        T *y = (T *)j.y + row * j.c;
        double mean = 0, square = 0;

        for (int64_t i = threadIdx.x; j.centred && i < j.c; i += kRowThreads)
            mean += (double)widen(x[i]);
        if (j.centred) mean = row_sum(mean) / (double)j.c;
        for (int64_t i = threadIdx.x; i < j.c; i += kRowThreads) {
            double d = (double)widen(x[i]) - mean;

            square += d * d;
        }
        float inverse = (float)(1.0 / sqrt(row_sum(square) / (double)j.c + j.epsilon));
        for (int64_t i = threadIdx.x; i < j.c; i += kRowThreads)
            y[i] = narrow<T>((widen(x[i]) - (float)mean) * inverse * (j.weight[i] + j.offset) +
                             (j.bias != nullptr ? j.bias[i] : 0.0f));
        if (threadIdx.x == 0 && j.inverse != nullptr) j.inverse[row] = inverse;
        if (threadIdx.x == 0 && j.mean != nullptr) j.mean[row] = (float)mean;
    }
}

__device__ __forceinline__ float mean_of(const position_norm_job &j, int64_t row)
{
    return j.centred ? j.mean[row] : 0.0f;
}

template <typename T> __global__ void position_norm_data_kernel(position_norm_job j)
{
    for (int64_t row = blockIdx.x; row < j.rows; row += gridDim.x) {
        const T *x = (const T *)j.x + row * j.c, *dy = (const T *)j.dy + row * j.c;
        T *dx = (T *)j.dx + row * j.c;
        float mean = mean_of(j, row), inverse = j.inverse[row];
        double sum = 0, product = 0;

        for (int64_t i = threadIdx.x; i < j.c; i += kRowThreads) {
            double g = (double)(widen(dy[i]) * (j.weight[i] + j.offset));

            sum += g;
            product += g * (double)((widen(x[i]) - mean) * inverse);
        }
        float a = j.centred ? (float)(row_sum(sum) / (double)j.c) : 0.0f;
        float b = (float)(row_sum(product) / (double)j.c);
        for (int64_t i = threadIdx.x; i < j.c; i += kRowThreads)
            dx[i] = narrow<T>((j.adds ? widen(dx[i]) : 0.0f) +
                              inverse * (widen(dy[i]) * (j.weight[i] + j.offset) - a -
                                         (widen(x[i]) - mean) * inverse * b));
    }
}

// ---- a warp a row ----

constexpr int kRowWarps = kThreads / 32; // rows of a block
constexpr int kMostVectors = 16;         // of a row, in one thread's registers

// Rows of whole vectors, few enough for a warp's registers.
template <typename T> bool fits_warp(const position_norm_job &j)
{
    return j.c % full_width<T> == 0 && j.c <= 32 * kMostVectors * full_width<T>;
}

// The same in each thread of the warp.
__device__ __forceinline__ double warp_sum(double mine)
{
    for (int offset = 16; offset > 0; offset /= 2)
        mine += __shfl_xor_sync(~0u, mine, offset);
    return mine;
}

// A thread's vectors of a row: K at most, one of each 32.
template <typename T, int K> struct RowPart {
    Vector<T, full_width<T>> at[K];

    __device__ __forceinline__ void load(const T *row, int64_t vectors)
    {
#pragma unroll
        for (int k = 0; k < K; k++)
            if (k * 32 + threadIdx.x % 32 < vectors)
                at[k] = reinterpret_cast<const Vector<T, full_width<T>> *>(
                    row)[k * 32 + threadIdx.x % 32];
    }
};

// f(k, channel) for each vector of the thread: channel is the first of its channels.
template <typename T, int K, typename F>
__device__ __forceinline__ void each_vector(int64_t vectors, F f)
{
#pragma unroll
    for (int k = 0; k < K; k++) {
        int64_t vector = k * 32 + threadIdx.x % 32;

        if (vector < vectors) f(k, vector * full_width<T>);
    }
}

template <typename T, int K> __global__ void warp_norm_kernel(position_norm_job j)
{
    constexpr int V = full_width<T>;
    int64_t row = (int64_t)blockIdx.x * kRowWarps + threadIdx.x / 32, vectors = j.c / V;
    RowPart<T, K> x;
    double sum = 0, square = 0;
    float mean = 0;

    if (row >= j.rows) return;
    x.load((const T *)j.x + row * j.c, vectors);
    if (j.other != nullptr)
        each_vector<T, K>(vectors, [&](int k, int64_t channel) {
            float sum[V];

            load<T, V>((const T *)j.other + row * j.c, channel, sum);
#pragma unroll
            for (int v = 0; v < V; v++) {
                sum[v] += widen(x.at[k].v[v]);
                x.at[k].v[v] = narrow<T>(sum[v]);
            }
            store<T, V>((T *)j.dx + row * j.c, channel, sum);
        });
    each_vector<T, K>(vectors, [&](int k, int64_t) {
        float part = 0;
#pragma unroll
        for (int v = 0; v < V; v++)
            part += widen(x.at[k].v[v]);
        sum += (double)part;
    });
    if (j.centred) mean = (float)(warp_sum(sum) / (double)j.c);
    each_vector<T, K>(vectors, [&](int k, int64_t) {
        float part = 0;
#pragma unroll
        for (int v = 0; v < V; v++) {
            float d = widen(x.at[k].v[v]) - mean;

            part += d * d;
        }
        square += (double)part;
    });
    float inverse = (float)(1.0 / sqrt(warp_sum(square) / (double)j.c + j.epsilon));
    each_vector<T, K>(vectors, [&](int k, int64_t channel) {
        float weight[V], bias[V] = {}, y[V];

        load<float, V>(j.weight, channel, weight);
        if (j.bias != nullptr) load<float, V>(j.bias, channel, bias);
#pragma unroll
        for (int v = 0; v < V; v++)
            y[v] = (widen(x.at[k].v[v]) - mean) * inverse * (weight[v] + j.offset) + bias[v];
        store<T, V>((T *)j.y + row * j.c, channel, y);
    });
    if (threadIdx.x % 32 == 0 && j.inverse != nullptr) j.inverse[row] = inverse;
    if (threadIdx.x % 32 == 0 && j.mean != nullptr) j.mean[row] = mean;
}

template <typename T, int K> __global__ void warp_norm_data_kernel(position_norm_job j)
{
    constexpr int V = full_width<T>;
    int64_t row = (int64_t)blockIdx.x * kRowWarps + threadIdx.x / 32, vectors = j.c / V;
    RowPart<T, K> x, dy;
    double sum = 0, product = 0;

    if (row >= j.rows) return;
    float mean = mean_of(j, row), inverse = j.inverse[row];
    x.load((const T *)j.x + row * j.c, vectors);
    dy.load((const T *)j.dy + row * j.c, vectors);
    each_vector<T, K>(vectors, [&](int k, int64_t channel) {
        float weight[V], g = 0, gx = 0;

        load<float, V>(j.weight, channel, weight);
#pragma unroll
        for (int v = 0; v < V; v++) {
            float own = widen(dy.at[k].v[v]) * (weight[v] + j.offset);

            g += own;
            gx += own * ((widen(x.at[k].v[v]) - mean) * inverse);
        }
        sum += (double)g;
        product += (double)gx;
    });
    float a = j.centred ? (float)(warp_sum(sum) / (double)j.c) : 0.0f;
    float b = (float)(warp_sum(product) / (double)j.c);
    each_vector<T, K>(vectors, [&](int k, int64_t channel) {
        float weight[V], dx[V] = {};

        load<float, V>(j.weight, channel, weight);
        if (j.adds) load<T, V>((const T *)j.dx + row * j.c, channel, dx);
#pragma unroll
        for (int v = 0; v < V; v++)
            dx[v] += inverse * (widen(dy.at[k].v[v]) * (weight[v] + j.offset) - a -
                                (widen(x.at[k].v[v]) - mean) * inverse * b);
        store<T, V>((T *)j.dx + row * j.c, channel, dx);
    });
}

// Calls f with the least number of vectors a thread that has room for the row.
template <typename T, typename F> void by_vectors(const position_norm_job &j, F f)
{
    int64_t vectors = ceil_div(j.c, 32 * full_width<T>);

    if (vectors <= 1)
        f(std::integral_constant<int, 1>());
    else if (vectors <= 4)
        f(std::integral_constant<int, 4>());
    else
        f(std::integral_constant<int, kMostVectors>());
}

// scratch[block y][c]
template <typename T> __global__ void position_norm_weight_kernel(position_norm_job j)
{
    int64_t column = first_item(), step = ceil_div(j.rows, gridDim.y);
    int64_t first = blockIdx.y * step, end = first + step < j.rows ? first + step : j.rows;
    double sum = 0;

    if (column >= j.c) return;
    for (int64_t row = first; row < end; row++) {
        int64_t at = row * j.c + column;

        sum += (double)(widen(((const T *)j.dy)[at]) *
                        ((widen(((const T *)j.x)[at]) - mean_of(j, row)) * j.inverse[row]));
    }
    j.scratch[blockIdx.y * j.c + column] = sum;
}

__global__ void add_parts_kernel(int64_t parts, int64_t c, const double *from, float *to)
{
    for (int64_t i = first_item(); i < c; i += item_stride()) {
        double sum = 0;

        for (int64_t part = 0; part < parts; part++)
            sum += from[part * c + i];
        to[i] = (float)sum;
    }
}

cudaError_t position_norm_forward(struct ghp_launch launch, const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args)
{
    position_norm_job job = job_of(launch, local, args);

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        if (fits_warp<T>(job))
            by_vectors<T>(job, [&](auto k) {
                enqueue(warp_norm_kernel<T, decltype(k)::value>,
                        (unsigned)ceil_div(job.rows, kRowWarps), kThreads, 0, launch.stream, job);
            });
        else
            enqueue(position_norm_kernel<T>, row_blocks(job.rows), kRowThreads, 0, launch.stream,
                    job);
    });
}

cudaError_t position_norm_data(struct ghp_launch launch, const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args)
{
    position_norm_job job = job_of(launch, local, args);

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        if (fits_warp<T>(job))
            by_vectors<T>(job, [&](auto k) {
                enqueue(warp_norm_data_kernel<T, decltype(k)::value>,
                        (unsigned)ceil_div(job.rows, kRowWarps), kThreads, 0, launch.stream, job);
            });
        else
            enqueue(position_norm_data_kernel<T>, row_blocks(job.rows), kRowThreads, 0,
                    launch.stream, job);
    });
}

int64_t position_norm_scratch(const struct ghp_local *local)
{
    return parts_of(rows_of(local)) * ghp_local_head(local) * (int64_t)sizeof(double);
}

cudaError_t position_norm_weight(struct ghp_launch launch, const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args)
{
    position_norm_job job = job_of(launch, local, args);
    int64_t parts = parts_of(job.rows);
    cudaError_t error = by_type(launch, [&](auto type) {
        enqueue(position_norm_weight_kernel<decltype(type)>,
                dim3((unsigned)ceil_div(job.c, kThreads), (unsigned)parts), kThreads, 0,
                launch.stream, job);
    });

    if (error != cudaSuccess) return error;
    enqueue(add_parts_kernel, blocks_for(job.c), kThreads, 0, launch.stream, parts, job.c,
            (const double *)job.scratch, job.dweight);
    return cudaGetLastError();
}

__device__ float row_max(float mine)
{
    __shared__ float of_warp[kRowThreads / 32];
    float most;

    for (int offset = 16; offset > 0; offset /= 2)
        mine = fmaxf(mine, __shfl_down_sync(~0u, mine, offset));
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    most = of_warp[0];
    for (int i = 1; i < kRowThreads / 32; i++)
        most = fmaxf(most, of_warp[i]);
    return most;
}

template <typename T> __global__ void softmax_kernel(int64_t rows, int64_t c, const T *all, T *to)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *x = all + row * c;
        float most = widen(x[0]);
        double sum = 0;

        for (int64_t i = threadIdx.x; i < c; i += kRowThreads)
            most = fmaxf(most, widen(x[i]));
        most = row_max(most);
        for (int64_t i = threadIdx.x; i < c; i += kRowThreads)
            sum += (double)expf(widen(x[i]) - most);
        float scale = (float)(1.0 / row_sum(sum));
        for (int64_t i = threadIdx.x; i < c; i += kRowThreads)
            to[row * c + i] = narrow<T>(expf(widen(x[i]) - most) * scale);
    }
}

// dx = y (dy - sum of dy y)
template <typename T>
__global__ void softmax_data_kernel(int64_t rows, int64_t c, const T *y, const T *dy, T *dx)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        int64_t first = row * c;
        double sum = 0;

        for (int64_t i = threadIdx.x; i < c; i += kRowThreads)
            sum += (double)(widen(dy[first + i]) * widen(y[first + i]));
        float mean = (float)row_sum(sum);
        for (int64_t i = threadIdx.x; i < c; i += kRowThreads)
            dx[first + i] = narrow<T>(widen(y[first + i]) * (widen(dy[first + i]) - mean));
    }
}

cudaError_t softmax_forward(struct ghp_launch launch, const struct ghp_local *local,
                            const struct ghp_kernel_arguments *args)
{
    int64_t rows = local->n * local->h * local->w;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(softmax_kernel<T>, row_blocks(rows), kRowThreads, 0, launch.stream, rows, local->c,
                (const T *)args->at.x[0], (T *)args->at.y);
    });
}

cudaError_t softmax_data(struct ghp_launch launch, const struct ghp_local *local,
                         const struct ghp_kernel_arguments *args)
{
    int64_t rows = local->n * local->h * local->w;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(softmax_data_kernel<T>, row_blocks(rows), kRowThreads, 0, launch.stream, rows,
                local->c, (const T *)args->at.y, (const T *)args->at.dy, (T *)args->at.dx[0]);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_position_norm[] = {
    {GHP_OP_LAYER_NORM, GHP_PASS_FORWARD, position_norm_forward, nullptr},
    {GHP_OP_LAYER_NORM, GHP_PASS_BACKWARD_DATA, position_norm_data, nullptr},
    {GHP_OP_LAYER_NORM, GHP_PASS_BACKWARD_WEIGHT, position_norm_weight, position_norm_scratch},
    {GHP_OP_RMS_NORM, GHP_PASS_FORWARD, position_norm_forward, nullptr},
    {GHP_OP_RMS_NORM, GHP_PASS_BACKWARD_DATA, position_norm_data, nullptr},
    {GHP_OP_RMS_NORM, GHP_PASS_BACKWARD_WEIGHT, position_norm_weight, position_norm_scratch},
    {GHP_OP_SOFTMAX, GHP_PASS_FORWARD, softmax_forward, nullptr},
    {GHP_OP_SOFTMAX, GHP_PASS_BACKWARD_DATA, softmax_data, nullptr},
    {},
};
