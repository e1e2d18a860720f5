// executor/backend/cuda/kernels/elementwise.cu - sums and products, bias, dropout. See kernels/kernels.h.
#include "executor/backend/cuda/kernels/elementwise.cuh"
#include "executor/backend/cuda/kernels/philox.cuh"

// ---- element by element ----

namespace
{

struct sum_of {
    __device__ float operator()(float a, float b) const
    {
        return a + b;
    }
};

struct product_of {
    __device__ float operator()(float a, float b) const
    {
        return a * b;
    }
};

struct relu_of_sum {
    __device__ float operator()(float a, float b) const
    {
        return a + b > 0 ? a + b : 0;
    }
};

} // namespace

extern "C" cudaError_t ghp_launch_elementwise(struct ghp_launch launch,
                                              const struct ghp_elementwise_job *job)
{
    switch (job->what) {
    case GHP_ELEMENTWISE_ADD: return map(launch, job->n, job->a, job->b, job->out, sum_of{});
    case GHP_ELEMENTWISE_MUL: return map(launch, job->n, job->a, job->b, job->out, product_of{});
    case GHP_ELEMENTWISE_ADD_RELU:
        return map(launch, job->n, job->a, job->b, job->out, relu_of_sum{});
    }
    return cudaErrorInvalidValue;
}

// ---- sums ----

namespace
{

__global__ void add_doubles_kernel(int64_t n, const double *from, double *to)
{
    for (int64_t i = first_item(); i < n; i += item_stride())
        to[i] += from[i];
}

__device__ __forceinline__ float masked(float to, float from, float y)
{
    return y > 0 ? to + from : 0;
}

template <typename T> __global__ void masked_kernel(int64_t n, T *to, const T *from, const T *y)
{
    constexpr int V = full_width<T>;
    int64_t groups = n / V;

    for (int64_t g = first_item(); g < groups; g += item_stride()) {
        float a[V], b[V], mask[V];

        load<T, V>(to, g * V, a);
        load<T, V>(from, g * V, b);
        load<T, V>(y, g * V, mask);
#pragma unroll
        for (int j = 0; j < V; j++)
            a[j] = masked(a[j], b[j], mask[j]);
        store<T, V>(to, g * V, a);
    }
    for (int64_t i = groups * V + first_item(); i < n; i += item_stride())
        to[i] = narrow<T>(masked(widen(to[i]), widen(from[i]), widen(y[i])));
}

} // namespace

extern "C" cudaError_t ghp_launch_add_doubles(cudaStream_t stream, int64_t n, const double *from,
                                              double *to)
{
    if (n == 0) return cudaSuccess;
    enqueue(add_doubles_kernel, blocks_for(n), kThreads, 0, stream, n, from, to);
    return cudaGetLastError();
}

extern "C" cudaError_t ghp_launch_masked_sum(struct ghp_launch launch, int64_t n, void *to,
                                             const void *from, const void *y)
{
    if (n == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        enqueue(masked_kernel<T>, blocks_for(ceil_div(n, full_width<T>)), kThreads, 0,
                launch.stream, n, (T *)to, (const T *)from, (const T *)y);
    });
}

// ---- bias ----

namespace
{

template <typename T, int V> __global__ void bias_kernel(ghp_bias_job job)
{
    int64_t c = job.c, column = own_column<V>();
    float bias[V];

    if (column >= c) return;
#pragma unroll
    for (int j = 0; j < V; j++)
        bias[j] = 0;
    if (job.b != nullptr) load<float, V>(job.b, column, bias);
    each_own_row(job.rows, [&](int64_t row) {
        float z[V];

        load<T, V>((const T *)job.x, row * c + column, z);
#pragma unroll
        for (int j = 0; j < V; j++) {
            z[j] += bias[j];
            if (job.relu) z[j] = z[j] > 0 ? z[j] : 0;
        }
        store<T, V>((T *)job.y, row * c + column, z);
    });
}

struct tile { // of [rows][c]: threads and blocks
    dim3 threads, blocks;
};

tile tile_of(int64_t rows, int64_t columns)
{
    unsigned x = 32, most = 2048;
    int64_t across, down;
    tile t;

    while (x > 1 && x / 2 >= columns)
        x /= 2;
    t.threads = dim3(x, kThreads / x);
    across = ceil_div(columns, x);
    down = ceil_div(rows, t.threads.y * 4);
    if (down > ceil_div(most, across)) down = ceil_div(most, across);
    t.blocks = dim3((unsigned)across, (unsigned)(down < 1 ? 1 : down));
    return t;
}

template <typename T, int V>
void launch_bias_width(cudaStream_t stream, const struct ghp_bias_job *job)
{
    tile t = tile_of(job->rows, job->c / V);

    enqueue(bias_kernel<T, V>, t.blocks, t.threads, 0, stream, *job);
}

} // namespace

extern "C" cudaError_t ghp_launch_bias(struct ghp_launch launch, const struct ghp_bias_job *job)
{
    if (job->rows * job->c == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        if (job->c % full_width<T> == 0)
            launch_bias_width<T, full_width<T>>(launch.stream, job);
        else
            launch_bias_width<T, 1>(launch.stream, job);
    });
}

// ---- numbers of another width ----

namespace
{

template <typename From, typename To>
__device__ __forceinline__ void convert(int64_t n, const From *from, To *to)
{
    constexpr int V = 8;
    int64_t groups = n / V;

    for (int64_t g = first_item(); g < groups; g += item_stride()) {
        float x[V];

        load<From, V>(from, g * V, x);
        store<To, V>(to, g * V, x);
    }
    for (int64_t i = groups * V + first_item(); i < n; i += item_stride())
        to[i] = narrow<To>(widen(from[i]));
}

template <typename From, typename To>
__global__ void convert_kernel(int64_t n, const From *from, To *to)
{
    convert(n, from, to);
}

__global__ void convert_two_kernel(ghp_cast large, ghp_cast small)
{
    convert(large.n, large.from, (bf16 *)large.to);
    convert(small.n, small.from, (bf16 *)small.to);
}

} // namespace

extern "C" cudaError_t ghp_launch_two_to_bf16(cudaStream_t stream, struct ghp_cast large,
                                              struct ghp_cast small)
{
    enqueue(convert_two_kernel, blocks_for(ceil_div(large.n, 8)), kThreads, 0, stream, large,
            small);
    return cudaGetLastError();
}

extern "C" cudaError_t ghp_launch_to_bf16(cudaStream_t stream, int64_t n, const float *from,
                                          void *to)
{
    if (n == 0) return cudaSuccess;
    enqueue(convert_kernel<float, bf16>, blocks_for(ceil_div(n, 8)), kThreads, 0, stream, n, from,
            (bf16 *)to);
    return cudaGetLastError();
}

extern "C" cudaError_t ghp_launch_from_bf16(cudaStream_t stream, int64_t n, const void *from,
                                            float *to)
{
    if (n == 0) return cudaSuccess;
    enqueue(convert_kernel<bf16, float>, blocks_for(ceil_div(n, 8)), kThreads, 0, stream, n,
            (const bf16 *)from, to);
    return cudaGetLastError();
}

// ---- dropout ----

namespace
{

struct masking { // what does not change from element to element
    uint64_t seed;
    uint32_t layer, threshold;
    int samples, channels;
    float scale;
    int64_t pixels, c, global_channels, first_channel, first_pixel, first_sample;
};

// Four channels at once share a block of random numbers; else each element makes its own.
template <typename T, int V>
__global__ void dropout_kernel(int64_t groups, masking m, uint64_t given, const uint64_t *step_at,
                               const T *x, T *y)
{
    uint32_t step = (uint32_t)(step_at != nullptr ? *step_at : given);

    for (int64_t g = first_item(); g < groups; g += item_stride()) {
        int64_t i = g * V, row = i / m.c, channel = i % m.c, sample = row / m.pixels;
        int64_t element = (m.first_pixel + row % m.pixels) * m.global_channels + m.first_channel +
                          channel; // of the whole sample
        if (m.samples) element = 0;
        if (m.channels) element = m.first_channel + channel;
        four random = philox(m.seed, (uint32_t)(element / 4), (uint32_t)(m.first_sample + sample),
                             step, m.layer);
        float z[V];

        load<T, V>(x, i, z);
#pragma unroll
        for (int j = 0; j < V; j++) {
            uint32_t r = V == 4 && !m.samples ? random.v[j] : random.v[element % 4];

            z[j] = r >= m.threshold ? z[j] * m.scale : 0;
        }
        store<T, V>(y, i, z);
    }
}

template <typename T, int V>
void launch_dropout_width(struct ghp_launch launch, const ghp_dropout_job *j)
{
    int64_t groups = j->n * j->pixels * j->c / V;
    masking m = {j->seed,     j->layer, j->threshold, j->samples,         j->channels,
                 j->scale,    j->pixels, j->c,        j->global_channels, j->first_channel,
                 j->first_pixel, j->first_sample};

    enqueue(dropout_kernel<T, V>, blocks_for(groups), kThreads, 0, launch.stream, groups, m,
            j->step, j->step_at, (const T *)j->x, (T *)j->y);
}

} // namespace

extern "C" cudaError_t ghp_launch_dropout(struct ghp_launch launch,
                                          const struct ghp_dropout_job *job)
{
    bool fours = job->c % 4 == 0 && job->global_channels % 4 == 0 && job->first_channel % 4 == 0;

    if (job->n * job->pixels * job->c == 0) return cudaSuccess;
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        if (fours)
            launch_dropout_width<T, 4>(launch, job);
        else
            launch_dropout_width<T, 1>(launch, job);
    });
}

extern "C" void ghp_kernel_philox(uint64_t seed, const uint32_t counter[4], uint32_t out[4])
{
    four made = philox(seed, counter[0], counter[1], counter[2], counter[3]);

    for (int i = 0; i < 4; i++)
        out[i] = made.v[i];
}

// ---- delay ----

namespace
{

__global__ void delay_kernel(int64_t nanoseconds)
{
    int64_t begin = global_nanoseconds();

    while (global_nanoseconds() - begin < nanoseconds)
        pause_thread();
}

} // namespace

extern "C" cudaError_t ghp_launch_delay(cudaStream_t stream, double seconds)
{
    enqueue(delay_kernel, 1, 1, 0, stream, (int64_t)(seconds * 1e9));
    return cudaGetLastError();
}
