// executor/backend/cuda/kernels/embedding.cu - embedding: rows of a table by token id; position_embedding, which adds a
// row a position; and prepend, which puts rows before them. Tables and their gradients are float.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

// Local rows from first_row on of a table [rows][k], by the ids of the places. y is 0 if the id is not a local row.
struct table_job {
    int64_t places, k, rows, first_row;
    const int32_t *ids;
    const float *w;
    void *y;
    const void *dy;
    float *dw;
};

template <typename T> __global__ void look_up_kernel(table_job j)
{
    for (int64_t item = first_item(); item < j.places * j.k; item += item_stride()) {
        int64_t row = j.ids[item / j.k] - j.first_row;

        ((T *)j.y)[item] = narrow<T>(row >= 0 && row < j.rows ? j.w[row * j.k + item % j.k] : 0.0f);
    }
}

__global__ void clear_kernel(int64_t n, float *to)
{
    for (int64_t item = first_item(); item < n; item += item_stride())
        to[item] = 0;
}

// A radix sort of places by their rows, least significant digit first, in one block. It is stable: the places of one
// row keep their order, so that a sum over them has the same bits every time.
constexpr int kSorters = 1024, kDigitBits = 3, kDigits = 1 << kDigitBits;

// The local row of a place; `rows` if the id is not a local row.
__device__ __forceinline__ int64_t row_at(const table_job &j, int64_t place)
{
    int64_t row = j.ids[place] - j.first_row;

    return row >= 0 && row < j.rows ? row : j.rows;
}

// The place that is number i before a round. The first round begins with the places in their order.
__device__ __forceinline__ int32_t place_at(const int32_t *from, int64_t i)
{
    return from != nullptr ? from[i] : (int32_t)i;
}

// Replaces each count by the sum of those before it. counts are of digit 0 of each thread, then of digit 1, and so on.
__device__ void sum_before(int32_t (&counts)[kDigits * kSorters], int32_t (&sums)[kSorters])
{
    int32_t *own = counts + threadIdx.x * kDigits, sum = 0;

    for (int d = 0; d < kDigits; d++)
        sum += own[d];
    for (int reach = 1; reach <= kSorters; reach *= 2) { // sums of up to `reach` threads
        sums[threadIdx.x] = sum;
        __syncthreads();
        if ((int)threadIdx.x >= reach) sum += sums[threadIdx.x - reach];
        __syncthreads();
    }
    for (int d = kDigits - 1; d >= 0; d--) {
        sum -= own[d];
        own[d] = sum;
    }
    __syncthreads();
}

// Writes the places in the order of their rows. A round writes one half of `order` [2][places]; the last one writes
// half (rounds - 1) % 2.
__global__ void sort_places_kernel(table_job j, int rounds, int32_t *order)
{
    __shared__ int32_t counts[kDigits * kSorters], sums[kSorters];
    int64_t each = ceil_div(j.places, kSorters), first = threadIdx.x * each;
    int64_t end = first + each < j.places ? first + each : j.places;

    for (int round = 0; round < rounds; round++) {
        const int32_t *from = round > 0 ? order + (round - 1) % 2 * j.places : nullptr;
        int32_t *to = order + round % 2 * j.places;

        for (int d = 0; d < kDigits; d++)
            counts[d * kSorters + threadIdx.x] = 0;
        for (int64_t i = first; i < end; i++)
            counts[(row_at(j, place_at(from, i)) >> round * kDigitBits) % kDigits * kSorters +
                   threadIdx.x]++;
        __syncthreads();
        sum_before(counts, sums);
        for (int64_t i = first; i < end; i++) {
            int32_t place = place_at(from, i);

            to[counts[(row_at(j, place) >> round * kDigitBits) % kDigits * kSorters +
                      threadIdx.x]++] = place;
        }
        __syncthreads();
    }
}

// A block for each number in the order and each kThreads channels. The first place of a row adds all of its places, in
// their order, to what is there; the others do nothing.
template <typename T> __global__ void table_weight_kernel(table_job j, const int32_t *order)
{
    int64_t i = blockIdx.x, row = row_at(j, order[i]),
            k = (int64_t)blockIdx.y * kThreads + threadIdx.x;
    float sum = 0;

    if (row == j.rows || (i > 0 && row_at(j, order[i - 1]) == row) || k >= j.k) return;
    for (; i < j.places && row_at(j, order[i]) == row; i++)
        sum += widen(((const T *)j.dy)[order[i] * j.k + k]);
    j.dw[row * j.k + k] += sum;
}

// How many rounds sort numbers from 0 to rows.
int rounds_for(int64_t rows)
{
    int rounds = 1;

    while (rows >> rounds * kDigitBits > 0)
        rounds++;
    return rounds;
}

int64_t table_scratch(const struct ghp_local *local)
{
    return 2 * local->n * local->h * (int64_t)sizeof(int32_t);
}

table_job table_of(const struct ghp_local *l, const struct ghp_kernel_arguments *args)
{
    table_job job = {};

    job.places = l->n * l->h;
    job.k = l->k;
    job.rows = l->vocabulary;
    job.first_row = args->first_row;
    job.ids = (const int32_t *)args->at.x[0];
    job.w = (const float *)args->at.w[0];
    job.y = args->at.y;
    job.dy = args->at.dy;
    job.dw = (float *)args->at.dw[0];
    return job;
}

cudaError_t look_up(struct ghp_launch launch, const struct ghp_local *local,
                    const struct ghp_kernel_arguments *args)
{
    table_job job = table_of(local, args);

    return by_type(launch, [&](auto type) {
        enqueue(look_up_kernel<decltype(type)>, blocks_for(job.places * job.k), kThreads, 0,
                launch.stream, job);
    });
}

cudaError_t table_weight(struct ghp_launch launch, const struct ghp_local *local,
                         const struct ghp_kernel_arguments *args)
{
    table_job job = table_of(local, args);
    int32_t *order = (int32_t *)args->at.scratch;
    int rounds = rounds_for(job.rows);

    return by_type(launch, [&](auto type) {
        if (!args->adds_weight)
            enqueue(clear_kernel, blocks_for(job.rows * job.k), kThreads, 0, launch.stream,
                    job.rows * job.k, job.dw);
        enqueue(sort_places_kernel, 1, kSorters, 0, launch.stream, job, rounds, order);
        enqueue(table_weight_kernel<decltype(type)>,
                dim3((unsigned)job.places, (unsigned)ceil_div(job.k, kThreads)), kThreads, 0,
                launch.stream, job, order + (rounds - 1) % 2 * job.places);
    });
}

template <typename T>
__global__ void position_kernel(int64_t n, int64_t row, const T *x, const float *w, T *y)
{
    for (int64_t item = first_item(); item < n * row; item += item_stride())
        y[item] = narrow<T>(widen(x[item]) + w[item % row]);
}

// The sums over n samples of the first `items` of a row.
template <typename T>
__global__ void position_weight_kernel(int64_t n, int64_t row, int64_t items, const T *dy,
                                       float *dw)
{
    for (int64_t item = first_item(); item < items; item += item_stride()) {
        float sum = 0;

        for (int64_t i = 0; i < n; i++)
            sum += widen(dy[i * row + item]);
        dw[item] = sum;
    }
}

cudaError_t position_forward(struct ghp_launch launch, const struct ghp_local *local,
                             const struct ghp_kernel_arguments *args)
{
    int64_t row = local->h * local->c;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(position_kernel<T>, blocks_for(local->n * row), kThreads, 0, launch.stream,
                local->n, row, (const T *)args->at.x[0], (const float *)args->at.w[0],
                (T *)args->at.y);
    });
}

cudaError_t position_weight(struct ghp_launch launch, const struct ghp_local *local,
                            const struct ghp_kernel_arguments *args)
{
    int64_t row = local->h * local->c;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(position_weight_kernel<T>, blocks_for(row), kThreads, 0, launch.stream, local->n,
                row, row, (const T *)args->at.dy, (float *)args->at.dw[0]);
    });
}

template <typename T>
__global__ void prepend_kernel(int64_t n, int64_t added, int64_t rest, const T *x, const float *w,
                               T *y)
{
    int64_t row = added + rest;

    for (int64_t item = first_item(); item < n * row; item += item_stride()) {
        int64_t at = item % row;

        y[item] = at < added ? narrow<T>(w[at]) : x[item / row * rest + at - added];
    }
}

template <typename T>
__global__ void prepend_data_kernel(int64_t n, int64_t added, int64_t rest, const T *dy, T *dx)
{
    for (int64_t item = first_item(); item < n * rest; item += item_stride())
        dx[item] = dy[item + (item / rest + 1) * added];
}

cudaError_t prepend_forward(struct ghp_launch launch, const struct ghp_local *local,
                            const struct ghp_kernel_arguments *args)
{
    int64_t added = (local->p - local->h) * local->c, rest = local->h * local->c;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(prepend_kernel<T>, blocks_for(local->n * (added + rest)), kThreads, 0,
                launch.stream, local->n, added, rest, (const T *)args->at.x[0],
                (const float *)args->at.w[0], (T *)args->at.y);
    });
}

cudaError_t prepend_data(struct ghp_launch launch, const struct ghp_local *local,
                         const struct ghp_kernel_arguments *args)
{
    int64_t added = (local->p - local->h) * local->c, rest = local->h * local->c;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(prepend_data_kernel<T>, blocks_for(local->n * rest), kThreads, 0, launch.stream,
                local->n, added, rest, (const T *)args->at.dy, (T *)args->at.dx[0]);
    });
}

cudaError_t prepend_weight(struct ghp_launch launch, const struct ghp_local *local,
                           const struct ghp_kernel_arguments *args)
{
    int64_t added = (local->p - local->h) * local->c, row = local->p * local->c;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(position_weight_kernel<T>, blocks_for(added), kThreads, 0, launch.stream, local->n,
                row, added, (const T *)args->at.dy, (float *)args->at.dw[0]);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_embedding[] = {
    {GHP_OP_EMBEDDING, GHP_PASS_FORWARD, look_up, nullptr},
    {GHP_OP_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, table_weight, table_scratch},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_FORWARD, position_forward, nullptr},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, position_weight, nullptr},
    {GHP_OP_PREPEND, GHP_PASS_FORWARD, prepend_forward, nullptr},
    {GHP_OP_PREPEND, GHP_PASS_BACKWARD_DATA, prepend_data, nullptr},
    {GHP_OP_PREPEND, GHP_PASS_BACKWARD_WEIGHT, prepend_weight, nullptr},
    {},
};
