/* executor/backend/cuda/device.c - a GPU's memory, streams, events and graphs: executor/backend/device.h by CUDA's
 * run-time.
 *
 * Streams, events and graphs are those of CUDA. While a step is recorded, a timed event becomes a node that
 * records its event each time the graph runs; other events only order what is recorded, and mean nothing outside: what
 * follows the graph in the compute stream follows them all. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ghp_device_event {
    cudaEvent_t event;
    bool timed;
    bool captured; /* last set on a graph, not timed */
};

struct ghp_device_graph {
    cudaGraphExec_t cuda_graph;
};

static cudaStream_t stream_of(struct ghp_backend *backend, enum ghp_device_stream stream)
{
    return ghp_cuda_of(backend)->streams[stream];
}

static bool recording(struct ghp_backend *backend)
{
    const struct ghp_cuda *cuda = ghp_cuda_of(backend);

    return cuda->recording && pthread_equal(cuda->recorder, pthread_self());
}

/* ---- memory ---- */

static enum ghp_status device_allocate(struct ghp_backend *backend, int64_t bytes, void **base)
{
    cudaStream_t stream = stream_of(backend, GHP_DEVICE_STREAM_COPY);
    size_t whole = (size_t)(bytes > 0 ? bytes : 1), free_bytes = 0, total = 0;

    *base = NULL;
    GHP_TRY(ghp_cuda_enter(backend));
    if (cudaMalloc(base, whole) != cudaSuccess) {
        *base = NULL;
        cudaGetLastError();
        cudaMemGetInfo(&free_bytes, &total);
        return GHP_FAIL(GHP_ERR_NO_MEMORY,
                        "the GPU has no %lld bytes left (%lld of %lld are free); use a smaller "
                        "batch, more GPUs, or a plan made with a lower --memory",
                        (long long)bytes, (long long)free_bytes, (long long)total);
    }
    GHP_TRY(GHP_CUDA(cudaMemsetAsync(*base, 0, whole, stream)));
    return GHP_CUDA(cudaStreamSynchronize(stream));
}

static void device_release(struct ghp_backend *backend, void *base)
{
    if (base == NULL || ghp_cuda_enter(backend) != GHP_OK) return;
    cudaFree(base);
}

static enum ghp_status device_allocate_host(struct ghp_backend *backend, int64_t bytes, void **base)
{
    *base = NULL;
    GHP_TRY(ghp_cuda_enter(backend));
    GHP_TRY(GHP_CUDA(cudaHostAlloc(base, (size_t)(bytes > 0 ? bytes : 1), cudaHostAllocDefault)));
    memset(*base, 0, (size_t)bytes);
    return GHP_OK;
}

static void device_release_host(struct ghp_backend *backend, void *base)
{
    if (base == NULL || ghp_cuda_enter(backend) != GHP_OK) return;
    cudaFreeHost(base);
}

static enum ghp_status device_memory(struct ghp_backend *backend, struct ghp_device_memory *memory)
{
    size_t free_bytes = 0, total = 0;

    GHP_TRY(ghp_cuda_enter(backend));
    GHP_TRY(GHP_CUDA(cudaMemGetInfo(&free_bytes, &total)));
    *memory = (struct ghp_device_memory){(int64_t)total, (int64_t)free_bytes};
    return GHP_OK;
}

/* ---- copies ---- */

static enum ghp_status device_copy(struct ghp_backend *backend, enum ghp_device_stream stream,
                                   const struct ghp_copy *copy)
{
    static const enum cudaMemcpyKind kinds[] = {[GHP_COPY_TO_DEVICE] = cudaMemcpyHostToDevice,
                                                [GHP_COPY_TO_HOST] = cudaMemcpyDeviceToHost,
                                                [GHP_COPY_ON_DEVICE] = cudaMemcpyDeviceToDevice};

    if (copy->bytes == 0 || copy->to == copy->from) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaMemcpyAsync(copy->to, copy->from, (size_t)copy->bytes,
                                    kinds[copy->direction], stream_of(backend, stream)));
}

static enum ghp_status device_clear(struct ghp_backend *backend, enum ghp_device_stream stream,
                                    void *to, int64_t bytes)
{
    if (bytes == 0) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaMemsetAsync(to, 0, (size_t)bytes, stream_of(backend, stream)));
}

/* Slice `index` of every row of the whole, to or from memory of its own, where the rest of a short one is zeros. */
static enum ghp_status take_slice(struct ghp_backend *backend, enum ghp_device_stream stream,
                                  const struct ghp_pack *pack, int index, const char *whole,
                                  char *part)
{
    int64_t valid = ghp_pack_valid(*pack, index);
    struct ghp_block_copy blocks = {.rows = pack->rows,
                                    .bytes = valid,
                                    .from_stride = ghp_pack_row(*pack),
                                    .to_stride = pack->block_bytes,
                                    .from = whole + index * pack->block_bytes,
                                    .to = part};

    if (valid < pack->block_bytes)
        GHP_TRY(device_clear(backend, stream, part, pack->rows * pack->block_bytes));
    return ghp_cuda_status(ghp_launch_blocks(stream_of(backend, stream), &blocks), "blocks");
}

static enum ghp_status put_slice(struct ghp_backend *backend, enum ghp_device_stream stream,
                                 const struct ghp_pack *pack, int index, const char *part,
                                 char *whole)
{
    struct ghp_block_copy blocks = {.rows = pack->rows,
                                    .bytes = ghp_pack_valid(*pack, index),
                                    .from_stride = pack->block_bytes,
                                    .to_stride = ghp_pack_row(*pack),
                                    .from = part,
                                    .to = whole + index * pack->block_bytes};

    return ghp_cuda_status(ghp_launch_blocks(stream_of(backend, stream), &blocks), "blocks");
}

static enum ghp_status device_move(struct ghp_backend *backend, enum ghp_device_stream stream,
                                   const struct ghp_move *m)
{
    const struct ghp_pack *pack = &m->pack;
    int64_t part = pack->rows * pack->block_bytes;
    const char *from = m->from;
    char *to = m->to;

    GHP_TRY(ghp_cuda_enter(backend));
    if (m->kind == GHP_MOVE_TAKE) return take_slice(backend, stream, pack, m->index, from, to);
    if (m->kind == GHP_MOVE_PUT) return put_slice(backend, stream, pack, m->index, from, to);
    if (m->kind == GHP_MOVE_TO_BF16)
        return ghp_cuda_status(
            ghp_launch_to_bf16(stream_of(backend, stream), pack->rows, m->from, to), "to bf16");
    if (m->kind == GHP_MOVE_FROM_BF16)
        return ghp_cuda_status(
            ghp_launch_from_bf16(stream_of(backend, stream), pack->rows, from, m->to), "from bf16");
    for (int i = 0; i < pack->parts; i++) {
        if (m->kind == GHP_MOVE_SPLIT)
            GHP_TRY(take_slice(backend, stream, pack, i, from, to + i * part));
        else
            GHP_TRY(put_slice(backend, stream, pack, i, from + i * part, to));
    }
    return GHP_OK;
}

/* ---- parameters ---- */

/* [k][c][places] -> [k][places][c], or back. */
static void reorder(const struct ghp_param_descriptor *descriptor, bool to_device, const char *from,
                    char *to)
{
    int64_t k = descriptor->dims[0], c = descriptor->dims[1],
            places = descriptor->dims[2] * descriptor->dims[3];
    int64_t rows = to_device ? c : places, columns = to_device ? places : c;
    size_t size = (size_t)descriptor->element_bytes;

    for (int64_t image = 0; image < k; image++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++)
                memcpy(to + ((image * columns + column) * rows + row) * (int64_t)size,
                       from + ((image * rows + row) * columns + column) * (int64_t)size, size);
}

static bool is_reordered(const struct ghp_param_descriptor *descriptor)
{
    return descriptor->n_dims == 4 && descriptor->dims[1] > 1 &&
           descriptor->dims[2] * descriptor->dims[3] > 1;
}

static enum ghp_status copy_now(struct ghp_backend *backend, void *to, const void *from,
                                int64_t bytes, enum ghp_copy_direction direction)
{
    struct ghp_copy copy = {to, from, bytes, direction};

    GHP_TRY(device_copy(backend, GHP_DEVICE_STREAM_COMPUTE, &copy));
    return GHP_CUDA(cudaStreamSynchronize(stream_of(backend, GHP_DEVICE_STREAM_COMPUTE)));
}

static enum ghp_status device_put(struct ghp_backend *backend,
                                  const struct ghp_param_descriptor *descriptor, const void *host,
                                  void *device)
{
    int64_t bytes = descriptor->elements * descriptor->element_bytes;
    char *ordered;
    enum ghp_status status;

    if (!is_reordered(descriptor))
        return copy_now(backend, device, host, bytes, GHP_COPY_TO_DEVICE);
    ordered = ghp_alloc((size_t)descriptor->elements, (size_t)descriptor->element_bytes);
    if (ordered == NULL) return GHP_NO_MEMORY();
    reorder(descriptor, true, host, ordered);
    status = copy_now(backend, device, ordered, bytes, GHP_COPY_TO_DEVICE);
    free(ordered);
    return status;
}

static enum ghp_status device_get(struct ghp_backend *backend,
                                  const struct ghp_param_descriptor *descriptor, const void *device,
                                  void *host)
{
    int64_t bytes = descriptor->elements * descriptor->element_bytes;
    char *ordered;
    enum ghp_status status;

    if (!is_reordered(descriptor)) return copy_now(backend, host, device, bytes, GHP_COPY_TO_HOST);
    ordered = ghp_alloc((size_t)descriptor->elements, (size_t)descriptor->element_bytes);
    if (ordered == NULL) return GHP_NO_MEMORY();
    status = copy_now(backend, ordered, device, bytes, GHP_COPY_TO_HOST);
    if (status == GHP_OK) reorder(descriptor, false, ordered, host);
    free(ordered);
    return status;
}

/* ---- events ---- */

static enum ghp_status device_event_open(struct ghp_backend *backend, bool timed,
                                         struct ghp_device_event **event)
{
    struct ghp_device_event *made;
    enum ghp_status status;

    GHP_TRY(ghp_cuda_enter(backend));
    made = ghp_alloc(1, sizeof *made);
    if (made == NULL) return GHP_NO_MEMORY();
    made->timed = timed;
    status = GHP_CUDA(
        cudaEventCreateWithFlags(&made->event, timed ? cudaEventDefault : cudaEventDisableTiming));
    if (status != GHP_OK) free(made);
    *event = status == GHP_OK ? made : NULL;
    return status;
}

static void device_event_close(struct ghp_backend *backend, struct ghp_device_event *event)
{
    if (event == NULL) return;
    if (ghp_cuda_enter(backend) == GHP_OK) cudaEventDestroy(event->event);
    free(event);
}

static enum ghp_status device_record_event(struct ghp_backend *backend,
                                           enum ghp_device_stream stream,
                                           struct ghp_device_event *event)
{
    bool into_graph = recording(backend);

    GHP_TRY(ghp_cuda_enter(backend));
    event->captured = into_graph && !event->timed;
    if (into_graph && event->timed)
        return GHP_CUDA(cudaEventRecordWithFlags(event->event, stream_of(backend, stream),
                                                 cudaEventRecordExternal));
    return GHP_CUDA(cudaEventRecord(event->event, stream_of(backend, stream)));
}

static enum ghp_status device_wait_event(struct ghp_backend *backend, enum ghp_device_stream stream,
                                         struct ghp_device_event *event)
{
    if (event->captured && !recording(backend)) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaStreamWaitEvent(stream_of(backend, stream), event->event, 0));
}

static enum ghp_status device_query_event(struct ghp_backend *backend,
                                          struct ghp_device_event *event, bool *passed)
{
    cudaError_t status;

    *passed = true;
    if (event->captured) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    status = cudaEventQuery(event->event);
    *passed = status == cudaSuccess;
    if (status == cudaErrorNotReady) {
        cudaGetLastError();
        return GHP_OK;
    }
    return ghp_cuda_status(status, "cudaEventQuery");
}

static enum ghp_status device_elapsed(struct ghp_backend *backend, struct ghp_device_event *first,
                                      struct ghp_device_event *last, double *seconds)
{
    float milliseconds = 0;

    GHP_TRY(ghp_cuda_enter(backend));
    GHP_TRY(GHP_CUDA(cudaEventElapsedTime(&milliseconds, first->event, last->event)));
    *seconds = (double)milliseconds * 1e-3;
    return GHP_OK;
}

static enum ghp_status device_finish(struct ghp_backend *backend, enum ghp_device_stream stream)
{
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaStreamSynchronize(stream_of(backend, stream)));
}

/* ---- graphs ---- */

static enum ghp_status device_begin_capture(struct ghp_backend *backend)
{
    struct ghp_cuda *cuda = ghp_cuda_of(backend);

    GHP_TRY(ghp_cuda_enter(backend));
    GHP_TRY(GHP_CUDA(cudaStreamBeginCapture(cuda->streams[GHP_DEVICE_STREAM_COMPUTE],
                                            cudaStreamCaptureModeThreadLocal)));
    cuda->recorder = pthread_self();
    cuda->recording = true;
    return GHP_OK;
}

static enum ghp_status device_end_capture(struct ghp_backend *backend,
                                          struct ghp_device_graph **graph)
{
    struct ghp_cuda *cuda = ghp_cuda_of(backend);
    cudaGraph_t cuda_graph = NULL;
    struct ghp_device_graph *made;
    enum ghp_status status;

    *graph = NULL;
    cuda->recording = false;
    GHP_TRY(GHP_CUDA(cudaStreamEndCapture(cuda->streams[GHP_DEVICE_STREAM_COMPUTE], &cuda_graph)));
    made = ghp_alloc(1, sizeof *made);
    status = made != NULL ? GHP_CUDA(cudaGraphInstantiate(&made->cuda_graph, cuda_graph, 0))
                          : GHP_NO_MEMORY();
    cudaGraphDestroy(cuda_graph);
    if (status != GHP_OK) free(made);
    if (status == GHP_OK) *graph = made;
    return status;
}

static enum ghp_status device_launch_graph(struct ghp_backend *backend,
                                           struct ghp_device_graph *graph)
{
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(
        cudaGraphLaunch(graph->cuda_graph, stream_of(backend, GHP_DEVICE_STREAM_COMPUTE)));
}

static void device_graph_close(struct ghp_backend *backend, struct ghp_device_graph *graph)
{
    if (graph == NULL) return;
    if (ghp_cuda_enter(backend) == GHP_OK) cudaGraphExecDestroy(graph->cuda_graph);
    free(graph);
}

/* ---- others ---- */

static enum ghp_status device_delay(struct ghp_backend *backend, double seconds)
{
    GHP_TRY(ghp_cuda_enter(backend));
    return ghp_cuda_status(ghp_launch_delay(stream_of(backend, GHP_DEVICE_STREAM_COMPUTE), seconds),
                           "delay");
}

static void device_about(struct ghp_backend *backend, struct ghp_device_about *about)
{
    struct ghp_cuda *cuda = ghp_cuda_of(backend);
    struct cudaDeviceProp properties;
    int used;

    *about = (struct ghp_device_about){.count = 1};
    if (ghp_cuda_enter(backend) != GHP_OK ||
        cudaGetDeviceProperties(&properties, cuda->device) != cudaSuccess)
        return;
    cudaGetDeviceCount(&about->count);
    about->cache_bytes = properties.l2CacheSize;
    snprintf(about->name, sizeof about->name, "%.63s", properties.name);
    used = snprintf(about->identity, sizeof about->identity, "GPU-");
    for (int i = 0; i < 16; i++)
        used += snprintf(about->identity + used, sizeof about->identity - (size_t)used, "%02x",
                         (unsigned char)properties.uuid.bytes[i]);
}

const struct ghp_device_ops ghp_cuda_device = {.allocate = device_allocate,
                                               .release = device_release,
                                               .allocate_host = device_allocate_host,
                                               .release_host = device_release_host,
                                               .memory = device_memory,
                                               .copy = device_copy,
                                               .clear = device_clear,
                                               .move = device_move,
                                               .put = device_put,
                                               .get = device_get,
                                               .event_open = device_event_open,
                                               .event_close = device_event_close,
                                               .record_event = device_record_event,
                                               .wait_event = device_wait_event,
                                               .query_event = device_query_event,
                                               .elapsed = device_elapsed,
                                               .finish = device_finish,
                                               .begin_capture = device_begin_capture,
                                               .end_capture = device_end_capture,
                                               .launch_graph = device_launch_graph,
                                               .graph_close = device_graph_close,
                                               .delay = device_delay,
                                               .about = device_about};
