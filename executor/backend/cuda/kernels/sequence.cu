// executor/backend/cuda/kernels/sequence.cu - operations on sequences: rotary.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

// Channels i and pairs + i of each head, [n][position][head][channel], turned by sign x position x base^(-i / pairs);
// `to` may be `from`.
struct rotary_job {
    int64_t n, positions, heads, pairs;
    double base;
    float sign;
    const void *from;
    void *to;
};

// One thread a position and pair: its turn is the same for all samples and heads. The angle is in double, because it
// may be many turns.
template <typename T> __global__ void rotary_kernel(rotary_job j)
{
    for (int64_t item = first_item(); item < j.positions * j.pairs; item += item_stride()) {
        int64_t position = item / j.pairs, pair = item % j.pairs, c = 2 * j.pairs * j.heads;
        double real, imaginary;

        sincos((double)position * pow(j.base, -(double)pair / (double)j.pairs), &imaginary, &real);
        float cosine = (float)real, sine = j.sign * (float)imaginary;
        for (int64_t n = 0; n < j.n; n++)
            for (int64_t head = 0; head < j.heads; head++) {
                int64_t at = (n * j.positions + position) * c + 2 * j.pairs * head + pair;
                float a = widen(((const T *)j.from)[at]), b = widen(((const T *)j.from)[at + j.pairs]);

                ((T *)j.to)[at] = narrow<T>(a * cosine - b * sine);
                ((T *)j.to)[at + j.pairs] = narrow<T>(b * cosine + a * sine);
            }
    }
}

cudaError_t rotate(struct ghp_launch launch, const struct ghp_local *l, float sign, const void *from,
                   void *to)
{
    rotary_job job = {};

    job.n = l->n;
    job.positions = l->h;
    job.heads = l->c / l->heads.size;
    job.pairs = l->heads.size / 2;
    job.base = l->heads.base;
    job.sign = sign;
    job.from = from;
    job.to = to;
    return by_type(launch, [&](auto type) {
        enqueue(rotary_kernel<decltype(type)>, blocks_for(job.positions * job.pairs), kThreads, 0,
                launch.stream, job);
    });
}

cudaError_t rotary_forward(struct ghp_launch launch, const struct ghp_local *local,
                           const struct ghp_kernel_arguments *args)
{
    return rotate(launch, local, 1.0f, args->at.x[0], args->at.y);
}

cudaError_t rotary_data(struct ghp_launch launch, const struct ghp_local *local,
                        const struct ghp_kernel_arguments *args)
{
    return rotate(launch, local, -1.0f, args->at.dy, args->at.dx[0]);
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_sequence[] = {
    {GHP_OP_ROTARY, GHP_PASS_FORWARD, rotary_forward, nullptr},
    {GHP_OP_ROTARY, GHP_PASS_BACKWARD_DATA, rotary_data, nullptr},
    {},
};
