// executor/backend/cuda/kernels/loss.cu - softmax cross-entropy, of whole rows and of rows whose classes
// are divided: one block a row, as large as can be for long rows, so that those under way stay in the cache from the
// first reading to the last.
//
// The forward pass may write the gradient at once. Then logits come from memory once, and no probabilities are written.
//
// The label's own gradient is the negative sum of the others, which keeps its digits. If classes are divided it
// comes from what all parts said of the row (enum ghp_row). Columns after the last class are padding: no pass reads
// them, y and dx are 0 there.
#include "executor/backend/cuda/kernels/loss.cuh"

#include <math_constants.h>

namespace
{

struct best {
    float value;
    int index;
};

// The greater; of equals the first.
__device__ __forceinline__ best better(best a, best b)
{
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

__device__ best block_best(best mine)
{
    __shared__ best of_warp[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    for (int offset = 16; offset > 0; offset /= 2) {
        best other = {__shfl_down_sync(~0u, mine.value, offset),
                      __shfl_down_sync(~0u, mine.index, offset)};
        mine = better(mine, other);
    }
    __syncthreads();
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads();
    mine = of_warp[0];
    for (int i = 1; i < warps; i++)
        mine = better(mine, of_warp[i]);
    return mine;
}

// The shape of a row from an address on: columns before the first whole vector, and whole vectors.
template <typename T> struct row_shape {
    int64_t head, vectors;
};

template <typename T> __device__ row_shape<T> shape_of(const T *row, int64_t columns)
{
    constexpr int V = full_width<T>;
    int64_t head = (int64_t)((16 - (uintptr_t)row % 16) % 16 / sizeof(T));

    if (head > columns) head = columns;
    return row_shape<T>{head, (columns - head) / V};
}

// f(column, value) of the thread's columns of a row.
template <typename T, typename F> __device__ void each_column(const T *row, int64_t columns, F f)
{
    constexpr int V = full_width<T>;
    row_shape<T> shape = shape_of(row, columns);

    for (int64_t i = threadIdx.x; i < shape.head; i += blockDim.x)
        f(i, widen(row[i]));
    for (int64_t g = threadIdx.x; g < shape.vectors; g += blockDim.x) {
        float x[V];

        load<T, V>(row + shape.head, g * V, x);
#pragma unroll
        for (int v = 0; v < V; v++)
            f(shape.head + g * V + v, x[v]);
    }
    for (int64_t i = shape.head + shape.vectors * V + threadIdx.x; i < columns; i += blockDim.x)
        f(i, widen(row[i]));
}

// to[column] = f(column, value): `to` may be `row`.
template <typename T, typename F>
__device__ void map_columns(const T *row, T *to, int64_t columns, F f)
{
    constexpr int V = full_width<T>;
    row_shape<T> shape = shape_of(row, columns);

    if ((uintptr_t)row % 16 != (uintptr_t)to % 16) shape = row_shape<T>{columns, 0};
    for (int64_t i = threadIdx.x; i < shape.head; i += blockDim.x)
        to[i] = narrow<T>(f(i, widen(row[i])));
    for (int64_t g = threadIdx.x; g < shape.vectors; g += blockDim.x) {
        float x[V], y[V];

        load<T, V>(row + shape.head, g * V, x);
#pragma unroll
        for (int v = 0; v < V; v++)
            y[v] = f(shape.head + g * V + v, x[v]);
        store<T, V>(to + shape.head, g * V, y);
    }
    for (int64_t i = shape.head + shape.vectors * V + threadIdx.x; i < columns; i += blockDim.x)
        to[i] = narrow<T>(f(i, widen(row[i])));
}

// The row's second label, -1 without one; `moved` is what it takes from the first one's target.
__device__ int64_t second_of(const loss_work &w, int64_t n, double &moved)
{
    int64_t of = labels_of(w, n);
    bool has = w.seconds != nullptr && w.seconds[of].weight > 0;

    moved = has ? (1 - w.smoothing) * w.seconds[of].weight : 0.0;
    return has ? w.seconds[of].label : -1;
}

__device__ __forceinline__ int64_t label_of(const loss_work &w, int64_t n)
{
    return w.labels[labels_of(w, n)];
}

// The weight of a row's class in the gradient; `mean`: in the metrics, where it is over the mean of all labels'.
__device__ __forceinline__ double class_weight(const loss_work &w, int64_t n, bool mean)
{
    if (w.class_weights == nullptr || label_of(w, n) < 0) return 1;
    return w.class_weights[label_of(w, n)] / (!mean                ? 1
                                              : w.given != nullptr ? w.given->mean_weight
                                                                   : w.mean_weight);
}

struct loss_row { // what is known of one
    double greatest, sum, label;
    double others; // of `sum`, without the label's own; of whole rows
    bool correct;
};

__device__ loss_row put_together(const loss_work &w, int64_t n)
{
    const double *first = w.stats + n * GHP_ROW_COUNT, *best = first;
    int64_t step = w.rows * GHP_ROW_COUNT;
    loss_row all = {0, 0, 0, 0, false};

    for (int part = 1; part < w.parts; part++)
        if (first[part * step + GHP_ROW_MAX] > best[GHP_ROW_MAX]) best = first + part * step;
    all.greatest = best[GHP_ROW_MAX];
    all.correct = best[GHP_ROW_CORRECT] > 0;
    for (int part = 0; part < w.parts; part++) {
        const double *of = first + part * step;

        all.sum += of[GHP_ROW_SUM] * exp(of[GHP_ROW_MAX] - all.greatest);
        all.label += of[GHP_ROW_LABEL];
    }
    return all;
}

// What a whole block finds in this worker's columns of a row.
template <typename T>
__device__ loss_row look_at(const loss_work &w, const T *logits, int64_t label)
{
    best mine = {-CUDART_INF_F, 0x7fffffff};
    double others = 0, own = 0;
    bool here = label >= 0 && label < w.classes;

    each_column(logits, w.classes, [&](int64_t i, float value) {
        mine = better(mine, best{value, (int)i});
    });
    mine = block_best(mine);
    each_column(logits, w.classes, [&](int64_t i, float value) {
        if (i != label) others += (double)expf(value - mine.value);
    });
    others = block_sum(others);
    if (here) own = (double)expf(widen(logits[label]) - mine.value);
    double targeted = here ? (double)widen(logits[label]) : 0.0;

    if (w.every > 0) { // the same for the whole block
        double all = 0;

        each_column(logits, w.classes, [&](int64_t, float value) { all += (double)value; });
        targeted = (1 - w.smoothing) * targeted + w.every * block_sum(all);
    }
    return loss_row{(double)mine.value, others + own, targeted, others,
                    here && mine.index == label};
}

template <typename T>
__global__ void __launch_bounds__(kMostLossThreads) loss_stats_kernel(loss_work w, const T *x)
{
    int64_t n = blockIdx.x, step = w.rows * GHP_ROW_COUNT;
    loss_row mine = look_at(w, x + n * w.columns, label_of(w, n) - w.first);
    double *to = w.stats + n * GHP_ROW_COUNT;
    int64_t own = w.first / w.columns;

    for (int part = threadIdx.x; part < w.parts; part += blockDim.x) {
        to[part * step + GHP_ROW_MAX] = part == own ? mine.greatest : 0;
        to[part * step + GHP_ROW_SUM] = part == own ? mine.sum : 0;
        to[part * step + GHP_ROW_LABEL] = part == own ? mine.label : 0;
        to[part * step + GHP_ROW_CORRECT] = part == own && mine.correct ? 1 : 0;
    }
}

// The dx of a row at each column, from its probability there.
struct row_gradient {
    bool counts;
    int64_t label, second; // their columns, if they are among these
    float own, other, every, scale;

    // others   the sum of all probabilities but the label's
    __device__ row_gradient(const loss_work &w, int64_t n, double others)
        : counts(label_of(w, n) >= 0), label(label_of(w, n) - w.first)
    {
        double moved;

        second = second_of(w, n, moved);
        own = -(float)(others - w.smoothing + w.every - moved);
        other = (float)(w.every + moved);
        every = (float)w.every;
        scale = (float)(scale_of(w, n) * class_weight(w, n, false));
    }

    __device__ float at(int64_t i, float probability) const
    {
        return !counts      ? 0.0f
               : i == label ? own * scale
                            : (probability - (i == second ? other : every)) * scale;
    }
};

// What the label's own gradient follows from, of a row whose logits are there.
template <typename T>
__device__ double others_of(const loss_work &w, const loss_row &of, const T *logits, int64_t label)
{
    if (w.parts == 0) return of.others / of.sum;
    if (w.every == 0) return 1 - exp(of.label - of.greatest) / of.sum;
    if (label < 0 || label >= w.classes) return 0; // the parts say the smoothed target's logit
    return 1 - exp((double)widen(logits[label]) - of.greatest) / of.sum;
}

template <typename T>
__global__ void __launch_bounds__(kMostLossThreads)
    loss_forward_kernel(loss_work w, const T *x, T *y, bool gradient, row_result *results)
{
    int64_t n = blockIdx.x, label = label_of(w, n) - w.first;
    const T *logits = x + n * w.columns;
    T *out = y + n * w.columns;
    loss_row of = w.parts > 0 ? put_together(w, n) : look_at(w, logits, label);
    float scale = (float)(1.0 / of.sum);
    row_gradient slope(w, n, others_of(w, of, logits, label));
    double moved = 0;
    int64_t second = slope.counts ? second_of(w, n, moved) : -1;

    if (second >= 0)
        of.label += moved * ((double)widen(logits[second]) - (double)widen(logits[label]));
    __syncthreads(); // y may be x
    map_columns(logits, out, w.columns, [&](int64_t i, float value) {
        float probability = i < w.classes ? expf(value - (float)of.greatest) * scale : 0.0f;

        return !gradient ? probability : i < w.classes ? slope.at(i, probability) : 0.0f;
    });
    if (threadIdx.x == 0)
        results[n] = slope.counts && n < w.valid
                         ? counted(w, n,
                                   row_result{(log(of.sum) - (of.label - of.greatest)) *
                                                  class_weight(w, n, true),
                                              of.correct ? 1.0 : 0.0, 1})
                         : row_result{0, 0, 0};
}

template <typename T>
__global__ void __launch_bounds__(kMostLossThreads) loss_back_kernel(loss_work w, const T *y, T *dx)
{
    int64_t n = blockIdx.x;
    const T *p = y + n * w.columns;
    T *out = dx + n * w.columns;
    int64_t label = label_of(w, n) < 0 ? -1 : label_of(w, n) - w.first;
    double others = 0;

    if (w.parts > 0 && w.every > 0) { // the parts say the smoothed target's logit
        if (label >= 0 && label < w.classes) others = 1 - (double)widen(p[label]);
    } else if (w.parts > 0) {
        loss_row of = put_together(w, n);

        others = 1 - exp(of.label - of.greatest) / of.sum;
    } else {
        each_column(p, w.columns, [&](int64_t i, float value) {
            if (i != label) others += (double)value;
        });
        others = block_sum(others);
    }
    __syncthreads(); // dx may be y
    row_gradient slope(w, n, others);
    map_columns(p, out, w.columns,
                [&](int64_t i, float value) { return i < w.classes ? slope.at(i, value) : 0.0f; });
}

cudaError_t loss_stats(ghp_launch launch, const ghp_local *local, const ghp_kernel_arguments *args)
{
    loss_work w = loss_work_of(local, args);

    if (w.rows == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(loss_stats_kernel<T>, (unsigned)w.rows, loss_threads(w.columns), 0, launch.stream,
                w, (const T *)args->at.x[0]);
    });
}

cudaError_t loss_forward(ghp_launch launch, const ghp_local *local,
                         const ghp_kernel_arguments *args)
{
    loss_work w = loss_work_of(local, args);
    row_result *results = (row_result *)args->at.scratch;

    if (w.rows == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(loss_forward_kernel<T>, (unsigned)w.rows, loss_threads(w.columns), 0, launch.stream,
                w, (const T *)args->at.x[0], (T *)args->at.y, launch.gradient, results);
        enqueue(metrics_kernel, 1, kThreads, 0, launch.stream, w.rows, results, args->at.metrics);
    });
}

cudaError_t loss_backward(ghp_launch launch, const ghp_local *local,
                          const ghp_kernel_arguments *args)
{
    loss_work w = loss_work_of(local, args);

    if (w.rows == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(loss_back_kernel<T>, (unsigned)w.rows, loss_threads(w.columns), 0, launch.stream, w,
                (const T *)args->at.y, (T *)args->at.dx[0]);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_loss[] = {
    {GHP_OP_SOFTMAX_CE, GHP_PASS_STATS, loss_stats, nullptr},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, loss_forward, loss_scratch},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_BACKWARD_DATA, loss_backward, nullptr},
    {},
};
