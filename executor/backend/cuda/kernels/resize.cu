// executor/backend/cuda/kernels/resize.cu - resize: a thread makes one output, or one input's gradient, which is
// gathered from the outputs that it has a part in, so that nothing is added by two threads.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

struct resize_axis {
    enum ghp_resize mode;
    int64_t in, out;
};

struct resize_job {
    int64_t n, c;
    resize_axis rows, columns;
};

struct taps { // input pixels of an output: each has the weight `each`, of a pair the second has `second`
    int64_t first, n;
    float each, second;
    bool pair;

    __device__ float weight(int64_t j) const
    {
        return pair && j > first ? second : each;
    }
};

__device__ taps taps_of(resize_axis axis, int64_t i)
{
    double last = (double)(axis.in - 1), at;
    taps t = {i * axis.in / axis.out, 1, 1.0f, 0.0f, false};

    if (axis.mode == GHP_RESIZE_NEAREST) return t;
    if (axis.mode == GHP_RESIZE_AREA) {
        t.n = ceil_div((i + 1) * axis.in, axis.out) - t.first;
        t.each = 1.0f / (float)t.n;
        return t;
    }
    at = axis.mode == GHP_RESIZE_LINEAR
             ? ((double)i + 0.5) * (double)axis.in / (double)axis.out - 0.5
         : axis.out > 1 ? (double)i * last / (double)(axis.out - 1)
                        : 0;
    at = at < 0 ? 0 : at > last ? last : at;
    t.first = (int64_t)at;
    if (t.first == axis.in - 1) return t;
    t.n = 2;
    t.pair = true;
    t.second = (float)(at - (double)t.first);
    t.each = (float)(1.0 - (at - (double)t.first));
    return t;
}

// An output before which input pixel j has no weight.
__device__ int64_t low_of(resize_axis axis, int64_t j)
{
    int64_t by_size = (j - 1) * axis.out / axis.in - 2, low = 0;

    if (axis.in > 1) low = (j - 1) * (axis.out - 1) / (axis.in - 1) - 2;
    if (by_size < low) low = by_size;
    return low > 0 ? low : 0;
}

template <typename T> __global__ void resize_kernel(resize_job j, const T *x, T *y)
{
    int64_t p = j.rows.out, q = j.columns.out;

    for (int64_t item = first_item(); item < j.n * p * q * j.c; item += item_stride()) {
        int64_t out = item / j.c, sample = out / q / p;
        taps down = taps_of(j.rows, out / q % p), across = taps_of(j.columns, out % q);
        float sum = 0;

        for (int64_t h = down.first; h < down.first + down.n; h++)
            for (int64_t w = across.first; w < across.first + across.n; w++)
                sum += down.weight(h) * across.weight(w) *
                       widen(x[((sample * j.rows.in + h) * j.columns.in + w) * j.c + item % j.c]);
        y[item] = narrow<T>(sum);
    }
}

template <typename T> __global__ void resize_data_kernel(resize_job j, const T *dy, T *dx)
{
    int64_t rows = j.rows.in, columns = j.columns.in;

    for (int64_t item = first_item(); item < j.n * rows * columns * j.c; item += item_stride()) {
        int64_t in = item / j.c, sample = in / columns / rows, h = in / columns % rows,
                w = in % columns;
        float sum = 0;

        for (int64_t p = low_of(j.rows, h); p < j.rows.out; p++) {
            taps down = taps_of(j.rows, p);

            if (down.first > h) break;
            if (down.first + down.n <= h) continue;
            for (int64_t q = low_of(j.columns, w); q < j.columns.out; q++) {
                taps across = taps_of(j.columns, q);

                if (across.first > w) break;
                if (across.first + across.n <= w) continue;
                sum += down.weight(h) * across.weight(w) *
                       widen(dy[((sample * j.rows.out + p) * j.columns.out + q) * j.c +
                                item % j.c]);
            }
        }
        dx[item] = narrow<T>(sum);
    }
}

resize_job job_of(const struct ghp_local *l)
{
    return {l->n, l->c, {l->resize, l->h, l->p}, {l->resize, l->w, l->q}};
}

cudaError_t resize_forward(struct ghp_launch launch, const struct ghp_local *local,
                           const struct ghp_kernel_arguments *args)
{
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(resize_kernel<T>, blocks_for(ghp_local_out_elements(local)), kThreads, 0,
                launch.stream, job_of(local), (const T *)args->at.x[0], (T *)args->at.y);
    });
}

cudaError_t resize_data(struct ghp_launch launch, const struct ghp_local *local,
                        const struct ghp_kernel_arguments *args)
{
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(resize_data_kernel<T>, blocks_for(ghp_local_in_elements(local)), kThreads, 0,
                launch.stream, job_of(local), (const T *)args->at.dy, (T *)args->at.dx[0]);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_resize[] = {
    {GHP_OP_RESIZE, GHP_PASS_FORWARD, resize_forward, nullptr},
    {GHP_OP_RESIZE, GHP_PASS_BACKWARD_DATA, resize_data, nullptr},
    {},
};
