// executor/backend/cuda/kernels/window.cuh - windows of pools and convolutions: the inputs of an output's, and the
// windows that an input is in.
//
// Job: ghp_pool_job or ghp_direct_job, which say alike how windows lie. Both walk in the order of places, rows first,
// so sums keep their order.
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_WINDOW_CUH
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_WINDOW_CUH

#include "executor/backend/cuda/kernels/common.cuh"

namespace
{

// Which output row (or column) has place r of its window at input position i; -1: none.
__device__ __forceinline__ int64_t output_at(int64_t i, int64_t r, int64_t pad, int64_t dilation,
                                             int64_t stride, int64_t outputs)
{
    int64_t corner = i + pad - r * dilation;

    if (corner < 0 || corner % stride != 0 || corner / stride >= outputs) return -1;
    return corner / stride;
}

// take(place, pixel) for each input pixel in the window of output `out`; both count over the whole batch.
template <typename Job, typename Take>
__device__ __forceinline__ void each_input(const Job &j, int64_t out, Take take)
{
    int64_t q = out % j.q, p = out / j.q % j.p, sample = out / j.q / j.p;

    for (int64_t r = 0; r < j.r; r++) {
        int64_t y = p * j.stride_h - j.pad_top + r * j.dilation_h;

        if (y < 0 || y >= j.h) continue;
        for (int64_t s = 0; s < j.s; s++) {
            int64_t x = q * j.stride_w - j.pad_left + s * j.dilation_w;

            if (x < 0 || x >= j.w) continue;
            take(r * j.s + s, (sample * j.h + y) * j.w + x);
        }
    }
}

struct window {       // that an input pixel is in
    int64_t place;    // of the pixel in it
    int64_t p, q, at; // its output, `at` counted over the whole batch
};

// take(window) for each that input pixel `in` is in.
template <typename Job, typename Take>
__device__ __forceinline__ void each_window(const Job &j, int64_t in, Take take)
{
    int64_t x = in % j.w, y = in / j.w % j.h, sample = in / j.w / j.h;

    for (int64_t r = 0; r < j.r; r++) {
        int64_t p = output_at(y, r, j.pad_top, j.dilation_h, j.stride_h, j.p);

        if (p < 0) continue;
        for (int64_t s = 0; s < j.s; s++) {
            int64_t q = output_at(x, s, j.pad_left, j.dilation_w, j.stride_w, j.q);

            if (q < 0) continue;
            take(window{r * j.s + s, p, q, (sample * j.p + p) * j.q + q});
        }
    }
}

} // namespace

#endif
