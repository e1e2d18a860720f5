// executor/backend/cuda/kernels/loss.cuh - what the losses' kernels share: what a launch works on, sums of a block, and
// the metrics of all rows.
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_LOSS_CUH
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_LOSS_CUH

#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

struct row_result {
    double loss, correct, counted;
};

__device__ double block_sum(double mine)
{
    __shared__ double of_warp[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    double sum = 0;

    for (int offset = 16; offset > 0; offset /= 2)
        mine += __shfl_down_sync(~0u, mine, offset);
    __syncthreads();
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads();
    for (int i = 0; i < warps; i++)
        sum += of_warp[i];
    return sum;
}

constexpr int kMostLossThreads = 1024;

inline unsigned loss_threads(int64_t columns)
{
    return columns <= 32 ? 32 : columns <= 128 ? 64 : columns <= 4096 ? 256 : kMostLossThreads;
}

// What a launch works on. `first` is 0 for whole rows.
struct loss_work {
    int64_t rows, columns, classes; // columns of this worker, and classes among them
    int64_t first;                  // class of the first column
    int64_t valid;                  // rows before the padding of a batch
    int parts;                      // 0: whole rows
    // several: losses are [samples][outputs][width]
    int64_t outputs, width;
    int counted; // whose hits the metrics have
    int alone;   // all are of this output less 1; 0: as they lie
    bool shares; // outputs have the same labels
    const int32_t *labels;
    const ghp_second_label *seconds; // of whole rows; or NULL
    double *stats;
    const ghp_step_hyperparameters *given; // in device memory, in place of the next three; or NULL
    double scale, mean_weight;
    double weights[GHP_MAX_INPUTS];
    const double *class_weights; // in device memory; NULL: all are 1
    double smoothing, every;     // of a target: what all classes share, and what each has of it
};

// The output that a loss is of; which labels it takes.
__device__ __forceinline__ int64_t output_of(const loss_work &w, int64_t i)
{
    return w.alone > 0 ? w.alone - 1 : w.outputs > 1 ? i / w.width % w.outputs : 0;
}

__device__ __forceinline__ int64_t labels_of(const loss_work &w, int64_t i)
{
    return w.shares ? i / w.width / w.outputs * w.width + i % w.width : i;
}

__device__ __forceinline__ double output_weight(const loss_work &w, int64_t i)
{
    if (w.outputs < 2) return 1;
    return w.given != nullptr ? w.given->output_weights[output_of(w, i)]
                              : w.weights[output_of(w, i)];
}

// What the gradient of a loss is multiplied by.
__device__ __forceinline__ double scale_of(const loss_work &w, int64_t i)
{
    return (w.given != nullptr ? w.given->loss_scale : w.scale) * output_weight(w, i);
}

// Losses as the metrics have them: hits are those of one output.
__device__ __forceinline__ row_result counted(const loss_work &w, int64_t i, row_result of)
{
    bool counts = output_of(w, i) == w.counted;

    return row_result{of.loss * output_weight(w, i), counts ? of.correct : 0,
                      counts ? of.counted : 0};
}

// One block; each thread adds its rows in order, and the threads' sums are added in order.
__global__ void metrics_kernel(int64_t rows, const row_result *results, double *metrics)
{
    double loss = 0, correct = 0, counted = 0;

    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
        loss += results[i].loss;
        correct += results[i].correct;
        counted += results[i].counted;
    }
    loss = block_sum(loss);
    correct = block_sum(correct);
    counted = block_sum(counted);
    if (threadIdx.x == 0) {
        metrics[0] += loss;
        metrics[1] += correct;
        metrics[2] += counted;
    }
}

// What every loss has.
inline void take_outputs(loss_work &w, const ghp_local *local, const ghp_kernel_arguments *args)
{
    const double *weights =
        args->output_weights != NULL ? args->output_weights : local->loss.weights;

    w.outputs = local->loss.outputs > 1 ? local->loss.outputs : 1;
    w.width = local->op == GHP_OP_REGRESSION || local->loss.multi_label ? local->c : 1;
    w.alone = local->loss.alone;
    w.counted = args->counted_output;
    w.shares = w.outputs > 1 && !local->loss.own_labels;
    w.labels = args->at.labels;
    w.scale = args->loss_scale;
    w.mean_weight = args->mean_weight;
    w.given = args->hyperparameters;
    for (int i = 0; i < local->loss.outputs; i++)
        w.weights[i] = weights[i];
}

inline loss_work loss_work_of(const ghp_local *local, const ghp_kernel_arguments *args)
{
    loss_work w = {};
    int64_t left = args->global_channels - args->first_channel;

    w.columns = local->loss.multi_label ? 1 : local->c;
    w.classes = left < 0 ? 0 : left < w.columns ? left : w.columns;
    w.rows = local->n * local->h * (local->c / w.columns);
    w.parts = local->parts;
    w.first = args->first_channel;
    w.valid = local->n > 0 ? args->valid_samples * (w.rows / local->n) : 0;
    w.smoothing = local->loss.smoothing;
    w.every = w.smoothing / (double)args->global_channels;
    w.seconds = args->at.seconds;
    w.stats = args->at.stats;
    w.class_weights = args->class_weights;
    take_outputs(w, local, args);
    return w;
}

inline int64_t loss_scratch(const ghp_local *local)
{
    return local->n * local->h * (local->loss.multi_label ? local->c : 1) *
           (int64_t)sizeof(row_result);
}

} // namespace

#endif
