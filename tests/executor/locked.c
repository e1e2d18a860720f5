/* tests/executor/locked.c - see locked.h. */
#include "tests/executor/locked.h"
#include "core/base/clock.h"
#include "tests/executor/locked_memory.h"
#include "tests/executor/locked_private.h"

#include "core/base/array.h"
#include "executor/backend/backend_private.h"
#include "executor/platform/step_timer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory ---- */

static enum ghp_status locked_allocate(struct ghp_backend *backend, int64_t bytes, void **base)
{
    (void)backend;
    *base = locked_memory_map((size_t)bytes);
    return *base != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void locked_release(struct ghp_backend *backend, void *base)
{
    (void)backend;
    locked_memory_unmap(base);
}

static enum ghp_status locked_allocate_host(struct ghp_backend *backend, int64_t bytes, void **base)
{
    (void)backend;
    *base = ghp_alloc((size_t)bytes + 1, 1);
    return *base != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void locked_release_host(struct ghp_backend *backend, void *base)
{
    (void)backend;
    free(base);
}

static enum ghp_status locked_memory(struct ghp_backend *backend, struct ghp_device_memory *memory)
{
    (void)backend;
    *memory = (struct ghp_device_memory){INT64_C(1) << 40, (INT64_C(1) << 40) - locked_bytes()};
    return GHP_OK;
}

int64_t locked_bytes(void)
{
    return locked_memory_bytes();
}

static int64_t plays;

int64_t locked_plays(void)
{
    return plays;
}

/* ---- work: done at once, or put on a graph ---- */

struct ghp_device_event {
    double at_s;
    bool set, asked;
};

struct work {
    enum { COPY, CLEAR, MOVE, RUN, UPDATE, SQUARE, ACCUMULATE, SET, COLLECT } kind;
    struct ghp_copy copy; /* CLEAR, ACCUMULATE: to, from, bytes */
    int number_bytes;     /* ACCUMULATE */
    struct ghp_move move;
    struct ghp_kernel *kernel;
    struct ghp_kernel_arguments args;
    struct ghp_update update;
    struct ghp_square_sum square;
    struct ghp_device_event *event;
    struct locked_collective collective;
};

struct ghp_device_graph {
    int n, max;
    struct work *works;
};

struct locked { /* ghp_backend.library */
    struct ghp_device_graph *recording;
    pthread_t recorder;
};

static struct locked *locked_of(struct ghp_backend *backend)
{
    return backend->library;
}

/* [k][c][r][s] -> [k][r][s][c], or back; numbers of `size` bytes. */
static void reorder(const int64_t dims[4], int size, bool to_device, const void *from, void *to)
{
    int64_t c = dims[1], places = dims[2] * dims[3];

    for (int64_t k = 0; k < dims[0]; k++)
        for (int64_t i = 0; i < c; i++)
            for (int64_t p = 0; p < places; p++) {
                int64_t host = (k * c + i) * places + p, device = (k * places + p) * c + i;

                memcpy((char *)to + (to_device ? device : host) * size,
                       (const char *)from + (to_device ? host : device) * size, (size_t)size);
            }
}

static void dims_of(const struct ghp_local *l, int64_t dims[4])
{
    bool turned = l->op == GHP_OP_CONV_TRANSPOSE;

    dims[0] = turned ? l->c : l->k;
    dims[1] = (turned ? l->k : l->c) / l->window.groups;
    dims[2] = l->window.r;
    dims[3] = l->window.s;
}

/* The reference backend's convolutions take the host's order. */
static enum ghp_status run_conv(struct ghp_kernel *kernel, struct ghp_kernel_arguments args)
{
    int size = kernel->backend->config.element_bytes;
    int64_t dims[4], elements;
    bool learns = kernel->pass == GHP_PASS_BACKWARD_WEIGHT;
    void *w = learns ? NULL : args.at.w[0], *dw = learns ? args.at.dw[0] : NULL;
    enum ghp_status status;

    dims_of(&kernel->local, dims);
    elements = dims[0] * dims[1] * dims[2] * dims[3];
    if (w != NULL) {
        args.at.w[0] = ghp_alloc((size_t)elements, (size_t)size);
        if (args.at.w[0] == NULL) return GHP_NO_MEMORY();
        reorder(dims, size, false, w, args.at.w[0]);
    }
    if (dw != NULL) args.at.dw[0] = ghp_alloc((size_t)elements, (size_t)size);
    status = ghp_backend_reference.run(kernel, &args);
    if (dw != NULL) reorder(dims, size, true, args.at.dw[0], dw);
    if (w != NULL) free(args.at.w[0]);
    if (dw != NULL) free(args.at.dw[0]);
    return status;
}

static enum ghp_status run_kernel(struct ghp_kernel *kernel, struct ghp_kernel_arguments args)
{
    if (args.hyperparameters != NULL) {
        args.step = args.hyperparameters->step;
        args.loss_scale = args.hyperparameters->loss_scale;
        args.mean_weight = args.hyperparameters->mean_weight;
        args.output_weights = args.hyperparameters->output_weights;
    }
    if (kernel->local.op == GHP_OP_CONV2D || kernel->local.op == GHP_OP_CONV_TRANSPOSE)
        return run_conv(kernel, args);
    return ghp_backend_reference.run(kernel, &args);
}

static enum ghp_status run_update(struct ghp_backend *backend, struct ghp_update update)
{
    if (update.hyperparameters != NULL) update.given = update.hyperparameters->update;
    return ghp_backend_reference.update(backend, &update);
}

static enum ghp_status run_collective(const struct locked_collective *c)
{
    switch (c->op) {
    case GHP_COMM_ALL_REDUCE: return c->comm->ops->all_reduce(c->comm, &c->sum);
    case GHP_COMM_REDUCE_SCATTER: return c->comm->ops->reduce_scatter(c->comm, &c->sum);
    case GHP_COMM_ALL_GATHER: return c->comm->ops->all_gather(c->comm, c->in, c->out, c->bytes);
    case GHP_COMM_ALL_TO_ALL: return c->comm->ops->all_to_all(c->comm, c->in, c->out, c->bytes);
    case GHP_COMM_SHIFT: return c->comm->ops->shift(c->comm, c->in, c->out, c->bytes);
    default: return GHP_FAIL(GHP_ERR_INTERNAL, "no collective");
    }
}

static void run_move(const struct ghp_move *m)
{
    struct ghp_device here = {0};

    ghp_device_move(here, GHP_DEVICE_STREAM_COMPUTE, m);
}

static enum ghp_status work_now(struct ghp_backend *backend, const struct work *w)
{
    enum ghp_status status = GHP_OK;

    if (w->kind == COLLECT) return run_collective(&w->collective); /* enters by itself */
    locked_memory_enter();
    switch (w->kind) {
    case COPY: memcpy(w->copy.to, w->copy.from, (size_t)w->copy.bytes); break;
    case CLEAR: memset(w->copy.to, 0, (size_t)w->copy.bytes); break;
    case MOVE: run_move(&w->move); break;
    case RUN: status = run_kernel(w->kernel, w->args); break;
    case UPDATE: status = run_update(backend, w->update); break;
    case SQUARE: status = ghp_backend_reference.square(backend, &w->square); break;
    case ACCUMULATE:
        status = ghp_backend_reference.accumulate(
            backend, w->copy.to, w->copy.from,
            (struct ghp_buffer_extent){w->copy.bytes / w->number_bytes, w->number_bytes});
        break;
    case SET: *w->event = (struct ghp_device_event){.at_s = ghp_now_s(), .set = true}; break;
    case COLLECT: break;
    }
    locked_memory_leave();
    return status;
}

static enum ghp_status enqueue(struct ghp_backend *backend, struct work work)
{
    struct locked *locked = locked_of(backend);
    struct ghp_device_graph *graph = locked->recording;

    if (graph == NULL || !pthread_equal(locked->recorder, pthread_self()))
        return work_now(backend, &work);
    GHP_TRY_ROOM(graph->works, graph->n, graph->max);
    graph->works[graph->n++] = work;
    return GHP_OK;
}

static enum ghp_status locked_copy(struct ghp_backend *backend, enum ghp_device_stream stream,
                                   const struct ghp_copy *copy)
{
    (void)stream;
    return enqueue(backend, (struct work){.kind = COPY, .copy = *copy});
}

static enum ghp_status locked_clear(struct ghp_backend *backend, enum ghp_device_stream stream,
                                    void *to, int64_t bytes)
{
    (void)stream;
    return enqueue(backend, (struct work){.kind = CLEAR, .copy = {.to = to, .bytes = bytes}});
}

static enum ghp_status locked_move(struct ghp_backend *backend, enum ghp_device_stream stream,
                                   const struct ghp_move *move)
{
    (void)stream;
    return enqueue(backend, (struct work){.kind = MOVE, .move = *move});
}

static enum ghp_status change_order(const struct ghp_param_descriptor *descriptor, bool to_device,
                                    const void *from, void *to)
{
    locked_memory_enter();
    if (descriptor->n_dims == 4) {
        int64_t elements = 1;

        for (int i = 0; i < 4; i++)
            elements *= descriptor->dims[i];
        if (elements != descriptor->elements) abort();
        reorder(descriptor->dims, descriptor->element_bytes, to_device, from, to);
    } else {
        memcpy(to, from, (size_t)(descriptor->elements * descriptor->element_bytes));
    }
    locked_memory_leave();
    return GHP_OK;
}

static enum ghp_status locked_put(struct ghp_backend *backend,
                                  const struct ghp_param_descriptor *descriptor, const void *host,
                                  void *device)
{
    (void)backend;
    return change_order(descriptor, true, host, device);
}

static enum ghp_status locked_get(struct ghp_backend *backend,
                                  const struct ghp_param_descriptor *descriptor, const void *device,
                                  void *host)
{
    (void)backend;
    return change_order(descriptor, false, device, host);
}

/* ---- events and graphs ---- */

static enum ghp_status locked_event_open(struct ghp_backend *backend, bool timed,
                                         struct ghp_device_event **event)
{
    (void)backend;
    (void)timed;
    *event = ghp_alloc(1, sizeof **event);
    return *event != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void locked_event_close(struct ghp_backend *backend, struct ghp_device_event *event)
{
    (void)backend;
    free(event);
}

static enum ghp_status locked_record_event(struct ghp_backend *backend,
                                           enum ghp_device_stream stream,
                                           struct ghp_device_event *event)
{
    (void)stream;
    return enqueue(backend, (struct work){.kind = SET, .event = event});
}

/* Everything is done in the order of its calls, so there is nothing to wait for. */
static enum ghp_status locked_wait_event(struct ghp_backend *backend, enum ghp_device_stream stream,
                                         struct ghp_device_event *event)
{
    (void)backend;
    (void)stream;
    return event != NULL ? GHP_OK : GHP_FAIL(GHP_ERR_INTERNAL, "no event to follow");
}

static enum ghp_status locked_query_event(struct ghp_backend *backend,
                                          struct ghp_device_event *event, bool *passed)
{
    (void)backend;
    *passed = event->set && event->asked;
    event->asked = true;
    return GHP_OK;
}

static enum ghp_status locked_elapsed(struct ghp_backend *backend, struct ghp_device_event *first,
                                      struct ghp_device_event *last, double *seconds)
{
    (void)backend;
    if (!first->set || !last->set) return GHP_FAIL(GHP_ERR_INTERNAL, "an event was never set");
    *seconds = last->at_s - first->at_s;
    return GHP_OK;
}

static enum ghp_status locked_finish(struct ghp_backend *backend, enum ghp_device_stream stream)
{
    (void)stream;
    if (locked_of(backend)->recording != NULL &&
        pthread_equal(locked_of(backend)->recorder, pthread_self()))
        return GHP_FAIL(GHP_ERR_INTERNAL, "waiting does not go on a graph");
    return GHP_OK;
}

static void locked_graph_close(struct ghp_backend *backend, struct ghp_device_graph *graph)
{
    (void)backend;
    if (graph == NULL) return;
    free(graph->works);
    free(graph);
}

static enum ghp_status locked_begin_capture(struct ghp_backend *backend)
{
    struct locked *locked = locked_of(backend);

    if (getenv("LOCKED_NO_TAPE") != NULL)
        return GHP_FAIL(GHP_ERR_BACKEND, "graphs are off; unset LOCKED_NO_TAPE");
    locked->recorder = pthread_self();
    locked->recording = ghp_alloc(1, sizeof *locked->recording);
    return locked->recording != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static enum ghp_status locked_end_capture(struct ghp_backend *backend,
                                          struct ghp_device_graph **graph)
{
    *graph = locked_of(backend)->recording;
    locked_of(backend)->recording = NULL;
    return GHP_OK;
}

static enum ghp_status locked_launch_graph(struct ghp_backend *backend,
                                           struct ghp_device_graph *graph)
{
    plays++;
    for (int i = 0; i < graph->n; i++)
        GHP_TRY(work_now(backend, &graph->works[i]));
    return GHP_OK;
}

static enum ghp_status locked_delay(struct ghp_backend *backend, double seconds)
{
    (void)backend;
    (void)seconds;
    return GHP_OK;
}

static void locked_about(struct ghp_backend *backend, struct ghp_device_about *about)
{
    (void)backend;
    *about = (struct ghp_device_about){.name = "locked memory", .count = 1};
    snprintf(about->identity, sizeof about->identity, "locked %ld", (long)getpid());
}

static const struct ghp_device_ops locked_device = {.allocate = locked_allocate,
                                                    .release = locked_release,
                                                    .allocate_host = locked_allocate_host,
                                                    .release_host = locked_release_host,
                                                    .memory = locked_memory,
                                                    .copy = locked_copy,
                                                    .clear = locked_clear,
                                                    .move = locked_move,
                                                    .put = locked_put,
                                                    .get = locked_get,
                                                    .event_open = locked_event_open,
                                                    .event_close = locked_event_close,
                                                    .record_event = locked_record_event,
                                                    .wait_event = locked_wait_event,
                                                    .query_event = locked_query_event,
                                                    .elapsed = locked_elapsed,
                                                    .finish = locked_finish,
                                                    .begin_capture = locked_begin_capture,
                                                    .end_capture = locked_end_capture,
                                                    .launch_graph = locked_launch_graph,
                                                    .graph_close = locked_graph_close,
                                                    .delay = locked_delay,
                                                    .about = locked_about};

/* ---- the backend ---- */

static bool locked_has_precision(int element_bytes)
{
    return ghp_backend_reference.has_precision(element_bytes);
}

static enum ghp_status locked_open(const struct ghp_backend_config *config,
                                   struct ghp_backend **backend)
{
    GHP_TRY(ghp_backend_reference.open(config, backend));
    (*backend)->library = ghp_alloc(1, sizeof(struct locked));
    return (*backend)->library != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void locked_close(struct ghp_backend *backend)
{
    if (backend != NULL) free(backend->library);
    ghp_backend_reference.close(backend);
}

static enum ghp_status locked_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                      enum ghp_pass pass, struct ghp_kernel **kernel)
{
    return ghp_backend_reference.prepare(backend, local, pass, kernel);
}

static enum ghp_status locked_run(struct ghp_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    return enqueue(kernel->backend, (struct work){.kind = RUN, .kernel = kernel, .args = *args});
}

static bool locked_joins(const struct ghp_kernel *kernel)
{
    return kernel->local.op == GHP_OP_LINEAR;
}

/* The last one first. */
static enum ghp_status locked_run_all(struct ghp_kernel *kernel, struct ghp_joint_run run)
{
    while (--run.n >= 0)
        GHP_TRY(locked_run(kernel, &run.args[run.n]));
    return GHP_OK;
}

static void locked_kernel_release(struct ghp_kernel *kernel)
{
    ghp_backend_reference.release(kernel);
}

static enum ghp_status locked_update(struct ghp_backend *backend, const struct ghp_update *update)
{
    return enqueue(backend, (struct work){.kind = UPDATE, .update = *update});
}

static enum ghp_status locked_update_all(struct ghp_backend *backend,
                                         const struct ghp_update *updates, int n)
{
    for (int i = 0; i < n; i++)
        GHP_TRY(enqueue(backend, (struct work){.kind = UPDATE, .update = updates[i]}));
    return GHP_OK;
}

static enum ghp_status locked_square(struct ghp_backend *backend, const struct ghp_square_sum *sum)
{
    return enqueue(backend, (struct work){.kind = SQUARE, .square = *sum});
}

static enum ghp_status locked_accumulate(struct ghp_backend *backend, void *to, const void *from,
                                         struct ghp_buffer_extent extent)
{
    return enqueue(backend, (struct work){.kind = ACCUMULATE,
                                          .copy = {to, from, extent.n * extent.bytes, 0},
                                          .number_bytes = extent.bytes});
}

static int64_t locked_scratch(const struct ghp_kernel *kernel)
{
    return ghp_backend_reference.scratch_bytes(kernel);
}

static const char *locked_algorithm(const struct ghp_kernel *kernel)
{
    return ghp_backend_reference.algorithm(kernel);
}

static bool locked_has(enum ghp_op op, enum ghp_pass pass)
{
    return ghp_backend_reference.has(op, pass);
}

const struct ghp_backend_ops locked_backend = {.name = "locked",
                                               .device = &locked_device,
                                               .has_precision = locked_has_precision,
                                               .has = locked_has,
                                               .open = locked_open,
                                               .close = locked_close,
                                               .prepare = locked_prepare,
                                               .scratch_bytes = locked_scratch,
                                               .algorithm = locked_algorithm,
                                               .run = locked_run,
                                               .joins = locked_joins,
                                               .run_all = locked_run_all,
                                               .release = locked_kernel_release,
                                               .update = locked_update,
                                               .square = locked_square,
                                               .update_all = locked_update_all,
                                               .accumulate = locked_accumulate};

enum ghp_status locked_enqueue(struct ghp_backend *backend, struct locked_collective collective)
{
    return enqueue(backend, (struct work){.kind = COLLECT, .collective = collective});
}
