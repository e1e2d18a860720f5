// executor/backend/cuda/kernels/attention.cu - attention, plainly: a warp a query, or a warp a key of the gradients of
// keys and values.
//
// A warp takes 32 keys (or queries) at a time, one a lane, for the products, then 32 kWide channels of a head, kWide a
// lane, for the sums; larger heads take several rounds. Maximum and sum of a softmax run along, so that no tensor of
// positions by positions is made. Every sum has one order: the same bits every time.
#include "executor/backend/cuda/kernels/common.cuh"
#include "executor/backend/cuda/kernels/philox.cuh"
#include "executor/backend/cuda/kernels/row.h"

#include "core/model/attention.h" // after row.h, which declares the functions of core as C's

namespace
{

struct attention_job {
    int64_t n, positions, heads, kv_heads, size; // positions of queries; kv_heads of keys and values divide heads
    int64_t keys, offset; // positions of keys and values; of the first query among them
    bool causal;
    int64_t window; // keys that a query sees at most; 0: all before it
    float scale;
    float cap; // of scores; 0: none
    bool drops; // weights, by chance
    uint32_t threshold, layer;
    float kept; // what weights that stay are multiplied by
    uint64_t seed, step;
    const uint64_t *step_at; // in device memory, in place of `step`; or null
    int64_t first_sample, first_head; // among those of all workers
    const void *x[3]; // queries, keys, values
    void *y;
    const void *dy;
    void *dx[3];       // null where not wanted
    float *logarithms; // [n][head][position], of the sums of exponentials; forward may be null
    float *means;      // the same shape, scratch; backward: the sums of y dy
    const int32_t *ids; // [n][keys]; null: all positions are of one document
    int32_t *documents; // the same shape, scratch; -1 of padding
    struct ghp_heads kind;
};

constexpr int kWide = 4, kChannels = 32 * kWide; // of one round
constexpr int kWarps = kThreads / 32;
constexpr float kHidden = -1e30f;

__device__ __forceinline__ int lane_of()
{
    return threadIdx.x % 32;
}

// The warp's number in the grid.
__device__ __forceinline__ int64_t first_warp()
{
    return (int64_t)blockIdx.x * kWarps + threadIdx.x / 32;
}

unsigned warp_blocks(int64_t warps)
{
    int64_t blocks = ceil_div(warps, kWarps);

    return (unsigned)(blocks < kMostBlocks ? blocks : kMostBlocks);
}

// What each lane holds, where all lanes of its warp can read it until the next call.
__device__ __forceinline__ const float *shared_by_warp(float (&room)[kWarps][32], float mine)
{
    float *row = room[threadIdx.x / 32];

    __syncwarp();
    row[lane_of()] = mine;
    __syncwarp();
    return row;
}

template <typename T> __device__ __forceinline__ float dot(int64_t n, const T *a, const T *b)
{
    float sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += widen(a[i]) * widen(b[i]);
    return sum;
}

// A head's row of queries; of keys or values.
template <typename T>
__device__ __forceinline__ const T *row_of(const attention_job &j, const void *tensor, int64_t n,
                                           int64_t position, int64_t head)
{
    return (const T *)tensor + ((n * j.positions + position) * j.heads + head) * j.size;
}

template <typename T>
__device__ __forceinline__ const T *key_row_of(const attention_job &j, const void *tensor, int64_t n,
                                               int64_t position, int64_t kv)
{
    return (const T *)tensor + ((n * j.keys + position) * j.kv_heads + kv) * j.size;
}

// Sample, head of queries, position: the number of a saved logarithm.
struct Query {
    int64_t n, head, position;
};

__device__ __forceinline__ Query query_of(const attention_job &j, int64_t number)
{
    return {number / j.positions / j.heads, number / j.positions % j.heads, number % j.positions};
}

__device__ __forceinline__ int64_t number_of(const attention_job &j, Query q)
{
    return (q.n * j.heads + q.head) * j.positions + q.position;
}

// sum[w] += the sum over rows of their weight times row[channel + 32 w]; rows `stride` apart.
template <typename T>
__device__ __forceinline__ void add_rows(const float *weights, const T *row, int64_t stride, int64_t rows,
                                         int64_t channel, int64_t size, float (&sum)[kWide])
{
    for (int64_t r = 0; r < rows; r++, row += stride)
        for (int w = 0; w < kWide; w++)
            if (channel + 32 * w < size) sum[w] += weights[r] * widen(row[channel + 32 * w]);
}

template <typename T>
__device__ __forceinline__ void put_row(T *row, const float (&sum)[kWide], float factor, int64_t channel,
                                        int64_t size)
{
    for (int w = 0; w < kWide; w++)
        if (channel + 32 * w < size) row[channel + 32 * w] = narrow<T>(sum[w] * factor);
}

// The first key that a query sees, and one after the last.
__device__ __forceinline__ int64_t first_key(const attention_job &j, Query q)
{
    int64_t position = j.offset + q.position;

    return j.window > 0 && position >= j.window ? position + 1 - j.window : 0;
}

__device__ __forceinline__ int64_t end_key(const attention_job &j, Query q)
{
    return j.causal ? j.offset + q.position + 1 : j.keys;
}

// The first query that sees a key, and one after the last.
__device__ __forceinline__ int64_t first_query(const attention_job &j, int64_t key)
{
    return j.causal && key > j.offset ? key - j.offset : 0;
}

__device__ __forceinline__ int64_t end_query(const attention_job &j, int64_t key)
{
    int64_t end = key + j.window - j.offset;

    return j.window > 0 && end < j.positions ? end : j.positions;
}

__device__ __forceinline__ float capped(const attention_job &j, float score)
{
    return j.cap > 0 ? j.cap * tanhf(score / j.cap) : score;
}

// What dropout multiplies the weight of a key by: its random number is its own, numbered as ghp_attention_weight does.
__device__ __forceinline__ float kept_of(const attention_job &j, Query q, int64_t key)
{
    int64_t i = ((j.first_head + q.head) * j.keys + j.offset + q.position) * j.keys + key;
    uint32_t step = (uint32_t)(j.step_at != nullptr ? *j.step_at : j.step);

    if (!j.drops) return 1;
    return philox(j.seed, (uint32_t)(i / 4), (uint32_t)(j.first_sample + q.n), step, j.layer).v[i % 4] >=
                   j.threshold
               ? j.kept
               : 0;
}

// Whether a query sees a key by the tokens.
__device__ __forceinline__ bool is_seen(const attention_job &j, Query q, int64_t key)
{
    const int32_t *documents = j.documents + q.n * j.keys;
    int32_t mine;

    if (j.ids == nullptr) return true;
    mine = documents[j.offset + q.position];
    return mine >= 0 && documents[key] == mine;
}

__device__ __forceinline__ bool is_padding(const attention_job &j, Query q)
{
    return j.ids != nullptr && j.documents[q.n * j.keys + j.offset + q.position] < 0;
}

// One thread a sample.
__global__ void attention_documents_kernel(attention_job j)
{
    for (int64_t n = first_item(); n < j.n; n += item_stride()) {
        int32_t document = 0;

        for (int64_t i = n * j.keys; i < (n + 1) * j.keys; i++) {
            j.documents[i] = j.ids[i] == j.kind.pad_token ? -1 : document;
            document += j.ids[i] == j.kind.end_token;
        }
    }
}

void number_documents(struct ghp_launch launch, const attention_job &job)
{
    if (job.ids != nullptr)
        enqueue(attention_documents_kernel, blocks_for(job.n), kThreads, 0, launch.stream, job);
}

// ---- forward ----

template <typename T> __device__ void forward_round(const attention_job &j, Query q, int64_t channel)
{
    __shared__ float room[kWarps][32];
    const T *x = row_of<T>(j, j.x[0], q.n, q.position, q.head);
    int64_t seen = end_key(j, q), kv = q.head / (j.heads / j.kv_heads);
    int64_t stride = j.kv_heads * j.size;
    float greatest = kHidden, total = 0, sum[kWide] = {};

    for (int64_t first = first_key(j, q); first < seen; first += 32) {
        int64_t rows = seen - first < 32 ? seen - first : 32;
        const T *keys = key_row_of<T>(j, j.x[1], q.n, first, kv);
        const T *values = key_row_of<T>(j, j.x[2], q.n, first, kv);
        float score = lane_of() < rows && is_seen(j, q, first + lane_of()) ? capped(j, j.scale * dot(j.size, x, keys + lane_of() * stride)) : kHidden;
        const float *all = shared_by_warp(room, score);
        float now = greatest;

        for (int64_t r = 0; r < rows; r++)
            now = fmaxf(now, all[r]);
        float factor = expf(greatest - now);
        float weight = expf(score - now);
        all = shared_by_warp(room, weight);
        total *= factor;
        for (int64_t r = 0; r < rows; r++)
            total += all[r];
        if (j.drops)
            all = shared_by_warp(room, lane_of() < rows ? weight * kept_of(j, q, first + lane_of()) : 0);
        for (int w = 0; w < kWide; w++)
            sum[w] *= factor;
        greatest = now;
        add_rows(all, values, stride, rows, channel, j.size, sum);
    }
    put_row((T *)row_of<T>(j, j.y, q.n, q.position, q.head), sum, is_padding(j, q) ? 0 : 1.0f / total, channel,
            j.size);
    if (channel == 0 && j.logarithms != nullptr)
        j.logarithms[number_of(j, q)] = is_padding(j, q) ? 0 : greatest + logf(total);
}

template <typename T> __global__ void attention_kernel(attention_job j)
{
    int64_t queries = j.n * j.heads * j.positions;

    for (int64_t i = first_warp(); i < queries; i += (int64_t)gridDim.x * kWarps)
        for (int64_t channel = lane_of(); channel - lane_of() < j.size; channel += kChannels)
            forward_round<T>(j, query_of(j, i), channel);
}

// ---- backward ----

// The sum of y dy of each query.
template <typename T> __global__ void attention_means_kernel(attention_job j)
{
    int64_t queries = j.n * j.heads * j.positions;

    for (int64_t i = first_item(); i < queries; i += item_stride()) {
        Query q = query_of(j, i);

        j.means[i] = dot(j.size, row_of<T>(j, j.y, q.n, q.position, q.head),
                         row_of<T>(j, j.dy, q.n, q.position, q.head));
    }
}

struct Weights { // of one query and one key: the probability as dropout leaves it, and its score's gradient
    float p, slope;
};

template <typename T>
__device__ __forceinline__ Weights weights_of(const attention_job &j, Query q, int64_t position, const T *key,
                                              const T *value)
{
    float kept = kept_of(j, q, position);
    float score = capped(j, j.scale * dot(j.size, row_of<T>(j, j.x[0], q.n, q.position, q.head), key));
    float p = expf(score - j.logarithms[number_of(j, q)]);
    float of_p = dot(j.size, row_of<T>(j, j.dy, q.n, q.position, q.head), value);
    float slope = j.cap > 0 ? j.scale * (1.0f - score / j.cap * (score / j.cap)) : j.scale;

    return {kept * p, p * (kept * of_p - j.means[number_of(j, q)]) * slope};
}

template <typename T> __device__ void queries_round(const attention_job &j, Query q, int64_t channel)
{
    int64_t seen = end_key(j, q), kv = q.head / (j.heads / j.kv_heads);
    int64_t stride = j.kv_heads * j.size;
    __shared__ float room[kWarps][32];
    float sum[kWide] = {};

    for (int64_t first = first_key(j, q); first < seen; first += 32) {
        int64_t rows = seen - first < 32 ? seen - first : 32;
        const T *keys = key_row_of<T>(j, j.x[1], q.n, first, kv);
        const T *values = key_row_of<T>(j, j.x[2], q.n, first, kv);
        Weights mine = {0, 0};

        if (lane_of() < rows && is_seen(j, q, first + lane_of()))
            mine = weights_of<T>(j, q, first + lane_of(), keys + lane_of() * stride, values + lane_of() * stride);
        add_rows(shared_by_warp(room, mine.slope), keys, stride, rows, channel, j.size, sum);
    }
    put_row((T *)row_of<T>(j, j.dx[0], q.n, q.position, q.head), sum, 1.0f, channel, j.size);
}

template <typename T> __global__ void attention_queries_kernel(attention_job j)
{
    int64_t queries = j.n * j.heads * j.positions;

    for (int64_t i = first_warp(); i < queries; i += (int64_t)gridDim.x * kWarps)
        for (int64_t channel = lane_of(); channel - lane_of() < j.size; channel += kChannels)
            queries_round<T>(j, query_of(j, i), channel);
}

// One key and value: all queries that see it, head by head.
template <typename T>
__device__ void keys_round(const attention_job &j, int64_t n, int64_t kv, int64_t position, int64_t channel)
{
    const T *key = key_row_of<T>(j, j.x[1], n, position, kv);
    const T *value = key_row_of<T>(j, j.x[2], n, position, kv);
    int64_t group = j.heads / j.kv_heads, stride = j.heads * j.size, end = end_query(j, position);
    __shared__ float room[2][kWarps][32];
    float of_key[kWide] = {}, of_value[kWide] = {};

    for (int64_t head = kv * group; head < (kv + 1) * group; head++)
        for (int64_t first = first_query(j, position); first < end; first += 32) {
            int64_t rows = end - first < 32 ? end - first : 32;
            Weights mine = {0, 0};

            if (lane_of() < rows && is_seen(j, {n, head, first + lane_of()}, position))
                mine = weights_of<T>(j, {n, head, first + lane_of()}, position, key, value);
            add_rows(shared_by_warp(room[0], mine.slope), row_of<T>(j, j.x[0], n, first, head),
                     stride, rows, channel, j.size, of_key);
            add_rows(shared_by_warp(room[1], mine.p), row_of<T>(j, j.dy, n, first, head), stride,
                     rows, channel, j.size, of_value);
        }
    if (j.dx[1] != nullptr)
        put_row((T *)key_row_of<T>(j, j.dx[1], n, position, kv), of_key, 1.0f, channel, j.size);
    if (j.dx[2] != nullptr)
        put_row((T *)key_row_of<T>(j, j.dx[2], n, position, kv), of_value, 1.0f, channel, j.size);
}

template <typename T> __global__ void attention_keys_kernel(attention_job j)
{
    int64_t keys = j.n * j.kv_heads * j.keys;

    for (int64_t i = first_warp(); i < keys; i += (int64_t)gridDim.x * kWarps)
        for (int64_t channel = lane_of(); channel - lane_of() < j.size; channel += kChannels)
            keys_round<T>(j, i / j.keys / j.kv_heads, i / j.keys % j.kv_heads, i % j.keys,
                          channel);
}

int64_t means_bytes(const struct ghp_local *l)
{
    return ghp_align(l->n * l->heads.n * l->h * (int64_t)sizeof(float));
}

int64_t documents_bytes(const struct ghp_local *l)
{
    return ghp_attention_has_ids(l) ? l->n * ghp_attention_keys(l) * (int64_t)sizeof(int32_t) : 0;
}

// documents   where they are in scratch
attention_job attention_job_of(const struct ghp_local *l, const struct ghp_kernel_arguments *args,
                               int64_t documents)
{
    attention_job job = {};

    job.n = l->n;
    job.positions = l->h;
    job.keys = ghp_attention_keys(l);
    job.offset = ghp_attention_offset(l, args->first_position);
    job.heads = l->heads.n;
    job.kv_heads = l->heads.n_kv;
    job.size = l->heads.size;
    job.causal = l->heads.causal;
    job.window = l->heads.window;
    job.scale = (float)ghp_attention_scale(&l->heads);
    job.cap = (float)l->heads.softcap;
    job.drops = l->heads.dropout > 0;
    job.threshold = (uint32_t)(l->heads.dropout * 0x1p32);
    job.kept = (float)(1.0 / (1.0 - l->heads.dropout));
    job.seed = args->seed;
    job.step = args->step;
    job.step_at = args->hyperparameters != nullptr ? &args->hyperparameters->step : nullptr;
    job.layer = (uint32_t)args->layer;
    job.first_sample = args->first_sample;
    job.first_head = args->first_channel / l->heads.size;
    for (int i = 0; i < 3; i++) {
        job.x[i] = args->at.x[i];
        job.dx[i] = args->at.dx[i];
    }
    job.y = args->at.y;
    job.dy = args->at.dy;
    job.logarithms = (float *)args->at.saved;
    job.means = (float *)args->at.scratch;
    job.kind = l->heads;
    if (ghp_attention_has_ids(l)) {
        job.ids = (const int32_t *)args->at.x[3];
        job.documents = (int32_t *)((char *)args->at.scratch + documents);
    }
    return job;
}

cudaError_t attention_forward(struct ghp_launch launch, const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args)
{
    attention_job job = attention_job_of(local, args, 0);

    job.drops = job.drops && args->training;
    number_documents(launch, job);
    return by_type(launch, [&](auto type) {
        enqueue(attention_kernel<decltype(type)>, warp_blocks(job.n * job.heads * job.positions), kThreads, 0,
                launch.stream, job);
    });
}

int64_t attention_scratch(const struct ghp_local *local)
{
    return means_bytes(local) + documents_bytes(local);
}

cudaError_t attention_data(struct ghp_launch launch, const struct ghp_local *local,
                           const struct ghp_kernel_arguments *args)
{
    attention_job job = attention_job_of(local, args, means_bytes(local));
    int64_t queries = job.n * job.heads * job.positions, keys = job.n * job.kv_heads * job.keys;

    return by_type(launch, [&](auto type) {
        typedef decltype(type) T;

        number_documents(launch, job);
        enqueue(attention_means_kernel<T>, blocks_for(queries), kThreads, 0, launch.stream, job);
        if (job.dx[0] != nullptr)
            enqueue(attention_queries_kernel<T>, warp_blocks(queries), kThreads, 0, launch.stream, job);
        if (job.dx[1] != nullptr || job.dx[2] != nullptr)
            enqueue(attention_keys_kernel<T>, warp_blocks(keys), kThreads, 0, launch.stream, job);
    });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_attention[] = {
    {GHP_OP_ATTENTION, GHP_PASS_FORWARD, attention_forward, documents_bytes},
    {GHP_OP_ATTENTION, GHP_PASS_BACKWARD_DATA, attention_data, attention_scratch},
    {},
};
