// executor/backend/cuda/kernels/update.cu - the optimizers' updates, of many tensors at once. See kernels/kernels.h.
//
// An optimizer is a rule: what it makes of the hyperparameters once, and what it does with one element. To add one,
// write its rule and its launcher (core/optimizer/optimizer.h).
#include "executor/backend/cuda/kernels/common.cuh"

namespace
{

constexpr int kTensors = 40;         // of one launch: its arguments take at most 4 KiB
constexpr int64_t kChunk = 8 * 1024; // elements of one block

struct update_list {
    int n;
    int first[kTensors + 1]; // block at which each tensor begins
    ghp_update_tensor tensors[kTensors];
};

struct Sgd {
    static constexpr int kMoments = 1;
    float rate, momentum, decay;

    __device__ Sgd(const ghp_hyperparameters &h, bool decays)
        : rate((float)h.learning_rate), momentum((float)h.momentum),
          decay(decays ? (float)h.weight_decay : 0)
    {
    }

    __device__ void apply(float d, float &w, float (&moment)[kMoments]) const
    {
        moment[0] = momentum * moment[0] + (d + decay * w);
        w -= rate * moment[0];
    }
};

struct AdamW {
    static constexpr int kMoments = 2;
    float beta1, rest1, beta2, rest2, kept, length, scale, epsilon;

    __device__ AdamW(const ghp_hyperparameters &h, bool decays)
        : beta1((float)h.beta1), rest1((float)(1 - h.beta1)), beta2((float)h.beta2),
          rest2((float)(1 - h.beta2)),
          kept((float)(1 - h.learning_rate * (decays ? h.weight_decay : 0))),
          length((float)(h.learning_rate / h.correction1)),
          scale((float)(1 / sqrt(h.correction2))), epsilon((float)h.epsilon)
    {
    }

    __device__ void apply(float d, float &w, float (&moment)[kMoments]) const
    {
        moment[0] = beta1 * moment[0] + rest1 * d;
        moment[1] = beta2 * moment[1] + rest2 * d * d;
        w = kept * w - length * (moment[0] / (sqrtf(moment[1]) * scale + epsilon));
    }
};

template <typename Rule>
__global__ void update_kernel(update_list list, ghp_hyperparameters given,
                              const ghp_hyperparameters *hyperparameters_at)
{
    int low = 0, high = list.n - 1;

    while (low < high) { // the last tensor that begins at this block or before
        int middle = (low + high + 1) / 2;

        if (list.first[middle] <= (int)blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    ghp_update_tensor t = list.tensors[low];
    Rule rule(hyperparameters_at != nullptr ? *hyperparameters_at : given, t.decays != 0);
    int64_t begin = ((int64_t)blockIdx.x - list.first[low]) * kChunk;
    int64_t end = begin + kChunk < t.n ? begin + kChunk : t.n, groups = (end - begin) / 4;

    for (int64_t g = threadIdx.x; g < groups; g += blockDim.x) {
        int64_t i = begin + 4 * g;
        float w[4], d[4], moments[Rule::kMoments][4];

        load<float, 4>(t.w, i, w);
        load<float, 4>(t.dw, i, d);
#pragma unroll
        for (int m = 0; m < Rule::kMoments; m++)
            load<float, 4>(t.moment[m], i, moments[m]);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float moment[Rule::kMoments];

            for (int m = 0; m < Rule::kMoments; m++)
                moment[m] = moments[m][j];
            rule.apply(d[j], w[j], moment);
            for (int m = 0; m < Rule::kMoments; m++)
                moments[m][j] = moment[m];
        }
#pragma unroll
        for (int m = 0; m < Rule::kMoments; m++)
            store<float, 4>(t.moment[m], i, moments[m]);
        store<float, 4>(t.w, i, w);
    }
    for (int64_t i = begin + 4 * groups + threadIdx.x; i < end; i += blockDim.x) {
        float moment[Rule::kMoments];

        for (int m = 0; m < Rule::kMoments; m++)
            moment[m] = t.moment[m][i];
        rule.apply(t.dw[i], t.w[i], moment);
        for (int m = 0; m < Rule::kMoments; m++)
            t.moment[m][i] = moment[m];
    }
}

template <typename Rule>
cudaError_t launch(cudaStream_t stream, const struct ghp_update_tensor *tensors, int n,
                   struct ghp_hyperparameters given, const struct ghp_hyperparameters *given_at)
{
    for (int done = 0; done < n;) {
        update_list list = {};
        int64_t blocks = 0;

        while (done < n && list.n < kTensors) {
            const ghp_update_tensor *t = &tensors[done++];

            if (t->n == 0) continue;
            list.first[list.n] = (int)blocks;
            list.tensors[list.n++] = *t;
            blocks += ceil_div(t->n, kChunk);
        }
        if (blocks == 0) continue;
        enqueue(update_kernel<Rule>, (unsigned)blocks, kThreads, 0, stream, list, given, given_at);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

} // namespace

extern "C" cudaError_t ghp_launch_update_sgd(cudaStream_t stream,
                                             const struct ghp_update_tensor *tensors, int n,
                                             struct ghp_hyperparameters given,
                                             const struct ghp_hyperparameters *given_at)
{
    return launch<Sgd>(stream, tensors, n, given, given_at);
}

extern "C" cudaError_t ghp_launch_update_adamw(cudaStream_t stream,
                                               const struct ghp_update_tensor *tensors, int n,
                                               struct ghp_hyperparameters given,
                                               const struct ghp_hyperparameters *given_at)
{
    return launch<AdamW>(stream, tensors, n, given, given_at);
}
