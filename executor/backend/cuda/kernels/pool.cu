// executor/backend/cuda/kernels/pool.cu - max and average pools; a thread makes one output (or input gradient) of V
// channels. See kernels/kernels.h.
//
// A max pool keeps which place of its window was greatest (the first of equals), counted over the whole window; the
// last value of the type says that the window held nothing but padding, or nothing that counts. Gradients are
// gathered: each input pixel asks the windows that it is in, so nothing is added by two threads.
#include "executor/backend/cuda/kernels/window.cuh"

namespace
{

constexpr int kNoArgmax = -1;

template <typename P, int V>
__device__ __forceinline__ void store_argmax(P *argmax, int64_t at, const int (&from)[V])
{
    Vector<P, V> x;

#pragma unroll
    for (int j = 0; j < V; j++)
        x.v[j] = (P)from[j];
    *reinterpret_cast<Vector<P, V> *>(argmax + at) = x;
}

template <typename T, typename P, int V> __global__ void max_kernel(ghp_pool_job j)
{
    int64_t columns = j.c / V, n = j.n * j.p * j.q * columns;

    for (int64_t g = first_item(); g < n; g += item_stride()) {
        int64_t channel = g % columns * V, out = g / columns;
        float best[V];
        int argmax[V];

#pragma unroll
        for (int i = 0; i < V; i++) {
            best[i] = 0;
            argmax[i] = kNoArgmax;
        }
        each_input(j, out, [&](int64_t here, int64_t in) {
            float value[V];

            load<T, V>((const T *)j.x, in * j.c + channel, value);
#pragma unroll
            for (int i = 0; i < V; i++)
                if (argmax[i] == kNoArgmax || value[i] > best[i]) {
                    best[i] = value[i];
                    argmax[i] = (int)here;
                }
        });
        store<T, V>((T *)j.y, out * j.c + channel, best);
#pragma unroll
        for (int i = 0; i < V; i++)
            if (j.masked && !(best[i] > 0)) argmax[i] = kNoArgmax;
        if (j.argmax != nullptr) store_argmax<P, V>((P *)j.argmax, out * j.c + channel, argmax);
    }
}

template <typename T, typename P, int V> __global__ void max_back_kernel(ghp_pool_job j)
{
    int64_t columns = j.c / V, n = j.n * j.h * j.w * columns;

    for (int64_t g = first_item(); g < n; g += item_stride()) {
        int64_t channel = g % columns * V, in = g / columns;
        float sum[V];

#pragma unroll
        for (int i = 0; i < V; i++)
            sum[i] = 0;
        each_window(j, in, [&](const window &w) {
            int64_t at = w.at * j.c + channel;
            Vector<P, V> argmax = *reinterpret_cast<const Vector<P, V> *>((const P *)j.argmax + at);
            float dy[V];

            load<T, V>((const T *)j.dy, at, dy);
#pragma unroll
            for (int i = 0; i < V; i++)
                if (argmax.v[i] == (P)w.place) sum[i] += dy[i];
        });
        store<T, V>((T *)j.dx, in * j.c + channel, sum);
    }
}

// Places of a window that lie inside the image, in one direction: those below `places` whose position is in 0 .. size
// - 1.
__device__ __forceinline__ int64_t inside(int64_t corner, int64_t dilation, int64_t argmax,
                                          int64_t size)
{
    int64_t first = corner < 0 ? (-corner + dilation - 1) / dilation : 0;
    int64_t end = corner < size ? (size - corner + dilation - 1) / dilation : 0;

    if (end > argmax) end = argmax;
    return end > first ? end - first : 0;
}

// One over the number of places that count for an output.
__device__ __forceinline__ float mean_scale(const ghp_pool_job &j, int64_t p, int64_t q)
{
    int64_t down = inside(p * j.stride_h - j.pad_top, j.dilation_h, j.r, j.h);
    int64_t across = inside(q * j.stride_w - j.pad_left, j.dilation_w, j.s, j.w);

    if (down * across == 0) return 0;
    return (float)(1.0 / (double)(j.count_pad ? j.r * j.s : down * across));
}

template <typename T, int V> __global__ void avg_kernel(ghp_pool_job j)
{
    int64_t columns = j.c / V, n = j.n * j.p * j.q * columns;

    for (int64_t g = first_item(); g < n; g += item_stride()) {
        int64_t channel = g % columns * V, out = g / columns;
        float sum[V], scale = mean_scale(j, out / j.q % j.p, out % j.q);

#pragma unroll
        for (int i = 0; i < V; i++)
            sum[i] = 0;
        each_input(j, out, [&](int64_t, int64_t in) {
            float value[V];

            load<T, V>((const T *)j.x, in * j.c + channel, value);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum[i] += value[i];
        });
#pragma unroll
        for (int i = 0; i < V; i++)
            sum[i] *= scale;
        store<T, V>((T *)j.y, out * j.c + channel, sum);
    }
}

template <typename T, int V> __global__ void avg_back_kernel(ghp_pool_job j)
{
    int64_t columns = j.c / V, n = j.n * j.h * j.w * columns;

    for (int64_t g = first_item(); g < n; g += item_stride()) {
        int64_t channel = g % columns * V, in = g / columns;
        float sum[V];

#pragma unroll
        for (int i = 0; i < V; i++)
            sum[i] = 0;
        each_window(j, in, [&](const window &w) {
            float dy[V], scale = mean_scale(j, w.p, w.q);

            load<T, V>((const T *)j.dy, w.at * j.c + channel, dy);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum[i] += dy[i] * scale;
        });
        store<T, V>((T *)j.dx, in * j.c + channel, sum);
    }
}

// Byte places where the window allows, and vectors where the channels do.
template <typename T, typename P, int V>
void launch_max(cudaStream_t stream, const ghp_pool_job *j, bool backward)
{
    int64_t out = j->n * j->p * j->q * j->c / V, in = j->n * j->h * j->w * j->c / V;

    if (backward)
        enqueue(max_back_kernel<T, P, V>, blocks_for(in), kThreads, 0, stream, *j);
    else
        enqueue(max_kernel<T, P, V>, blocks_for(out), kThreads, 0, stream, *j);
}

cudaError_t launch_max_any(struct ghp_launch launch, const ghp_pool_job *job, bool backward)
{
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;
        constexpr int V = full_width<T>;

        if (job->r * job->s > 255)
            launch_max<T, int32_t, 1>(launch.stream, job, backward);
        else if (job->c % V == 0)
            launch_max<T, uint8_t, V>(launch.stream, job, backward);
        else
            launch_max<T, uint8_t, 1>(launch.stream, job, backward);
    });
}

} // namespace

extern "C" cudaError_t ghp_launch_max_pool(struct ghp_launch launch, const struct ghp_pool_job *job)
{
    return launch_max_any(launch, job, false);
}

extern "C" cudaError_t ghp_launch_max_pool_back(struct ghp_launch launch,
                                                const struct ghp_pool_job *job)
{
    return launch_max_any(launch, job, true);
}

extern "C" cudaError_t ghp_launch_avg_pool(struct ghp_launch launch, const struct ghp_pool_job *job)
{
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;
        constexpr int V = full_width<T>;
        int64_t n = job->n * job->p * job->q * job->c;

        if (job->c % V == 0)
            enqueue(avg_kernel<T, V>, blocks_for(n / V), kThreads, 0, launch.stream, *job);
        else
            enqueue(avg_kernel<T, 1>, blocks_for(n), kThreads, 0, launch.stream, *job);
    });
}

extern "C" cudaError_t ghp_launch_avg_pool_back(struct ghp_launch launch,
                                                const struct ghp_pool_job *job)
{
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;
        constexpr int V = full_width<T>;
        int64_t n = job->n * job->h * job->w * job->c;

        if (job->c % V == 0)
            enqueue(avg_back_kernel<T, V>, blocks_for(n / V), kThreads, 0, launch.stream, *job);
        else
            enqueue(avg_back_kernel<T, 1>, blocks_for(n), kThreads, 0, launch.stream, *job);
    });
}
