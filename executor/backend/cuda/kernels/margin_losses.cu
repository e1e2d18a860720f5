// executor/backend/cuda/kernels/margin_losses.cu - hinge, squared error and binary cross-entropy: a thread a row.
// Regression: a block a row of a sample. See kernels/kernels.h.
#include "executor/backend/cuda/kernels/loss.cuh"

namespace
{

// ---- hinge, squared_error and binary_cross_entropy: outputs with a target of 1 or -1 each, a thread a row ----

__device__ __forceinline__ float target_of(const loss_work &w, int64_t label, int64_t i)
{
    return (w.columns == 1 ? label > 0 : i == label) ? 1.0f : -1.0f;
}

__device__ __forceinline__ double margin_loss(ghp_op op, double x, double t)
{
    double margin = 1 - t * x;

    if (op == GHP_OP_BINARY_CE) return (margin > 1 ? margin - 1 : 0.0) + log1p(exp(-fabs(x)));
    if (op == GHP_OP_HINGE) return margin > 0 ? margin : 0.0;
    return 0.5 * (x - t) * (x - t);
}

__device__ __forceinline__ float margin_slope(ghp_op op, float x, float t)
{
    if (op == GHP_OP_BINARY_CE) return -t / (1 + expf(t * x));
    if (op == GHP_OP_HINGE) return t * x < 1 ? -t : 0.0f;
    return x - t;
}

// Binary cross-entropy is the mean over the outputs, the others are sums.
__device__ __forceinline__ double margin_weight(ghp_op op, int64_t columns)
{
    return op == GHP_OP_BINARY_CE ? 1.0 / (double)columns : 1.0;
}

template <typename T>
__global__ void margin_forward_kernel(loss_work w, ghp_op op, const T *x, T *y, row_result *results)
{
    for (int64_t n = first_item(); n < w.rows; n += item_stride()) {
        int64_t label = n < w.valid ? w.labels[labels_of(w, n)] : -1, greatest = 0;
        row_result of = {0, 0, label >= 0 ? 1.0 : 0.0};

        for (int64_t i = 0; i < w.columns; i++) {
            float value = widen(x[n * w.columns + i]);
            double t = target_of(w, label, i);

            if (value > widen(x[n * w.columns + greatest])) greatest = i;
            if (label >= 0)
                of.loss += margin_weight(op, w.columns) * margin_loss(op, (double)value, t);
        }
        if (label >= 0)
            of.correct = w.columns == 1 ? (widen(x[n]) > 0) == (label > 0) : greatest == label;
        for (int64_t i = 0; i < w.columns; i++)
            y[n * w.columns + i] = x[n * w.columns + i];
        results[n] = counted(w, n, of);
    }
}

template <typename T> __global__ void margin_back_kernel(loss_work w, ghp_op op, const T *y, T *dx)
{
    for (int64_t i = first_item(); i < w.rows * w.columns; i += item_stride()) {
        int64_t n = i / w.columns, label = w.labels[labels_of(w, n)];
        float scale = (float)(scale_of(w, n) * margin_weight(op, w.columns));
        float t = target_of(w, label, i % w.columns), value = widen(y[i]);

        dx[i] = narrow<T>(label < 0 ? 0.0f : scale * margin_slope(op, value, t));
    }
}

cudaError_t margin_forward(ghp_launch launch, const ghp_local *local,
                           const ghp_kernel_arguments *args)
{
    loss_work w = loss_work_of(local, args);
    row_result *results = (row_result *)args->at.scratch;

    if (w.rows == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(margin_forward_kernel<T>, blocks_for(w.rows), kThreads, 0, launch.stream, w,
                local->op, (const T *)args->at.x[0], (T *)args->at.y, results);
        enqueue(metrics_kernel, 1, kThreads, 0, launch.stream, w.rows, results, args->at.metrics);
    });
}

cudaError_t margin_backward(ghp_launch launch, const ghp_local *local,
                            const ghp_kernel_arguments *args)
{
    loss_work w = loss_work_of(local, args);

    if (w.rows == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(margin_back_kernel<T>, blocks_for(w.rows * w.columns), kThreads, 0, launch.stream,
                w, local->op, (const T *)args->at.y, (T *)args->at.dx[0]);
    });
}

// ---- regression: outputs with a number each as label ----

struct error_curve {
    ghp_error error;
    float delta, factor; // of the last two errors: where they bend, and 1 over it where it divides
};

error_curve curve_of(const ghp_local *local)
{
    bool smooth = local->loss.error == GHP_ERROR_SMOOTH_L1;

    return error_curve{local->loss.error, (float)local->loss.delta,
                       smooth ? (float)(1 / local->loss.delta) : 1.0f};
}

__device__ __forceinline__ double error_of(error_curve by, double d)
{
    double delta = (double)by.delta, size = fabs(d);

    if (by.error == GHP_ERROR_SQUARED) return d * d;
    if (by.error == GHP_ERROR_ABSOLUTE) return size;
    return (size <= delta ? d * d / 2 : delta * (size - delta / 2)) * (double)by.factor;
}

__device__ __forceinline__ float slope_of(error_curve by, float d)
{
    float sign = d > 0 ? 1.0f : d < 0 ? -1.0f : 0.0f;

    if (by.error == GHP_ERROR_SQUARED) return 2 * d;
    if (by.error == GHP_ERROR_ABSOLUTE) return sign;
    return (fabsf(d) <= by.delta ? d : by.delta * sign) * by.factor;
}

// Rows of a sample's image, or its positions.
loss_work regression_work_of(const ghp_local *local, const ghp_kernel_arguments *args)
{
    loss_work w = {};

    w.columns = local->w * local->c;
    w.rows = local->n * local->h;
    w.valid = args->valid_samples * local->h;
    take_outputs(w, local, args);
    return w;
}

template <typename T>
__global__ void __launch_bounds__(kMostLossThreads)
    regression_forward_kernel(loss_work w, error_curve curve, const T *x, T *y, row_result *results)
{
    int64_t n = blockIdx.x, first = n * w.columns;
    double loss = 0, absolute = 0, samples = 0;

    for (int64_t i = first + threadIdx.x; i < first + w.columns; i += blockDim.x) {
        float label = __int_as_float(w.labels[labels_of(w, i)]);
        double d = isnan(label) ? 0.0 : (double)widen(x[i]) - (double)label; // NaN is left out

        samples += isnan(label) ? 0 : 1;
        loss += error_of(curve, d);
        absolute += fabs(d);
        y[i] = x[i];
    }
    loss = block_sum(loss);
    absolute = block_sum(absolute);
    samples = block_sum(samples);
    if (threadIdx.x == 0)
        results[n] = n < w.valid ? counted(w, first, row_result{loss, absolute, samples})
                                 : row_result{0, 0, 0};
}

template <typename T>
__global__ void regression_back_kernel(loss_work w, error_curve curve, const T *y, T *dx)
{
    for (int64_t i = first_item(); i < w.rows * w.columns; i += item_stride()) {
        float label = __int_as_float(w.labels[labels_of(w, i)]);
        float slope = isnan(label) ? 0.0f : slope_of(curve, widen(y[i]) - label);

        dx[i] = narrow<T>((float)scale_of(w, i) * slope);
    }
}

cudaError_t regression_forward(ghp_launch launch, const ghp_local *local,
                               const ghp_kernel_arguments *args)
{
    loss_work w = regression_work_of(local, args);
    row_result *results = (row_result *)args->at.scratch;

    if (w.rows == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(regression_forward_kernel<T>, (unsigned)w.rows, loss_threads(w.columns), 0,
                launch.stream, w, curve_of(local), (const T *)args->at.x[0], (T *)args->at.y,
                results);
        enqueue(metrics_kernel, 1, kThreads, 0, launch.stream, w.rows, results, args->at.metrics);
    });
}

cudaError_t regression_backward(ghp_launch launch, const ghp_local *local,
                                const ghp_kernel_arguments *args)
{
    loss_work w = regression_work_of(local, args);

    if (w.rows == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(regression_back_kernel<T>, blocks_for(w.rows * w.columns), kThreads, 0,
                launch.stream, w, curve_of(local), (const T *)args->at.y, (T *)args->at.dx[0]);
    });
}

int64_t regression_scratch(const ghp_local *local)
{
    return local->n * local->h * (int64_t)sizeof(row_result);
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_margin_losses[] = {
    {GHP_OP_HINGE, GHP_PASS_FORWARD, margin_forward, loss_scratch},
    {GHP_OP_HINGE, GHP_PASS_BACKWARD_DATA, margin_backward, nullptr},
    {GHP_OP_SQUARED_ERROR, GHP_PASS_FORWARD, margin_forward, loss_scratch},
    {GHP_OP_SQUARED_ERROR, GHP_PASS_BACKWARD_DATA, margin_backward, nullptr},
    {GHP_OP_BINARY_CE, GHP_PASS_FORWARD, margin_forward, loss_scratch},
    {GHP_OP_BINARY_CE, GHP_PASS_BACKWARD_DATA, margin_backward, nullptr},
    {GHP_OP_REGRESSION, GHP_PASS_FORWARD, regression_forward, regression_scratch},
    {GHP_OP_REGRESSION, GHP_PASS_BACKWARD_DATA, regression_backward, nullptr},
    {},
};
