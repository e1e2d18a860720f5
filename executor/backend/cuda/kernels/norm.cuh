// executor/backend/cuda/kernels/norm.cuh - what a batch norm keeps of a channel's sums. See kernels/kernels.h.
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_NORM_CUH
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_NORM_CUH

#include "executor/backend/cuda/kernels/common.cuh"

// Moves a running statistic by `by`. If other samples of the batch have statistics of their own, that is noted
// separately.
__device__ __forceinline__ void move_statistic(const ghp_batch_norm_job &j, float *running,
                                               float *stats_delta, int64_t i, double by)
{
    if (stats_delta == nullptr)
        running[i] = (float)((double)running[i] + by);
    else
        stats_delta[i] =
            (float)((j.stats_delta_adds ? (double)stats_delta[i] : 0) + j.stats_delta_share * by);
}

// Makes mean and variance of channel i from the sums of d = x - running mean and d d, keeps them and mixes them into
// the running ones.
__device__ __forceinline__ void keep_statistics(const ghp_batch_norm_job &j, int64_t i, double sum,
                                                double squares)
{
    double mean = (double)j.running_mean[i], old = (double)j.running_variance[i];
    double offset = sum / j.count, variance = squares / j.count - offset * offset;

    if (variance < 0) variance = 0;
    double unbiased = j.count > 1 ? variance * j.count / (j.count - 1) : variance;
    j.saved[i] = (float)(mean + offset);
    j.saved[j.c + i] = (float)(1 / sqrt(variance + j.epsilon));
    move_statistic(j, j.running_mean, j.stats_delta_mean, i, j.mix * offset);
    move_statistic(j, j.running_variance, j.stats_delta_variance, i, j.mix * (unbiased - old));
}

#endif
