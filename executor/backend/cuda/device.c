/* executor/backend/cuda/device.c - a GPU's memory, queues, marks and tapes: executor/backend/device.h by CUDA's run-time.
 *
 * Queues are streams, marks are events, a tape is a graph. While a step is recorded, a timed mark becomes a node that
 * records its event each time the graph runs; other marks only order what is recorded, and mean nothing outside: what
 * follows the tape in the compute queue follows them all. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ghp_mark {
    cudaEvent_t event;
    bool timed;
    bool taped; /* last set on a tape, not timed */
};

struct ghp_tape {
    cudaGraphExec_t graph;
};

static cudaStream_t stream_of(struct ghp_backend *backend, enum ghp_queue queue)
{
    return ghp_cuda_of(backend)->streams[queue];
}

static bool recording(struct ghp_backend *backend)
{
    const struct ghp_cuda *cuda = ghp_cuda_of(backend);

    return cuda->recording && pthread_equal(cuda->recorder, pthread_self());
}

/* ---- memory ---- */

static enum ghp_status device_allocate(struct ghp_backend *backend, int64_t bytes, void **base)
{
    cudaStream_t stream = stream_of(backend, GHP_QUEUE_COPY);
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

static enum ghp_status device_copy(struct ghp_backend *backend, enum ghp_queue queue,
                                   const struct ghp_copy *copy)
{
    static const enum cudaMemcpyKind kinds[] = {[GHP_WAY_IN] = cudaMemcpyHostToDevice,
                                                [GHP_WAY_OUT] = cudaMemcpyDeviceToHost,
                                                [GHP_WAY_WITHIN] = cudaMemcpyDeviceToDevice};

    if (copy->bytes == 0 || copy->to == copy->from) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaMemcpyAsync(copy->to, copy->from, (size_t)copy->bytes, kinds[copy->way],
                                    stream_of(backend, queue)));
}

static enum ghp_status device_clear(struct ghp_backend *backend, enum ghp_queue queue, void *to,
                                    int64_t bytes)
{
    if (bytes == 0) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaMemsetAsync(to, 0, (size_t)bytes, stream_of(backend, queue)));
}

/* Slice `index` of every row, to or from memory of its own. */
static enum ghp_status move_slice(struct ghp_backend *backend, enum ghp_queue queue,
                                  const struct ghp_pack *how, const void *from, void *to,
                                  bool taken)
{
    struct ghp_blocks blocks = {.rows = how->rows,
                                .bytes = how->block_bytes,
                                .from_stride = how->block_bytes * (taken ? how->parts : 1),
                                .to_stride = how->block_bytes * (taken ? 1 : how->parts),
                                .from = from,
                                .to = to};

    return ghp_cuda_status(ghp_launch_blocks(stream_of(backend, queue), &blocks), "blocks");
}

static enum ghp_status device_move(struct ghp_backend *backend, enum ghp_queue queue,
                                   const struct ghp_move *m)
{
    const struct ghp_pack *how = &m->how;
    int64_t block = how->block_bytes, part = how->rows * block;
    const char *from = m->from;
    char *to = m->to;

    GHP_TRY(ghp_cuda_enter(backend));
    if (m->kind == GHP_MOVE_TAKE)
        return move_slice(backend, queue, how, from + m->index * block, to, true);
    if (m->kind == GHP_MOVE_PUT)
        return move_slice(backend, queue, how, from, to + m->index * block, false);
    for (int i = 0; i < how->parts; i++) {
        if (m->kind == GHP_MOVE_SPLIT)
            GHP_TRY(move_slice(backend, queue, how, from + i * block, to + i * part, true));
        else
            GHP_TRY(move_slice(backend, queue, how, from + i * part, to + i * block, false));
    }
    return GHP_OK;
}

/* ---- parameters ---- */

/* [k][c][places] -> [k][places][c], or back. */
static void reorder(const struct ghp_form *form, bool to_device, const char *from, char *to)
{
    int64_t k = form->dims[0], c = form->dims[1], places = form->dims[2] * form->dims[3];
    int64_t rows = to_device ? c : places, columns = to_device ? places : c;
    size_t size = (size_t)form->element_bytes;

    for (int64_t image = 0; image < k; image++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++)
                memcpy(to + ((image * columns + column) * rows + row) * (int64_t)size,
                       from + ((image * rows + row) * columns + column) * (int64_t)size, size);
}

static bool is_reordered(const struct ghp_form *form)
{
    return form->n_dims == 4 && form->dims[1] > 1 && form->dims[2] * form->dims[3] > 1;
}

static enum ghp_status carry(struct ghp_backend *backend, void *to, const void *from, int64_t bytes,
                             enum ghp_way way)
{
    struct ghp_copy copy = {to, from, bytes, way};

    GHP_TRY(device_copy(backend, GHP_QUEUE_COMPUTE, &copy));
    return GHP_CUDA(cudaStreamSynchronize(stream_of(backend, GHP_QUEUE_COMPUTE)));
}

static enum ghp_status device_put(struct ghp_backend *backend, const struct ghp_form *form,
                                  const void *host, void *device)
{
    int64_t bytes = form->elements * form->element_bytes;
    char *ordered;
    enum ghp_status status;

    if (!is_reordered(form)) return carry(backend, device, host, bytes, GHP_WAY_IN);
    ordered = ghp_alloc((size_t)form->elements, (size_t)form->element_bytes);
    if (ordered == NULL) return GHP_NO_MEMORY();
    reorder(form, true, host, ordered);
    status = carry(backend, device, ordered, bytes, GHP_WAY_IN);
    free(ordered);
    return status;
}

static enum ghp_status device_get(struct ghp_backend *backend, const struct ghp_form *form,
                                  const void *device, void *host)
{
    int64_t bytes = form->elements * form->element_bytes;
    char *ordered;
    enum ghp_status status;

    if (!is_reordered(form)) return carry(backend, host, device, bytes, GHP_WAY_OUT);
    ordered = ghp_alloc((size_t)form->elements, (size_t)form->element_bytes);
    if (ordered == NULL) return GHP_NO_MEMORY();
    status = carry(backend, ordered, device, bytes, GHP_WAY_OUT);
    if (status == GHP_OK) reorder(form, false, ordered, host);
    free(ordered);
    return status;
}

/* ---- marks ---- */

static enum ghp_status device_mark_open(struct ghp_backend *backend, bool timed,
                                        struct ghp_mark **mark)
{
    struct ghp_mark *made;
    enum ghp_status status;

    GHP_TRY(ghp_cuda_enter(backend));
    made = ghp_alloc(1, sizeof(*made));
    if (made == NULL) return GHP_NO_MEMORY();
    made->timed = timed;
    status = GHP_CUDA(
        cudaEventCreateWithFlags(&made->event, timed ? cudaEventDefault : cudaEventDisableTiming));
    if (status != GHP_OK) free(made);
    *mark = status == GHP_OK ? made : NULL;
    return status;
}

static void device_mark_close(struct ghp_backend *backend, struct ghp_mark *mark)
{
    if (mark == NULL) return;
    if (ghp_cuda_enter(backend) == GHP_OK) cudaEventDestroy(mark->event);
    free(mark);
}

static enum ghp_status device_set(struct ghp_backend *backend, enum ghp_queue queue,
                                  struct ghp_mark *mark)
{
    bool onto_tape = recording(backend);

    GHP_TRY(ghp_cuda_enter(backend));
    mark->taped = onto_tape && !mark->timed;
    if (onto_tape && mark->timed)
        return GHP_CUDA(cudaEventRecordWithFlags(mark->event, stream_of(backend, queue),
                                                 cudaEventRecordExternal));
    return GHP_CUDA(cudaEventRecord(mark->event, stream_of(backend, queue)));
}

static enum ghp_status device_follow(struct ghp_backend *backend, enum ghp_queue queue,
                                     struct ghp_mark *mark)
{
    if (mark->taped && !recording(backend)) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaStreamWaitEvent(stream_of(backend, queue), mark->event, 0));
}

static enum ghp_status device_passed(struct ghp_backend *backend, struct ghp_mark *mark,
                                     bool *passed)
{
    cudaError_t status;

    *passed = true;
    if (mark->taped) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(backend));
    status = cudaEventQuery(mark->event);
    *passed = status == cudaSuccess;
    if (status == cudaErrorNotReady) {
        cudaGetLastError();
        return GHP_OK;
    }
    return ghp_cuda_status(status, "cudaEventQuery");
}

static enum ghp_status device_between(struct ghp_backend *backend, struct ghp_mark *first,
                                      struct ghp_mark *last, double *seconds)
{
    float milliseconds = 0;

    GHP_TRY(ghp_cuda_enter(backend));
    GHP_TRY(GHP_CUDA(cudaEventElapsedTime(&milliseconds, first->event, last->event)));
    *seconds = (double)milliseconds * 1e-3;
    return GHP_OK;
}

static enum ghp_status device_finish(struct ghp_backend *backend, enum ghp_queue queue)
{
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaStreamSynchronize(stream_of(backend, queue)));
}

/* ---- tapes ---- */

static enum ghp_status device_record(struct ghp_backend *backend)
{
    struct ghp_cuda *cuda = ghp_cuda_of(backend);

    GHP_TRY(ghp_cuda_enter(backend));
    GHP_TRY(GHP_CUDA(cudaStreamBeginCapture(cuda->streams[GHP_QUEUE_COMPUTE],
                                            cudaStreamCaptureModeThreadLocal)));
    cuda->recorder = pthread_self();
    cuda->recording = true;
    return GHP_OK;
}

static enum ghp_status device_recorded(struct ghp_backend *backend, struct ghp_tape **tape)
{
    struct ghp_cuda *cuda = ghp_cuda_of(backend);
    cudaGraph_t graph = NULL;
    struct ghp_tape *made;
    enum ghp_status status;

    *tape = NULL;
    cuda->recording = false;
    GHP_TRY(GHP_CUDA(cudaStreamEndCapture(cuda->streams[GHP_QUEUE_COMPUTE], &graph)));
    made = ghp_alloc(1, sizeof(*made));
    status =
        made != NULL ? GHP_CUDA(cudaGraphInstantiate(&made->graph, graph, 0)) : GHP_NO_MEMORY();
    cudaGraphDestroy(graph);
    if (status != GHP_OK) free(made);
    if (status == GHP_OK) *tape = made;
    return status;
}

static enum ghp_status device_play(struct ghp_backend *backend, struct ghp_tape *tape)
{
    GHP_TRY(ghp_cuda_enter(backend));
    return GHP_CUDA(cudaGraphLaunch(tape->graph, stream_of(backend, GHP_QUEUE_COMPUTE)));
}

static void device_tape_close(struct ghp_backend *backend, struct ghp_tape *tape)
{
    if (tape == NULL) return;
    if (ghp_cuda_enter(backend) == GHP_OK) cudaGraphExecDestroy(tape->graph);
    free(tape);
}

/* ---- others ---- */

static enum ghp_status device_delay(struct ghp_backend *backend, double seconds)
{
    GHP_TRY(ghp_cuda_enter(backend));
    return ghp_cuda_status(ghp_launch_delay(stream_of(backend, GHP_QUEUE_COMPUTE), seconds),
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
    snprintf(about->name, sizeof(about->name), "%.63s", properties.name);
    used = snprintf(about->identity, sizeof(about->identity), "GPU-");
    for (int i = 0; i < 16; i++)
        used += snprintf(about->identity + used, sizeof(about->identity) - (size_t)used, "%02x",
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
                                               .mark_open = device_mark_open,
                                               .mark_close = device_mark_close,
                                               .set = device_set,
                                               .follow = device_follow,
                                               .passed = device_passed,
                                               .between = device_between,
                                               .finish = device_finish,
                                               .record = device_record,
                                               .recorded = device_recorded,
                                               .play = device_play,
                                               .tape_close = device_tape_close,
                                               .delay = device_delay,
                                               .about = device_about};
