/* executor/backend/device.c - see device.h. Host memory's operations; a device's own are in its backend's folder. */
#include "executor/backend/device.h"

#include "core/base/clock.h"
#include "core/model/precision.h"
#include "core/program/program.h"

#include <stdlib.h>
#include <string.h>

/* ---- host memory ---- */

struct ghp_device_event {
    double at_s;
};

static enum ghp_status host_allocate(struct ghp_backend *backend, int64_t bytes, void **base)
{
    size_t whole = ((size_t)bytes / GHP_ALIGN_BYTES + 1) * GHP_ALIGN_BYTES;

    (void)backend;
    *base = aligned_alloc(GHP_ALIGN_BYTES, whole);
    if (*base == NULL) return GHP_NO_MEMORY();
    memset(*base, 0, whole);
    return GHP_OK;
}

static void host_release(struct ghp_backend *backend, void *base)
{
    (void)backend;
    free(base);
}

static enum ghp_status host_copy(struct ghp_backend *backend, enum ghp_device_stream stream,
                                 const struct ghp_copy *copy)
{
    (void)backend;
    (void)stream;
    memcpy(copy->to, copy->from, (size_t)copy->bytes);
    return GHP_OK;
}

static enum ghp_status host_clear(struct ghp_backend *backend, enum ghp_device_stream stream,
                                  void *to, int64_t bytes)
{
    (void)backend;
    (void)stream;
    memset(to, 0, (size_t)bytes);
    return GHP_OK;
}

static enum ghp_status host_move(struct ghp_backend *backend, enum ghp_device_stream stream,
                                 const struct ghp_move *m)
{
    (void)backend;
    (void)stream;
    switch (m->kind) {
    case GHP_MOVE_TAKE: ghp_pack_take(m->pack, m->from, m->index, m->to); break;
    case GHP_MOVE_PUT: ghp_pack_put(m->pack, m->from, m->index, m->to); break;
    case GHP_MOVE_SPLIT: ghp_pack_split(m->pack, m->from, m->to); break;
    case GHP_MOVE_JOIN: ghp_pack_join(m->pack, m->from, m->to); break;
    case GHP_MOVE_TO_BF16:
        for (int64_t i = 0; i < m->pack.rows; i++)
            ((uint16_t *)m->to)[i] = ghp_bf16_of(((const float *)m->from)[i]);
        break;
    case GHP_MOVE_FROM_BF16:
        for (int64_t i = 0; i < m->pack.rows; i++)
            ((float *)m->to)[i] = ghp_bf16_value(((const uint16_t *)m->from)[i]);
        break;
    }
    return GHP_OK;
}

static enum ghp_status host_parameter(struct ghp_backend *backend,
                                      const struct ghp_param_descriptor *descriptor,
                                      const void *from, void *to)
{
    (void)backend;
    memcpy(to, from, (size_t)(descriptor->elements * descriptor->element_bytes));
    return GHP_OK;
}

static enum ghp_status host_event_open(struct ghp_backend *backend, bool timed,
                                       struct ghp_device_event **event)
{
    (void)backend;
    (void)timed;
    *event = ghp_alloc(1, sizeof **event);
    return *event != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void host_event_close(struct ghp_backend *backend, struct ghp_device_event *event)
{
    (void)backend;
    free(event);
}

static enum ghp_status host_record_event(struct ghp_backend *backend, enum ghp_device_stream stream,
                                         struct ghp_device_event *event)
{
    (void)backend;
    (void)stream;
    event->at_s = ghp_now_s();
    return GHP_OK;
}

/* What was recorded is done. */
static enum ghp_status host_wait_event(struct ghp_backend *backend, enum ghp_device_stream stream,
                                       struct ghp_device_event *event)
{
    (void)backend;
    (void)stream;
    (void)event;
    return GHP_OK;
}

static enum ghp_status host_query_event(struct ghp_backend *backend, struct ghp_device_event *event,
                                        bool *passed)
{
    (void)backend;
    (void)event;
    *passed = true;
    return GHP_OK;
}

static enum ghp_status host_elapsed(struct ghp_backend *backend, struct ghp_device_event *first,
                                    struct ghp_device_event *last, double *seconds)
{
    (void)backend;
    *seconds = last->at_s - first->at_s;
    return GHP_OK;
}

static enum ghp_status host_finish(struct ghp_backend *backend, enum ghp_device_stream stream)
{
    (void)backend;
    (void)stream;
    return GHP_OK;
}

static const struct ghp_device_ops host_memory = {.allocate = host_allocate,
                                                  .release = host_release,
                                                  .allocate_host = host_allocate,
                                                  .release_host = host_release,
                                                  .copy = host_copy,
                                                  .clear = host_clear,
                                                  .move = host_move,
                                                  .put = host_parameter,
                                                  .get = host_parameter,
                                                  .event_open = host_event_open,
                                                  .event_close = host_event_close,
                                                  .record_event = host_record_event,
                                                  .wait_event = host_wait_event,
                                                  .query_event = host_query_event,
                                                  .elapsed = host_elapsed,
                                                  .finish = host_finish};

struct ghp_device ghp_device_complete(struct ghp_device device)
{
    return device.ops != NULL ? device : (struct ghp_device){.ops = &host_memory};
}

bool ghp_device_is_host(struct ghp_device device)
{
    return device.ops == NULL || device.ops == &host_memory;
}

/* ---- whatever the memory ---- */

enum ghp_status ghp_device_allocate(struct ghp_device device, int64_t bytes, void **base)
{
    *base = NULL;
    return ghp_device_complete(device).ops->allocate(device.backend, bytes, base);
}

void ghp_device_release(struct ghp_device device, void *base)
{
    ghp_device_complete(device).ops->release(device.backend, base);
}

enum ghp_status ghp_device_copy(struct ghp_device device, enum ghp_device_stream stream,
                                struct ghp_copy copy)
{
    return ghp_device_complete(device).ops->copy(device.backend, stream, &copy);
}

enum ghp_status ghp_device_clear(struct ghp_device device, enum ghp_device_stream stream, void *to,
                                 int64_t bytes)
{
    return ghp_device_complete(device).ops->clear(device.backend, stream, to, bytes);
}

enum ghp_status ghp_device_move(struct ghp_device device, enum ghp_device_stream stream,
                                const struct ghp_move *m)
{
    GHP_ASSERT(ghp_device_is_host(device) || !(m->pack.whole_nchw16c || m->pack.part_nchw16c));
    return ghp_device_complete(device).ops->move(device.backend, stream, m);
}

enum ghp_status ghp_device_finish(struct ghp_device device, enum ghp_device_stream stream)
{
    return ghp_device_complete(device).ops->finish(device.backend, stream);
}

enum ghp_status ghp_device_read(struct ghp_device device, void *to, const void *from, int64_t bytes)
{
    struct ghp_copy copy = {to, from, bytes, GHP_COPY_TO_HOST};

    GHP_TRY(ghp_device_copy(device, GHP_DEVICE_STREAM_COMPUTE, copy));
    return ghp_device_finish(device, GHP_DEVICE_STREAM_COMPUTE);
}

enum ghp_status ghp_device_write(struct ghp_device device, void *to, const void *from,
                                 int64_t bytes)
{
    struct ghp_copy copy = {to, from, bytes, GHP_COPY_TO_DEVICE};

    GHP_TRY(ghp_device_copy(device, GHP_DEVICE_STREAM_COMPUTE, copy));
    return ghp_device_finish(device, GHP_DEVICE_STREAM_COMPUTE);
}

enum ghp_status ghp_device_get(struct ghp_device device,
                               const struct ghp_param_descriptor *descriptor, const void *from,
                               void *to)
{
    return ghp_device_complete(device).ops->get(device.backend, descriptor, from, to);
}

enum ghp_status ghp_device_put(struct ghp_device device,
                               const struct ghp_param_descriptor *descriptor, const void *from,
                               void *to)
{
    return ghp_device_complete(device).ops->put(device.backend, descriptor, from, to);
}
