// executor/backend/cuda/kernels/given_sums.cu - a batch norm's statistics of sums that came with its input: of each
// channel and of its squares, in float, as a convolution's kernel makes them. See kernels/kernels.h.
//
// A block has the channels of one 16-byte access, and reads the tensor only if one of them needs more digits.
#include "executor/backend/cuda/kernels/norm.cuh"

#include <type_traits>

namespace
{

// The greatest mean squared over variance for which float sums will do. If their relative error is e, the variance's is
// about 3 e (1 + this). A convolution adds some 2^8 rows a tile and then up to 2^13 tiles, in an order that cuDNN does
// not tell. Rounding errors of 2^-24 that add up by chance make e about 2^6.5 times that, so the variance is good to
// 2^-11.8 and the deviation to 2^-12.8: a tenth of what bfloat16 rounds each number by. The mean is then 4 deviations
// from 0.
constexpr double kMostMeanSquared = 16;

// Sums of d = x - k and d d over all rows of V channels from `column` on, in double; every thread gets all.
template <typename T, int V>
__device__ void sum_again(const ghp_sum_job &job, int64_t column, const float (&k)[V],
                          double (&total)[2][V])
{
    constexpr int kWarps = kThreads / 32;
    __shared__ double of_warp[kWarps][2 * V];

#pragma unroll
    for (int j = 0; j < V; j++)
        total[0][j] = total[1][j] = 0;
#pragma unroll 4
    for (int64_t row = threadIdx.x; row < job.rows; row += kThreads) {
        float value[V];

        load<T, V>((const T *)job.x, row * job.c + column, value);
#pragma unroll
        for (int j = 0; j < V; j++) {
            double d = (double)value[j] - (double)k[j];

            total[0][j] += d;
            total[1][j] += d * d;
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * V; i++) {
        double sum = total[i / V][i % V];

        for (int offset = 16; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32][i] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2 * V; i++) {
        total[i / V][i % V] = 0;
        for (int warp = 0; warp < kWarps; warp++)
            total[i / V][i % V] += of_warp[warp][i];
    }
}

// The same of sums of x and x x; over again where these are too coarse. When it returns, all threads have read them.
template <typename T, int V>
__device__ __forceinline__ void find_sums(const ghp_sum_job &job, double (&total)[2][V])
{
    int64_t column = (int64_t)blockIdx.x * V;
    float sum[V], squares[V], k[V];
    double n = (double)job.rows;
    bool again = false;

    load<float, V>(job.sums, column, sum);
    load<float, V>(job.sums + job.c, column, squares);
    load<float, V>(job.shift, column, k);
#pragma unroll
    for (int j = 0; j < V; j++) {
        double s = (double)sum[j], q = (double)squares[j], by = (double)k[j], mean = s / n;

        again = again || mean * mean > kMostMeanSquared * (q / n - mean * mean);
        total[0][j] = s - n * by;
        total[1][j] = q - 2 * by * s + n * by * by;
    }
    __syncthreads();
    if (again) sum_again<T, V>(job, column, k, total);
}

template <typename T, int V> __global__ void given_stats_kernel(ghp_sum_job j)
{
    int64_t column = (int64_t)blockIdx.x * V;
    double total[2][V];

    find_sums<T, V>(j, total);
#pragma unroll
    for (int i = 0; i < V; i++) {
        if (threadIdx.x != (unsigned)i) continue;
        ((double *)j.out)[column + i] = total[0][i];
        ((double *)j.out)[j.c + column + i] = total[1][i];
    }
}

template <typename T, int V> __global__ void given_norm_kernel(ghp_batch_norm_job j)
{
    ghp_sum_job given = {};
    int64_t column = (int64_t)blockIdx.x * V;
    double total[2][V];

    given.rows = j.rows;
    given.c = j.c;
    given.x = j.x;
    given.shift = j.running_mean;
    given.sums = j.sums;
    find_sums<T, V>(given, total);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (threadIdx.x == (unsigned)i) keep_statistics(j, column + i, total[0][i], total[1][i]);
}

// f of the type, and of as many channels a block as a kernel takes of c.
template <typename F> cudaError_t by_width(struct ghp_launch launch, int64_t c, F f)
{
    return by_type(launch, [&](auto type) {
        constexpr int V = full_width<decltype(type)>;

        if (c % V == 0)
            f(type, std::integral_constant<int, V>());
        else
            f(type, std::integral_constant<int, 1>());
    });
}

} // namespace

extern "C" cudaError_t ghp_launch_given_stats(struct ghp_launch launch,
                                              const struct ghp_sum_job *job)
{
    return by_width(launch, job->c, [&](auto type, auto width) {
        constexpr int V = decltype(width)::value;

        enqueue(given_stats_kernel<decltype(type), V>, (unsigned)(job->c / V), kThreads, 0,
                launch.stream, *job);
    });
}

extern "C" cudaError_t ghp_launch_given_norm(struct ghp_launch launch,
                                             const struct ghp_batch_norm_job *job)
{
    return by_width(launch, job->c, [&](auto type, auto width) {
        constexpr int V = decltype(width)::value;

        enqueue(given_norm_kernel<decltype(type), V>, (unsigned)(job->c / V), kThreads, 0,
                launch.stream, *job);
    });
}
