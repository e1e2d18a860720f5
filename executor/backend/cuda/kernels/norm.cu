// executor/backend/cuda/kernels/norm.cu - sums over channels, batch norm in split passes, local response norm. See
// kernels/kernels.h.
//
// A sum over rows runs in two steps: blocks of threads add up their rows, sixteen at a time in float and these sums in
// double, into a row of scratch each; then the rows of scratch are added in order.
#include "executor/backend/cuda/kernels/norm.cuh"

namespace
{

constexpr int kChunkRows = 16;    // added in float
constexpr int kRowsOfBlock = 128; // the least of a block
constexpr int kMostParts = 512;   // blocks over all tiles of channels

// How [rows][columns] is tiled, columns counted in vectors: the same on every device.
struct tiling {
    unsigned threads_x, threads_y;
    unsigned tiles, parts; // blocks across channels and down rows
};

tiling tiling_of(int64_t rows, int64_t columns)
{
    tiling t = {32, 0, 0, 0};
    int64_t parts, most;

    while (t.threads_x > 1 && t.threads_x / 2 >= columns)
        t.threads_x /= 2;
    t.threads_y = kThreads / t.threads_x;
    t.tiles = (unsigned)ceil_div(columns, t.threads_x);
    most = ceil_div(kMostParts, t.tiles);
    parts = ceil_div(rows, kRowsOfBlock);
    t.parts = (unsigned)(parts < 1 ? 1 : parts > most ? most : parts);
    return t;
}

// What a sum needs of a row: two terms a channel. `at` is the first of V channels, which begin at `column`.
struct sum_inputs {
    const void *x, *dy;
    const float *shift, *mean, *inverse, *gamma, *beta;
};

constexpr __host__ __device__ bool is_back(int what)
{
    return what == GHP_SUM_BACK_STATS || what == GHP_SUM_BACK_MASKED;
}

constexpr __host__ __device__ bool is_of_x(int what)
{
    return what == GHP_SUM_STATS || what == GHP_SUM_SQUARES;
}

// Numbers of a thread's channels that stay the same from row to row.
template <int V> struct channel {
    float a[V], b[V], scale[V], beta[V];
};

// A normalised number, the same in every pass.
__device__ __forceinline__ float normed(float x, float mean, float scale, float beta)
{
    return fmaf(x - mean, scale, beta);
}

// What a ReLU after a batch norm lets through of dy. What the forward pass stored is made again.
template <typename T>
__device__ __forceinline__ float let_through(float dy, float x, float mean, float scale, float beta)
{
    return widen(narrow<T>(normed(x, mean, scale, beta))) > 0 ? dy : 0;
}

template <int WHAT, typename T, int V>
__device__ __forceinline__ void begin_channel(const sum_inputs &in, int64_t column, channel<V> &k)
{
    if (WHAT == GHP_SUM_STATS) load<float, V>(in.shift, column, k.a);
    if (WHAT == GHP_SUM_SQUARES) {
#pragma unroll
        for (int j = 0; j < V; j++)
            k.a[j] = 0;
    }
    if (is_back(WHAT)) {
        load<float, V>(in.mean, column, k.a);
        load<float, V>(in.inverse, column, k.b);
    }
    if (WHAT == GHP_SUM_BACK_MASKED) {
        load<float, V>(in.gamma, column, k.scale);
        load<float, V>(in.beta, column, k.beta);
#pragma unroll
        for (int j = 0; j < V; j++)
            k.scale[j] *= k.b[j];
    }
}

template <int WHAT, typename T, int V>
__device__ __forceinline__ void add_row(const sum_inputs &in, int64_t at, const channel<V> &k,
                                        float (&first)[V], float (&second)[V])
{
    float x[V], g[V];

    if (is_of_x(WHAT)) {
        load<T, V>((const T *)in.x, at, x);
#pragma unroll
        for (int j = 0; j < V; j++) {
            float d = x[j] - k.a[j];

            first[j] += d;
            second[j] += d * d;
        }
        return;
    }
    load<T, V>((const T *)in.dy, at, g);
    if (is_back(WHAT)) {
        load<T, V>((const T *)in.x, at, x);
#pragma unroll
        for (int j = 0; j < V; j++) {
            float normal = (x[j] - k.a[j]) * k.b[j];

            if (WHAT == GHP_SUM_BACK_MASKED)
                g[j] = let_through<T>(g[j], x[j], k.a[j], k.scale[j], k.beta[j]);
            second[j] += g[j] * normal;
        }
    }
#pragma unroll
    for (int j = 0; j < V; j++)
        first[j] += g[j];
}

constexpr __host__ __device__ int sums_of(int what)
{
    return is_of_x(what) || is_back(what) ? 2 : 1;
}

// parts[block y][2][c]
template <int WHAT, typename T, int V>
__global__ void sum_kernel(int64_t rows, int64_t c, sum_inputs in, double *parts)
{
    constexpr int SUMS = sums_of(WHAT);
    GHP_DYNAMIC_SHARED(double, shared); // [threads y][SUMS][threads x][V]
    int64_t column = own_column<V>();
    bool inside = column < c;
    double total[SUMS][V];
    channel<V> k;

#pragma unroll
    for (int s = 0; s < SUMS; s++)
#pragma unroll
        for (int j = 0; j < V; j++)
            total[s][j] = 0;
    if (inside) begin_channel<WHAT, T, V>(in, column, k);
    int64_t step = (int64_t)gridDim.y * blockDim.y;
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; inside && row < rows;) {
        float first[V], second[V];

#pragma unroll
        for (int j = 0; j < V; j++)
            first[j] = second[j] = 0;
        for (int i = 0; i < kChunkRows && row < rows; i++, row += step)
            add_row<WHAT, T, V>(in, row * c + column, k, first, second);
#pragma unroll
        for (int j = 0; j < V; j++) {
            total[0][j] += (double)first[j];
            if (SUMS == 2) total[SUMS - 1][j] += (double)second[j];
        }
    }
    int width = blockDim.x * V;
#pragma unroll
    for (int s = 0; s < SUMS; s++)
#pragma unroll
        for (int j = 0; j < V; j++)
            shared[(threadIdx.y * SUMS + s) * width + threadIdx.x * V + j] = total[s][j];
    __syncthreads();
    // each thread adds one column of one sum over the threads below each other, in order
    int me = threadIdx.y * blockDim.x + threadIdx.x;
    for (int i = me; i < SUMS * width; i += kThreads) {
        int s = i / width, offset = i % width;
        int64_t at = (int64_t)blockIdx.x * width + offset;
        double sum = 0;

        if (at >= c) continue;
        for (unsigned y = 0; y < blockDim.y; y++)
            sum += shared[(y * SUMS + s) * width + offset];
        parts[((int64_t)blockIdx.y * SUMS + s) * c + at] = sum;
    }
}

// out[i] = sum of parts[p][i] in order of p; eight threads share a column.
template <typename To>
__global__ void finish_kernel(int64_t n, int parts, const double *from, To *to)
{
    __shared__ double of_lane[8][32];
    int64_t i = (int64_t)blockIdx.x * 32 + threadIdx.x;
    double sum = 0;

    for (int p = threadIdx.y; p < parts && i < n; p += 8)
        sum += from[p * n + i];
    of_lane[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || i >= n) return;
    for (int lane = 1; lane < 8; lane++)
        sum += of_lane[lane][threadIdx.x];
    to[i] = (To)sum;
}

template <int WHAT, typename T, int V>
void launch_sum_width(cudaStream_t stream, const ghp_sum_job *j)
{
    constexpr int SUMS = sums_of(WHAT);
    tiling t = tiling_of(j->rows, j->c / V);
    sum_inputs in = {j->x, j->dy, j->shift, j->mean, j->inverse, j->gamma, j->beta};
    size_t shared = (size_t)kThreads * SUMS * V * sizeof(double);
    int64_t n = SUMS * j->c;
    dim3 threads(32, 8);
    unsigned blocks = (unsigned)ceil_div(n, 32);

    enqueue(sum_kernel<WHAT, T, V>, dim3(t.tiles, t.parts), dim3(t.threads_x, t.threads_y), shared,
            stream, j->rows, j->c, in, (double *)j->scratch);
    if (SUMS == 2 && WHAT != GHP_SUM_SQUARES)
        enqueue(finish_kernel<double>, blocks, threads, 0, stream, n, (int)t.parts,
                (const double *)j->scratch, (double *)j->out);
    else
        enqueue(finish_kernel<float>, blocks, threads, 0, stream, n, (int)t.parts,
                (const double *)j->scratch, (float *)j->out);
}

template <int WHAT> cudaError_t launch_sum(struct ghp_launch launch, const ghp_sum_job *job)
{
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        if (job->c % full_width<T> == 0)
            launch_sum_width<WHAT, T, full_width<T>>(launch.stream, job);
        else
            launch_sum_width<WHAT, T, 1>(launch.stream, job);
    });
}

} // namespace

extern "C" int64_t ghp_sum_scratch(int64_t rows, int64_t c)
{
    int64_t most = 0;

    for (int width = 1; width <= 8; width *= 2) { // whichever the type asks for
        int64_t parts = c % width == 0 ? tiling_of(rows, c / width).parts : 0;

        if (parts > most) most = parts;
    }
    return most * 2 * c * (int64_t)sizeof(double);
}

extern "C" cudaError_t ghp_launch_sum(struct ghp_launch launch, const struct ghp_sum_job *job)
{
    switch (job->what) {
    case GHP_SUM_BIAS: return launch_sum<GHP_SUM_BIAS>(launch, job);
    case GHP_SUM_STATS: return launch_sum<GHP_SUM_STATS>(launch, job);
    case GHP_SUM_BACK_STATS: return launch_sum<GHP_SUM_BACK_STATS>(launch, job);
    case GHP_SUM_BACK_MASKED: return launch_sum<GHP_SUM_BACK_MASKED>(launch, job);
    case GHP_SUM_SQUARES: return launch_sum<GHP_SUM_SQUARES>(launch, job);
    case GHP_SUM_COUNT: break;
    }
    return cudaErrorInvalidValue;
}

// ---- batch norm ----

namespace
{

// Training: of the sums over the batch.
__global__ void norm_prepare_kernel(ghp_batch_norm_job j)
{
    int64_t i = first_item();

    if (i < j.c) keep_statistics(j, i, j.stats[i], j.stats[j.c + i]);
}

// dx = a dy - b - (x - mean) e with a, b, e in scratch.
__global__ void norm_data_prepare_kernel(ghp_batch_norm_job j)
{
    int64_t i = first_item(), c = j.c;

    if (i >= c) return;
    double inverse = (double)j.saved[c + i], a = (double)j.gamma[i] * inverse;
    j.scratch[i] = (float)a;
    j.scratch[c + i] = (float)(a * j.stats[i] / j.count);
    j.scratch[2 * c + i] = (float)(a * inverse * j.stats[c + i] / j.count);
}

// Of V channels, as y = (x - mean) scale + beta.
template <int V>
__device__ __forceinline__ void begin_norm(const ghp_batch_norm_job &j, int64_t column,
                                           float (&mean)[V], float (&scale)[V], float (&beta)[V])
{
    bool running = j.stats == nullptr;
    float gamma[V];

    load<float, V>(running ? j.running_mean : j.saved, column, mean);
    load<float, V>(running ? j.running_variance : j.saved + j.c, column, scale);
    load<float, V>(j.gamma, column, gamma);
    load<float, V>(j.beta, column, beta);
#pragma unroll
    for (int i = 0; i < V; i++) {
        if (running) scale[i] = (float)(1 / sqrt((double)scale[i] + j.epsilon));
        scale[i] *= gamma[i];
        if (j.linear) mean[i] = beta[i] = 0;
    }
}

template <typename T, int V> __global__ void norm_kernel(ghp_batch_norm_job j)
{
    int64_t c = j.c, column = own_column<V>();
    float mean[V], scale[V], beta[V];

    if (column >= c) return;
    begin_norm<V>(j, column, mean, scale, beta);
    each_own_row(j.rows, [&](int64_t row) {
        float x[V], other[V];

        load<T, V>((const T *)j.x, row * c + column, x);
        if (j.other != nullptr) load<T, V>((const T *)j.other, row * c + column, other);
#pragma unroll
        for (int i = 0; i < V; i++) {
            x[i] = normed(x[i], mean[i], scale[i], beta[i]);
            if (j.other != nullptr) x[i] = widen(narrow<T>(x[i])) + other[i];
            if (j.relu) x[i] = x[i] > 0 ? x[i] : 0;
        }
        store<T, V>((T *)j.y, row * c + column, x);
    });
}

// dx = a dy - b - (x - mean) e, by the coefficients in scratch.
template <typename T, int V> __global__ void norm_data_kernel(ghp_batch_norm_job j)
{
    int64_t c = j.c, column = own_column<V>();
    float a[V], b[V], e[V], mean[V], scale[V], beta[V];

    if (column >= c) return;
    load<float, V>(j.scratch, column, a);
    load<float, V>(j.scratch + c, column, b);
    load<float, V>(j.scratch + 2 * c, column, e);
    begin_norm<V>(j, column, mean, scale, beta);
    each_own_row(j.rows, [&](int64_t row) {
        float x[V], g[V];

        load<T, V>((const T *)j.x, row * c + column, x);
        load<T, V>((const T *)j.dy, row * c + column, g);
#pragma unroll
        for (int i = 0; i < V; i++) {
            if (j.relu) g[i] = let_through<T>(g[i], x[i], mean[i], scale[i], beta[i]);
            x[i] = a[i] * g[i] - b[i] - (x[i] - mean[i]) * e[i];
        }
        store<T, V>((T *)j.dx, row * c + column, x);
    });
}

template <typename T, int V>
void launch_norm_width(cudaStream_t stream, const ghp_batch_norm_job *job, bool back)
{
    tiling t = tiling_of(job->rows, job->c / V);
    int64_t down = ceil_div(job->rows, (int64_t)t.threads_y * 4), most = ceil_div(4096, t.tiles);

    if (down > most) down = most;
    dim3 blocks(t.tiles, (unsigned)(down < 1 ? 1 : down)), threads(t.threads_x, t.threads_y);
    if (back)
        enqueue(norm_data_kernel<T, V>, blocks, threads, 0, stream, *job);
    else
        enqueue(norm_kernel<T, V>, blocks, threads, 0, stream, *job);
}

cudaError_t launch_norm(struct ghp_launch launch, const ghp_batch_norm_job *job, bool back)
{
    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        if (job->c % full_width<T> == 0)
            launch_norm_width<T, full_width<T>>(launch.stream, job, back);
        else
            launch_norm_width<T, 1>(launch.stream, job, back);
    });
}

__global__ void norm_weight_kernel(int64_t c, const double *stats, float *dgamma, float *dbeta)
{
    int64_t i = first_item();

    if (i >= c) return;
    dgamma[i] = stats != nullptr ? (float)stats[c + i] : 0.0f;
    dbeta[i] = stats != nullptr ? (float)stats[i] : 0.0f;
}

} // namespace

extern "C" cudaError_t ghp_launch_norm_forward(struct ghp_launch launch,
                                               const struct ghp_batch_norm_job *job)
{
    if (job->sums != NULL)
        ghp_launch_given_norm(launch, job);
    else if (job->stats != NULL)
        enqueue(norm_prepare_kernel, blocks_for(job->c), kThreads, 0, launch.stream, *job);
    return launch_norm(launch, job, false);
}

extern "C" cudaError_t ghp_launch_norm_data(struct ghp_launch launch,
                                            const struct ghp_batch_norm_job *job)
{
    enqueue(norm_data_prepare_kernel, blocks_for(job->c), kThreads, 0, launch.stream, *job);
    return launch_norm(launch, job, true);
}

extern "C" cudaError_t ghp_launch_norm_weight(cudaStream_t stream, int64_t c, const double *stats,
                                              float *dgamma, float *dbeta)
{
    enqueue(norm_weight_kernel, blocks_for(c), kThreads, 0, stream, c, stats, dgamma, dbeta);
    return cudaGetLastError();
}

// ---- local response norm: a thread an element, its window from the cache ----

namespace
{

__device__ __forceinline__ float power(float scale, float beta)
{
    if (beta == 0.75f) {
        float root = sqrtf(scale);

        return 1.0f / (root * sqrtf(root));
    }
    return powf(scale, -beta);
}

template <typename T> __global__ void lrn_kernel(ghp_lrn_job j)
{
    int64_t n = j.rows * j.c, reach = j.size / 2;

    for (int64_t i = first_item(); i < n; i += item_stride()) {
        int64_t channel = i % j.c, row = i - channel;
        int64_t from = channel > reach ? channel - reach : 0;
        int64_t to = channel + reach < j.c ? channel + reach : j.c - 1;
        float sum = 0;

        for (int64_t k = from; k <= to; k++) {
            float x = widen(((const T *)j.x)[row + k]);

            sum += x * x;
        }
        float scale = j.k + j.alpha * sum;
        if (j.scale != nullptr) j.scale[i] = scale;
        ((T *)j.y)[i] = narrow<T>(widen(((const T *)j.x)[i]) * power(scale, j.beta));
    }
}

template <typename T> __global__ void lrn_back_kernel(ghp_lrn_job j)
{
    int64_t n = j.rows * j.c, reach = j.size / 2;
    float factor = 2.0f * j.alpha * j.beta;

    for (int64_t i = first_item(); i < n; i += item_stride()) {
        int64_t channel = i % j.c, row = i - channel;
        int64_t from = channel > reach ? channel - reach : 0;
        int64_t to = channel + reach < j.c ? channel + reach : j.c - 1;
        float sum = 0;

        for (int64_t k = from; k <= to; k++) {
            float scale = j.scale[row + k];

            sum += widen(((const T *)j.dy)[row + k]) * widen(((const T *)j.x)[row + k]) *
                   power(scale, j.beta) / scale;
        }
        ((T *)j.dx)[i] = narrow<T>(widen(((const T *)j.dy)[i]) * power(j.scale[i], j.beta) -
                                   factor * widen(((const T *)j.x)[i]) * sum);
    }
}

} // namespace

extern "C" cudaError_t ghp_launch_lrn(struct ghp_launch launch, const struct ghp_lrn_job *job)
{
    return by_type(launch, [&](auto type) {
        enqueue(lrn_kernel<decltype(type)>, blocks_for(job->rows * job->c), kThreads, 0,
                launch.stream, *job);
    });
}

extern "C" cudaError_t ghp_launch_lrn_back(struct ghp_launch launch, const struct ghp_lrn_job *job)
{
    return by_type(launch, [&](auto type) {
        enqueue(lrn_back_kernel<decltype(type)>, blocks_for(job->rows * job->c), kThreads, 0,
                launch.stream, *job);
    });
}
