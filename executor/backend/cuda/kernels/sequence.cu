// executor/backend/cuda/kernels/sequence.cu - operations on sequences: rotary. See kernels/kernels.h.
#include "executor/backend/cuda/kernels/common.cuh"

namespace
{

// One thread a position and pair: its turn is the same for all samples and heads. The angle is in double, because it
// may be many turns.
template <typename T> __global__ void rotary_kernel(ghp_rotary_job j)
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

} // namespace

extern "C" cudaError_t ghp_launch_rotary(struct ghp_launch launch, const struct ghp_rotary_job *job)
{
    return by_type(launch, [&](auto type) {
        enqueue(rotary_kernel<decltype(type)>, blocks_for(job->positions * job->pairs), kThreads, 0,
                launch.stream, *job);
    });
}
