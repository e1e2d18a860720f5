/* executor/engine/bounce.c - see engine/bounce.h. */
#include "executor/engine/bounce.h"

#include "core/program/program.h"

#include <stdlib.h>
#include <string.h>

struct ghp_bounce {
    struct ghp_device device;
    struct ghp_bounce_place place;
    char *host; /* pinned: the tensor up to place.end, then the scratch */
    struct ghp_device_event *ready, *moved;
    bool copying; /* `moved` was recorded, and not yet seen passed */
};

enum ghp_status ghp_bounce_open(struct ghp_device device, const struct ghp_bounce_place *place,
                                struct ghp_bounce **bounce)
{
    struct ghp_bounce *b = ghp_alloc(1, sizeof *b);
    enum ghp_status status = GHP_OK;
    void *host = NULL;

    *bounce = NULL;
    if (b == NULL) return GHP_NO_MEMORY();
    *b = (struct ghp_bounce){.device = device, .place = *place};
    GHP_TRY_GOTO(status,
                 device.ops->allocate_host(device.backend,
                                           ghp_align(place->end) + place->scratch_bytes, &host),
                 fail);
    b->host = host;
    memset(host, 0, (size_t)(ghp_align(place->end) + place->scratch_bytes)); /* padding stays so */
    GHP_TRY_GOTO(status, device.ops->event_open(device.backend, false, &b->ready), fail);
    GHP_TRY_GOTO(status, device.ops->event_open(device.backend, false, &b->moved), fail);
    *bounce = b;
    return GHP_OK;
fail:
    ghp_bounce_close(b);
    return status;
}

void ghp_bounce_close(struct ghp_bounce *b)
{
    struct ghp_device d;

    if (b == NULL) return;
    d = b->device;
    ghp_device_finish(d, GHP_DEVICE_STREAM_TRANSFER);
    d.ops->event_close(d.backend, b->moved);
    d.ops->event_close(d.backend, b->ready);
    d.ops->release_host(d.backend, b->host);
    free(b);
}

char *ghp_bounce_tensor(const struct ghp_bounce *b)
{
    return b->host;
}

char *ghp_bounce_scratch(const struct ghp_bounce *b)
{
    return b->host + ghp_align(b->place.end);
}

/* Copies after what the transfer stream has; `moved` follows it. */
static enum ghp_status copy(struct ghp_bounce *b, enum ghp_copy_direction direction)
{
    char *there = (char *)b->place.tensor + b->place.first, *here = b->host + b->place.first;
    bool to_device = direction == GHP_COPY_TO_DEVICE;
    struct ghp_device d = b->device;

    GHP_TRY(ghp_device_copy(d, GHP_DEVICE_STREAM_TRANSFER,
                            (struct ghp_copy){to_device ? there : here, to_device ? here : there,
                                              b->place.end - b->place.first, direction}));
    b->copying = true;
    return d.ops->record_event(d.backend, GHP_DEVICE_STREAM_TRANSFER, b->moved);
}

enum ghp_status ghp_bounce_posted(struct ghp_bounce *b)
{
    if (b == NULL) return GHP_OK;
    return b->device.ops->record_event(b->device.backend, GHP_DEVICE_STREAM_COMPUTE, b->ready);
}

enum ghp_status ghp_bounce_is_free(struct ghp_bounce *b, bool *is_free)
{
    bool passed = true;

    if (b->copying) GHP_TRY(b->device.ops->query_event(b->device.backend, b->moved, &passed));
    b->copying = !passed;
    *is_free = passed;
    return GHP_OK;
}

enum ghp_status ghp_bounce_fetch(struct ghp_bounce *b, bool *fetched)
{
    bool ready = true;

    *fetched = false;
    if (b->copying) return ghp_bounce_is_free(b, fetched);
    GHP_TRY(b->device.ops->query_event(b->device.backend, b->ready, &ready));
    return ready ? copy(b, GHP_COPY_TO_HOST) : GHP_OK;
}

enum ghp_status ghp_bounce_deliver(struct ghp_bounce *b)
{
    struct ghp_device d = b->device;

    GHP_TRY(d.ops->wait_event(d.backend, GHP_DEVICE_STREAM_TRANSFER, b->ready));
    return copy(b, GHP_COPY_TO_DEVICE);
}

enum ghp_status ghp_bounce_await(struct ghp_bounce *b)
{
    if (b == NULL) return GHP_OK;
    return b->device.ops->wait_event(b->device.backend, GHP_DEVICE_STREAM_COMPUTE, b->moved);
}
