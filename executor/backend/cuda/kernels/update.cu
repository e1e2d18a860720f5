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

struct Lion {
    static constexpr int kMoments = 1;
    float beta1, rest1, beta2, rest2, kept, rate;

    __device__ Lion(const ghp_hyperparameters &h, bool decays)
        : beta1((float)h.beta1), rest1((float)(1 - h.beta1)), beta2((float)h.beta2),
          rest2((float)(1 - h.beta2)),
          kept((float)(1 - h.learning_rate * (decays ? h.weight_decay : 0))),
          rate((float)h.learning_rate)
    {
    }

    __device__ void apply(float d, float &w, float (&moment)[kMoments]) const
    {
        float mean = beta1 * moment[0] + rest1 * d;

        w = kept * w - rate * (float)((mean > 0) - (mean < 0));
        moment[0] = beta2 * moment[0] + rest2 * d;
    }
};

// What gradients are multiplied by, at most 1, to bring their norm down to what is given.
__device__ float scale_of(const ghp_hyperparameters &h, const double *squares)
{
    if (squares == nullptr) return 1;
    double scale = h.clip_norm / (sqrt(*squares) + 1e-6);

    return scale < 1 ? (float)scale : 1;
}

// 0, or NaN where one of them is not finite.
template <int n> __device__ float off_of(float w, const float (&moment)[n])
{
    float off = w - w;

#pragma unroll
    for (int m = 0; m < n; m++)
        off += moment[m] - moment[m];
    return off;
}

// The key is executor/backend/backend.h's.
__device__ void note(const ghp_update_numbers &numbers, int layer)
{
    unsigned long long key = (unsigned long long)*numbers.step_at << 24 | (unsigned)layer;

    atomicMin((unsigned long long *)numbers.first, key);
    *numbers.poison = nan("");
}

template <typename Rule>
__global__ void update_kernel(update_list list, ghp_update_numbers numbers)
{
    ghp_hyperparameters h = numbers.given_at != nullptr ? *numbers.given_at : numbers.given;
    const float scale = scale_of(h, numbers.squares);
    float off = 0;
    int low = 0, high = list.n - 1;

    while (low < high) { // the last tensor that begins at this block or before
        int middle = (low + high + 1) / 2;

        if (list.first[middle] <= (int)blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    ghp_update_tensor t = list.tensors[low];
    h.learning_rate *= t.rate_scale;
    Rule rule(h, t.decays != 0);
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
            rule.apply(rounded_product(scale, d[j]), w[j], moment);
            off += off_of(w[j], moment);
            for (int m = 0; m < Rule::kMoments; m++)
                moments[m][j] = moment[m];
        }
#pragma unroll
        for (int m = 0; m < Rule::kMoments; m++)
            store<float, 4>(t.moment[m], i, moments[m]);
        store<float, 4>(t.w, i, w);
        if (t.w_bf16 != nullptr) store<bf16, 4>((bf16 *)t.w_bf16, i, w);
    }
    for (int64_t i = begin + 4 * groups + threadIdx.x; i < end; i += blockDim.x) {
        float moment[Rule::kMoments];

        for (int m = 0; m < Rule::kMoments; m++)
            moment[m] = t.moment[m][i];
        rule.apply(rounded_product(scale, t.dw[i]), t.w[i], moment);
        off += off_of(t.w[i], moment);
        for (int m = 0; m < Rule::kMoments; m++)
            t.moment[m][i] = moment[m];
        if (t.w_bf16 != nullptr) ((bf16 *)t.w_bf16)[i] = narrow<bf16>(t.w[i]);
    }
    if (off != 0 && numbers.first != nullptr) note(numbers, t.layer);
}

template <typename Rule>
cudaError_t launch(cudaStream_t stream, const struct ghp_update_tensor *tensors, int n,
                   const struct ghp_update_numbers *numbers)
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
        enqueue(update_kernel<Rule>, (unsigned)blocks, kThreads, 0, stream, list, *numbers);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

} // namespace

extern "C" cudaError_t ghp_launch_update_sgd(cudaStream_t stream, const struct ghp_update_tensor *tensors, int n,
                                               const struct ghp_update_numbers *numbers)
{
    return launch<Sgd>(stream, tensors, n, numbers);
}

extern "C" cudaError_t ghp_launch_update_adamw(cudaStream_t stream, const struct ghp_update_tensor *tensors, int n,
                                               const struct ghp_update_numbers *numbers)
{
    return launch<AdamW>(stream, tensors, n, numbers);
}

extern "C" cudaError_t ghp_launch_update_lion(cudaStream_t stream, const struct ghp_update_tensor *tensors, int n,
                                              const struct ghp_update_numbers *numbers)
{
    return launch<Lion>(stream, tensors, n, numbers);
}

// ---- sums of squares ----

namespace
{

constexpr int kSquares = 128; // tensors of one launch

struct square_list {
    int n;
    ghp_square_tensor tensors[kSquares];
};

// The sum of all threads' values, in thread 0.
__device__ double sum_of_block(double own)
{
    __shared__ double sums[kThreads];

    sums[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

__global__ void square_kernel(square_list list, bool adds, double *parts)
{
    double sum = 0;

    for (int t = 0; t < list.n; t++)
        for (int64_t i = first_item(); i < list.tensors[t].n; i += item_stride()) {
            double x = list.tensors[t].x[i];

            sum += x * x;
        }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = (adds ? parts[blockIdx.x] : 0) + sum;
}

__global__ void square_parts_kernel(ghp_square_parts parts, double *sum)
{
    double own = 0;

    for (int i = (int)threadIdx.x; i < parts.n; i += kThreads)
        own += parts.at[i];
    own = sum_of_block(own);
    if (threadIdx.x == 0) *sum = own;
}

} // namespace

extern "C" cudaError_t ghp_launch_square(cudaStream_t stream,
                                         const struct ghp_square_tensor *tensors, int n,
                                         struct ghp_square_parts parts, double *sum)
{
    int done = 0;

    do { // once at least: the parts are then zero
        square_list list = {};
        bool adds = done > 0;

        while (done < n && list.n < kSquares)
            list.tensors[list.n++] = tensors[done++];
        enqueue(square_kernel, (unsigned)parts.n, kThreads, 0, stream, list, adds, parts.at);
    } while (done < n);
    enqueue(square_parts_kernel, 1, kThreads, 0, stream, parts, sum);
    return cudaGetLastError();
}
