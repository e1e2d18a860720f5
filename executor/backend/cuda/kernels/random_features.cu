// executor/backend/cuda/kernels/random_features.cu - sqrt(2) cos(sigma U x + q), as
// core/model/op/matrix/random_features.c has U and q. Both are drawn into scratch at each pass, once for all samples.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/philox.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

constexpr uint32_t kTag = 0x72666561;
constexpr double kTwoPi = 6.283185307179586476925, kRoot2 = 1.414213562373095048802;

struct features_job {
    int64_t rows, c, k;
    double sigma;
    uint64_t seed;
    const void *x, *dy;
    void *y, *dx;
    float *u; // [k][c], then q, [k]
};

// A pair of channels of a feature; the pair after the last is its q.
__global__ void draw_kernel(features_job j)
{
    int64_t pairs = (j.c + 1) / 2 + 1;

    for (int64_t i = first_item(); i < j.k * pairs; i += item_stride()) {
        int64_t k = i / pairs, pair = i % pairs, c = 2 * pair;

        if (pair == pairs - 1) {
            four r = philox(j.seed, (uint32_t)k, 0, kTag, 1);

            j.u[j.k * j.c + k] = (float)(kTwoPi / 4294967296.0 * (double)r.v[0]);
            continue;
        }
        four r = philox(j.seed, (uint32_t)pair, (uint32_t)k, kTag, 0);
        double radius = sqrt(-2 * log(((double)r.v[0] + 1) / 4294967296.0));
        double angle = kTwoPi / 4294967296.0 * (double)r.v[1];

        j.u[k * j.c + c] = (float)(radius * cos(angle));
        if (c + 1 < j.c) j.u[k * j.c + c + 1] = (float)(radius * sin(angle));
    }
}

template <typename T> __device__ double angle_of(const features_job &j, int64_t row, int64_t k)
{
    const T *x = (const T *)j.x + row * j.c;
    const float *u = j.u + k * j.c;
    double sum = 0;

    for (int64_t c = 0; c < j.c; c++)
        sum += (double)u[c] * (double)widen(x[c]);
    return j.sigma * sum + (double)j.u[j.k * j.c + k];
}

template <typename T> __global__ void features_kernel(features_job j)
{
    for (int64_t i = first_item(); i < j.rows * j.k; i += item_stride())
        ((T *)j.y)[i] = narrow<T>((float)(kRoot2 * cos(angle_of<T>(j, i / j.k, i % j.k))));
}

// A thread a channel: it adds features in order.
template <typename T> __global__ void features_back_kernel(features_job j)
{
    for (int64_t i = first_item(); i < j.rows * j.c; i += item_stride()) {
        int64_t row = i / j.c, c = i % j.c;
        const T *dy = (const T *)j.dy + row * j.k;
        double sum = 0;

        for (int64_t k = 0; k < j.k; k++)
            sum += (double)widen(dy[k]) * sin(angle_of<T>(j, row, k)) * (double)j.u[k * j.c + c];
        ((T *)j.dx)[i] = narrow<T>((float)(-kRoot2 * j.sigma * sum));
    }
}

features_job features_job_of(const ghp_local *local, const ghp_kernel_arguments *args)
{
    features_job j = {};

    j.rows = local->n * local->h * local->w;
    j.c = local->c;
    j.k = local->k;
    j.sigma = local->drawn.sigma;
    j.seed = (uint64_t)local->drawn.seed;
    j.x = args->at.x[0];
    j.dy = args->at.dy;
    j.y = args->at.y;
    j.dx = args->at.dx[0];
    j.u = (float *)args->at.scratch;
    return j;
}

cudaError_t features_forward(ghp_launch launch, const ghp_local *local,
                             const ghp_kernel_arguments *args)
{
    features_job j = features_job_of(local, args);

    if (j.rows == 0) return cudaSuccess;
    enqueue(draw_kernel, blocks_for(j.k * ((j.c + 1) / 2 + 1)), kThreads, 0, launch.stream, j);
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(features_kernel<T>, blocks_for(j.rows * j.k), kThreads, 0, launch.stream, j);
    });
}

cudaError_t features_backward(ghp_launch launch, const ghp_local *local,
                              const ghp_kernel_arguments *args)
{
    features_job j = features_job_of(local, args);

    if (j.rows == 0) return cudaSuccess;
    enqueue(draw_kernel, blocks_for(j.k * ((j.c + 1) / 2 + 1)), kThreads, 0, launch.stream, j);
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(features_back_kernel<T>, blocks_for(j.rows * j.c), kThreads, 0, launch.stream, j);
    });
}

int64_t features_scratch(const ghp_local *local)
{
    return local->k * (local->c + 1) * (int64_t)sizeof(float);
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_random_features[] = {
    {GHP_OP_RANDOM_FEATURES, GHP_PASS_FORWARD, features_forward, features_scratch},
    {GHP_OP_RANDOM_FEATURES, GHP_PASS_BACKWARD_DATA, features_backward, features_scratch},
    {},
};
