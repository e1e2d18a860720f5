// executor/backend/cuda/kernels/sequence.cu - operations on sequences: rotary.
#include "core/model/rotary.h"
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

// Channels i and pairs + i of each head, [n][position][head][channel], turned by sign x position x ghp_rotary_angle;
// the rest of a head stays. `to` may be `from`.
struct rotary_job {
    int64_t n, positions, heads, pairs, size;
    int64_t first_position; // of the sequence
    struct ghp_heads turns;
    float sign;
    const void *from;
    void *to;
};

// One thread a position and a pair, or a channel that stays: a turn is the same for all samples and heads. The angle is in double, because it
// may be many turns.
template <typename T> __global__ void rotary_kernel(rotary_job j)
{
    int64_t items = j.size - j.pairs, c = j.size * j.heads;

    for (int64_t item = first_item(); item < j.positions * items; item += item_stride()) {
        int64_t position = item / items, pair = item % items;
        double real = 0, imaginary = 0;

        if (pair < j.pairs)
            sincos((double)(j.first_position + position) * ghp_rotary_angle(&j.turns, pair), &imaginary, &real);
        float cosine = (float)(j.turns.amplitude * real),
              sine = j.sign * (float)(j.turns.amplitude * imaginary);
        for (int64_t n = 0; n < j.n; n++)
            for (int64_t head = 0; head < j.heads; head++) {
                int64_t at = (n * j.positions + position) * c + j.size * head + pair;

                if (pair >= j.pairs) {
                    ((T *)j.to)[at + j.pairs] = ((const T *)j.from)[at + j.pairs];
                    continue;
                }
                float a = widen(((const T *)j.from)[at]), b = widen(((const T *)j.from)[at + j.pairs]);

                ((T *)j.to)[at] = narrow<T>(a * cosine - b * sine);
                ((T *)j.to)[at + j.pairs] = narrow<T>(b * cosine + a * sine);
            }
    }
}

cudaError_t rotate(struct ghp_launch launch, const struct ghp_local *l, int64_t first_position, float sign,
                   const void *from, void *to)
{
    rotary_job job = {};

    job.n = l->n;
    job.positions = l->h;
    job.first_position = first_position;
    job.heads = l->c / l->heads.size;
    job.pairs = l->heads.turned / 2;
    job.size = l->heads.size;
    job.turns = l->heads;
    job.sign = sign;
    job.from = from;
    job.to = to;
    return by_type(launch, [&](auto type) {
        enqueue(rotary_kernel<decltype(type)>, blocks_for(job.positions * (job.size - job.pairs)), kThreads, 0,
                launch.stream, job);
    });
}

cudaError_t rotary_forward(struct ghp_launch launch, const struct ghp_local *local,
                           const struct ghp_kernel_arguments *args)
{
    return rotate(launch, local, args->first_position, 1.0f, args->at.x[0], args->at.y);
}

cudaError_t rotary_data(struct ghp_launch launch, const struct ghp_local *local,
                        const struct ghp_kernel_arguments *args)
{
    return rotate(launch, local, args->first_position, -1.0f, args->at.dy, args->at.dx[0]);
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_sequence[] = {
    {GHP_OP_ROTARY, GHP_PASS_FORWARD, rotary_forward, nullptr},
    {GHP_OP_ROTARY, GHP_PASS_BACKWARD_DATA, rotary_data, nullptr},
    {},
};
