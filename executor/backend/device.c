/* executor/backend/device.c - see device.h. Host memory's half of it; a device's own is beside its backend. */
#include "executor/backend/device.h"

#include "core/program/program.h"

#include <stdlib.h>
#include <string.h>

static enum ghp_status allocate_here(int64_t bytes, void **base)
{
    size_t whole = ((size_t)bytes / GHP_ALIGN_BYTES + 1) * GHP_ALIGN_BYTES;

    *base = aligned_alloc(GHP_ALIGN_BYTES, whole);
    if (*base == NULL) return GHP_NO_MEMORY();
    memset(*base, 0, whole);
    return GHP_OK;
}

enum ghp_status ghp_device_allocate(struct ghp_device device, int64_t bytes, void **base)
{
    *base = NULL;
    if (device.ops != NULL) return device.ops->allocate(device.backend, bytes, base);
    return allocate_here(bytes, base);
}

void ghp_device_release(struct ghp_device device, void *base)
{
    if (device.ops != NULL)
        device.ops->release(device.backend, base);
    else
        free(base);
}

enum ghp_status ghp_device_copy(struct ghp_device device, enum ghp_device_stream stream,
                                struct ghp_copy copy)
{
    if (device.ops != NULL) return device.ops->copy(device.backend, stream, &copy);
    memcpy(copy.to, copy.from, (size_t)copy.bytes);
    return GHP_OK;
}

enum ghp_status ghp_device_clear(struct ghp_device device, enum ghp_device_stream stream, void *to,
                                 int64_t bytes)
{
    if (device.ops != NULL) return device.ops->clear(device.backend, stream, to, bytes);
    memset(to, 0, (size_t)bytes);
    return GHP_OK;
}

enum ghp_status ghp_device_move(struct ghp_device device, enum ghp_device_stream stream,
                                const struct ghp_move *m)
{
    GHP_ASSERT(device.ops == NULL || !(m->how.whole_nchw16c || m->how.part_nchw16c));
    if (device.ops != NULL) return device.ops->move(device.backend, stream, m);
    switch (m->kind) {
    case GHP_MOVE_TAKE: ghp_pack_take(m->how, m->from, m->index, m->to); break;
    case GHP_MOVE_PUT: ghp_pack_put(m->how, m->from, m->index, m->to); break;
    case GHP_MOVE_SPLIT: ghp_pack_split(m->how, m->from, m->to); break;
    case GHP_MOVE_JOIN: ghp_pack_join(m->how, m->from, m->to); break;
    }
    return GHP_OK;
}

enum ghp_status ghp_device_finish(struct ghp_device device, enum ghp_device_stream stream)
{
    return device.ops != NULL ? device.ops->finish(device.backend, stream) : GHP_OK;
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
    if (device.ops != NULL) return device.ops->get(device.backend, descriptor, from, to);
    memcpy(to, from, (size_t)(descriptor->elements * descriptor->element_bytes));
    return GHP_OK;
}

enum ghp_status ghp_device_put(struct ghp_device device,
                               const struct ghp_param_descriptor *descriptor, const void *from,
                               void *to)
{
    if (device.ops != NULL) return device.ops->put(device.backend, descriptor, from, to);
    memcpy(to, from, (size_t)(descriptor->elements * descriptor->element_bytes));
    return GHP_OK;
}
