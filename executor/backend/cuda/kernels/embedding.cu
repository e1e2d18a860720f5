// executor/backend/cuda/kernels/embedding.cu - embedding: rows of a table by token id; and position_embedding,
// which adds
// a row a position. Tables and their gradients are float.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

// Local rows from first_row on of a table [rows][k], by the ids of the places. y is 0 where the id is no local row.
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

// One block a place. The first place of an id adds all of its places, in their order, to what is there; the others do
// nothing.
template <typename T> __global__ void table_weight_kernel(table_job j)
{
    __shared__ int earlier;
    int64_t place = blockIdx.x, row = j.ids[place] - j.first_row;
    int32_t id = j.ids[place];

    if (threadIdx.x == 0) earlier = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < place; i += blockDim.x)
        if (j.ids[i] == id) earlier = 1;
    __syncthreads();
    if (earlier != 0 || row < 0 || row >= j.rows) return;
    for (int64_t k = threadIdx.x; k < j.k; k += blockDim.x) {
        float sum = 0;

        for (int64_t i = place; i < j.places; i++)
            if (j.ids[i] == id) sum += widen(((const T *)j.dy)[i * j.k + k]);
        j.dw[row * j.k + k] += sum;
    }
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

    return by_type(launch, [&](auto type) {
        if (!args->adds_weight)
            enqueue(clear_kernel, blocks_for(job.rows * job.k), kThreads, 0, launch.stream,
                    job.rows * job.k, job.dw);
        enqueue(table_weight_kernel<decltype(type)>, (unsigned)job.places, kThreads, 0,
                launch.stream, job);
    });
}

template <typename T>
__global__ void position_kernel(int64_t n, int64_t row, const T *x, const float *w, T *y)
{
    for (int64_t item = first_item(); item < n * row; item += item_stride())
        y[item] = narrow<T>(widen(x[item]) + w[item % row]);
}

template <typename T>
__global__ void position_weight_kernel(int64_t n, int64_t row, const T *dy, float *dw)
{
    for (int64_t item = first_item(); item < row; item += item_stride()) {
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
                row, (const T *)args->at.dy, (float *)args->at.dw[0]);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_embedding[] = {
    {GHP_OP_EMBEDDING, GHP_PASS_FORWARD, look_up, nullptr},
    {GHP_OP_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, table_weight, nullptr},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_FORWARD, position_forward, nullptr},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, position_weight, nullptr},
    {},
};
