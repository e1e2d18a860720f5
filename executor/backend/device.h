/* executor/backend/device.h - where a backend's tensors lie, and in which order work on them is done.
 *
 * A backend without a device (struct ghp_backend_ops.device is NULL) keeps tensors in host memory, and its work is done
 * when a call returns. A backend with one keeps them in memory that host code must never touch, and its calls only
 * enqueue: the device has streams, each of which does its work in order, and *events* are moments in a stream that
 * other streams and the host wait for. The functions ghp_device_... below do the right thing for both. Code that calls
 * the operations directly completes the device first (ghp_device_complete). The operations of host memory then work at
 * once, and an event is the clock's time when it was recorded.
 *
 * A *graph* is a step's work of all streams, recorded once and played again and again: addresses and sizes stay as
 * recorded, numbers that change are read from device memory (struct ghp_step_hyperparameters).
 *
 * To add a device: a struct ghp_device_ops next to its backend. Tested tests/executor/engine/test_device.c */
#ifndef GHP_EXECUTOR_BACKEND_DEVICE_H
#define GHP_EXECUTOR_BACKEND_DEVICE_H

#include "core/model/model.h"
#include "executor/backend/pack.h"

struct ghp_backend;

enum { GHP_DEVICE_MAX_LANES = 32 };

enum ghp_device_stream {
    GHP_DEVICE_STREAM_COMPUTE,  /* as GHP_STREAM_COMPUTE */
    GHP_DEVICE_STREAM_COMM,     /* as GHP_STREAM_COMM */
    GHP_DEVICE_STREAM_COPY,     /* samples on their way in */
    GHP_DEVICE_STREAM_TRANSFER, /* as GHP_STREAM_TRANSFER: between stages, through host memory */
    GHP_DEVICE_STREAM_LANES,    /* the first of those between stages without it, one a lane */
    GHP_DEVICE_STREAM_COUNT = GHP_DEVICE_STREAM_LANES + GHP_DEVICE_MAX_LANES
};

enum ghp_copy_direction {
    GHP_COPY_TO_DEVICE,
    GHP_COPY_TO_HOST,
    GHP_COPY_ON_DEVICE
}; /* host to device, back, inside the device */

struct ghp_copy {
    void *to;
    const void *from;
    int64_t bytes;
    enum ghp_copy_direction direction;
};

/* Strided copies, executor/backend/pack.h's; on a device between plain tensors. TO_BF16, FROM_BF16: pack.rows floats as
 * bfloat16, and back. */
enum ghp_move_kind {
    GHP_MOVE_TAKE,
    GHP_MOVE_PUT,
    GHP_MOVE_SPLIT,
    GHP_MOVE_JOIN,
    GHP_MOVE_TO_BF16,
    GHP_MOVE_FROM_BF16
};

struct ghp_move {
    enum ghp_move_kind kind;
    struct ghp_pack pack;
    const void *from;
    void *to;
    int index; /* TAKE, PUT */
};

/* Sizes of a parameter's local part: what a device that stores it otherwise has to know. */
struct ghp_param_descriptor {
    int n_dims;
    int64_t dims[GHP_MAX_DIMS]; /* conv2d weights: K, C, R, S */
    int64_t elements;
    int element_bytes;
};

struct ghp_device_event;
struct ghp_device_graph;

struct ghp_device_memory {
    int64_t total_bytes, free_bytes;
};

struct ghp_device_about {
    char name[64];
    char identity[64]; /* the same in every process that uses this very device */
    int count;         /* of such devices on this node, >= 1 */
    int64_t cache_bytes;
};

struct
    ghp_device_ops { /* every call may fail with GHP_ERR_BACKEND; addresses of device memory are not for the host */
    /* Zeroed, GHP_ALIGN_BYTES-aligned. GHP_ERR_NO_MEMORY names the bytes. */
    enum ghp_status (*allocate)(struct ghp_backend *backend, int64_t bytes, void **base);
    void (*release)(struct ghp_backend *backend, void *base); /* accepts NULL */
    /* Host memory that is copied fast, and concurrently with other work. */
    enum ghp_status (*allocate_host)(struct ghp_backend *backend, int64_t bytes, void **base);
    void (*release_host)(struct ghp_backend *backend, void *base); /* accepts NULL */
    enum ghp_status (*memory)(struct ghp_backend *backend, struct ghp_device_memory *memory);

    /* Enqueued. */
    enum ghp_status (*copy)(struct ghp_backend *backend, enum ghp_device_stream stream,
                            const struct ghp_copy *copy);
    enum ghp_status (*clear)(struct ghp_backend *backend, enum ghp_device_stream stream, void *to,
                             int64_t bytes);
    enum ghp_status (*move)(struct ghp_backend *backend, enum ghp_device_stream stream,
                            const struct ghp_move *move);

    /* A parameter's local part between the host's order (K,C,R,S; element_bytes numbers) and the device's. Waits. */
    enum ghp_status (*put)(struct ghp_backend *backend,
                           const struct ghp_param_descriptor *descriptor, const void *host,
                           void *device);
    enum ghp_status (*get)(struct ghp_backend *backend,
                           const struct ghp_param_descriptor *descriptor, const void *device,
                           void *host);

    /* Events. `timed` ones may be asked for seconds. One thread at a time uses an event. */
    enum ghp_status (*event_open)(struct ghp_backend *backend, bool timed,
                                  struct ghp_device_event **event);
    void (*event_close)(struct ghp_backend *backend,
                        struct ghp_device_event *event); /* accepts NULL */
    enum ghp_status (*record_event)(struct ghp_backend *backend, enum ghp_device_stream stream,
                                    struct ghp_device_event *event);
    enum ghp_status (*wait_event)(
        struct ghp_backend *backend, enum ghp_device_stream stream,
        struct ghp_device_event *event); /* the stream continues when the event is passed */
    enum ghp_status (*query_event)(struct ghp_backend *backend, struct ghp_device_event *event,
                                   bool *passed);
    /* Between two timed events that are passed [s]. */
    enum ghp_status (*elapsed)(struct ghp_backend *backend, struct ghp_device_event *first,
                               struct ghp_device_event *last, double *seconds);
    enum ghp_status (*finish)(struct ghp_backend *backend,
                              enum ghp_device_stream stream); /* waits for all */

    /* Graphs: what this thread enqueues from record to recorded goes onto the graph and is not done. It begins in
     * the compute stream; other streams take part by following its events, and it follows them again before the end.
     * All NULL if the device has none. If `recorded` fails, nothing is recorded, and the caller continues without
     * a graph. */
    enum ghp_status (*begin_capture)(struct ghp_backend *backend);
    enum ghp_status (*end_capture)(struct ghp_backend *backend, struct ghp_device_graph **graph);
    enum ghp_status (*launch_graph)(struct ghp_backend *backend, struct ghp_device_graph *graph);
    void (*graph_close)(struct ghp_backend *backend,
                        struct ghp_device_graph *graph); /* accepts NULL */

    /* Keeps the compute stream busy for about the given time, so that work enqueued meanwhile runs back to back.
     * NULL of host memory, as `about` and `memory`. */
    enum ghp_status (*delay)(struct ghp_backend *backend, double seconds);
    void (*about)(struct ghp_backend *backend, struct ghp_device_about *about);
};

struct ghp_device { /* by value; zeroed: host memory */
    const struct ghp_device_ops *ops;
    struct ghp_backend *backend; /* borrowed */
};

/* The same with host memory's operations filled in. */
struct ghp_device ghp_device_complete(struct ghp_device device);
/* Whether tensors lie where the host may touch them: zeroed or completed. */
bool ghp_device_is_host(struct ghp_device device);

/* Zeroed memory, GHP_ALIGN_BYTES-aligned. */
enum ghp_status ghp_device_allocate(struct ghp_device device, int64_t bytes, void **base);
void ghp_device_release(struct ghp_device device, void *base); /* accepts NULL */

enum ghp_status ghp_device_copy(struct ghp_device device, enum ghp_device_stream stream,
                                struct ghp_copy copy);
enum ghp_status ghp_device_clear(struct ghp_device device, enum ghp_device_stream stream, void *to,
                                 int64_t bytes);
enum ghp_status ghp_device_move(struct ghp_device device, enum ghp_device_stream stream,
                                const struct ghp_move *move);
/* Waits for all that was enqueued. */
enum ghp_status ghp_device_finish(struct ghp_device device, enum ghp_device_stream stream);

/* Plain bytes, between the compute stream's present state and host memory; waits. */
enum ghp_status ghp_device_read(struct ghp_device device, void *to, const void *from,
                                int64_t bytes);
enum ghp_status ghp_device_write(struct ghp_device device, void *to, const void *from,
                                 int64_t bytes);

/* A parameter's local part in the host's order; waits. */
enum ghp_status ghp_device_get(struct ghp_device device,
                               const struct ghp_param_descriptor *descriptor, const void *from,
                               void *to);
enum ghp_status ghp_device_put(struct ghp_device device,
                               const struct ghp_param_descriptor *descriptor, const void *from,
                               void *to);

#endif
