/* executor/engine/loader.c - see loader.h. */
#include "executor/engine/loader.h"

#include "core/program/program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 512 };

struct bank {
    unsigned char *host, *device; /* images, then labels */
    struct ghp_device_event *copied;
};

struct ghp_loader {
    struct ghp_device device;
    struct ghp_load load;
    int64_t labels_at, bytes; /* of a bank */
    struct bank banks[GHP_BANKS];
    struct ghp_supply hinted; /* samples owned */
    int hinted_bank;
    bool has_hint, running; /* running: a thread is at it, or done and not joined */
    int64_t room;           /* of hinted.samples */
    pthread_t thread;
    enum ghp_status status; /* of the thread */
    char message[MESSAGE_BYTES];
};

/* ---- making samples ---- */

static enum ghp_status make(struct ghp_loader *loader, int bank, const struct ghp_supply *supply)
{
    const struct ghp_load *load = &loader->load;
    unsigned char *to = loader->banks[bank].host;

    GHP_TRY(ghp_samples_images(load, supply, (struct ghp_range){0, load->images}, to));
    return ghp_samples_labels(load, supply, (int32_t *)(void *)(to + loader->labels_at));
}

static enum ghp_status send(struct ghp_loader *loader, int bank)
{
    struct bank *b = &loader->banks[bank];
    struct ghp_copy copy = {b->device, b->host, loader->bytes, GHP_COPY_TO_DEVICE};
    struct ghp_device d = loader->device;

    GHP_TRY(ghp_device_copy(d, GHP_DEVICE_STREAM_COPY, copy));
    return d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COPY, b->copied);
}

/* ---- the thread ---- */

static void *make_prefetch(void *argument)
{
    struct ghp_loader *loader = argument;

    loader->status = make(loader, loader->hinted_bank, &loader->hinted);
    if (loader->status == GHP_OK) loader->status = send(loader, loader->hinted_bank);
    if (loader->status != GHP_OK)
        snprintf(loader->message, sizeof(loader->message), "%s", ghp_status_message());
    return NULL;
}

static void join(struct ghp_loader *loader)
{
    if (loader->running) pthread_join(loader->thread, NULL);
    loader->running = false;
}

static bool keep_samples(struct ghp_loader *loader, const struct ghp_supply *next)
{
    int64_t *samples = (int64_t *)(uintptr_t)loader->hinted.samples;

    if (next->n > loader->room) {
        free(samples);
        samples = ghp_alloc((size_t)next->n, sizeof(*samples));
        loader->room = samples != NULL ? next->n : 0;
    }
    loader->hinted = *next;
    loader->hinted.samples = samples;
    if (samples != NULL) memcpy(samples, next->samples, (size_t)next->n * sizeof(*samples));
    return samples != NULL;
}

void ghp_loader_hint(struct ghp_loader *loader, int bank, const struct ghp_supply *next)
{
    join(loader);
    loader->has_hint = false;
    if (!keep_samples(loader, next)) return; /* then it is made when the step comes */
    loader->hinted_bank = bank;
    loader->running = pthread_create(&loader->thread, NULL, make_prefetch, loader) == 0;
    loader->has_hint = loader->running;
}

static bool is_hinted(const struct ghp_loader *loader, int bank, const struct ghp_supply *s)
{
    const struct ghp_supply *h = &loader->hinted;

    return loader->has_hint && loader->hinted_bank == bank && h->step == s->step &&
           h->set == s->set && h->data == s->data && h->n == s->n &&
           memcmp(h->samples, s->samples, (size_t)s->n * sizeof(*s->samples)) == 0;
}

enum ghp_status ghp_loader_supply(struct ghp_loader *loader, int bank, const struct ghp_supply *s)
{
    bool made = is_hinted(loader, bank, s);

    join(loader);
    loader->has_hint = false; /* one hint, one step; and what is made now may overwrite it */
    if (made)
        return loader->status == GHP_OK ? GHP_OK : GHP_FAIL(loader->status, "%s", loader->message);
    GHP_TRY(make(loader, bank, s));
    return send(loader, bank);
}

/* ---- on the device ---- */

enum ghp_status ghp_loader_follow(struct ghp_loader *loader, int bank)
{
    struct ghp_device d = loader->device;

    return d.ops->wait_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, loader->banks[bank].copied);
}

enum ghp_status ghp_loader_take(struct ghp_loader *loader, int bank, void *images, void *labels)
{
    const struct ghp_load *load = &loader->load;
    unsigned char *from = loader->banks[bank].device;

    GHP_TRY(ghp_device_copy(
        loader->device, GHP_DEVICE_STREAM_COMPUTE,
        (struct ghp_copy){images, from, load->images * load->image_bytes, GHP_COPY_ON_DEVICE}));
    return ghp_device_copy(loader->device, GHP_DEVICE_STREAM_COMPUTE,
                           (struct ghp_copy){labels, from + loader->labels_at,
                                             load->labels * (int64_t)sizeof(int32_t),
                                             GHP_COPY_ON_DEVICE});
}

static enum ghp_status open_bank(struct ghp_loader *loader, struct bank *b)
{
    struct ghp_device d = loader->device;
    void *host = NULL, *device = NULL;
    enum ghp_status status = d.ops->allocate_host(d.backend, loader->bytes, &host);

    b->host = host;
    if (status == GHP_OK) status = d.ops->allocate(d.backend, loader->bytes, &device);
    b->device = device;
    return status == GHP_OK ? d.ops->event_open(d.backend, false, &b->copied) : status;
}

enum ghp_status ghp_loader_open(struct ghp_device device, const struct ghp_load *load,
                                struct ghp_loader **result)
{
    enum ghp_status status = GHP_OK;
    struct ghp_loader *loader = ghp_alloc(1, sizeof(*loader));
    int64_t images = load->images * load->image_bytes;

    *result = NULL;
    if (loader == NULL) return GHP_NO_MEMORY();
    loader->device = device;
    loader->load = *load;
    loader->labels_at = ghp_align(images);
    loader->bytes = loader->labels_at + load->labels * (int64_t)sizeof(int32_t);
    for (int i = 0; i < GHP_BANKS; i++)
        GHP_TRY_GOTO(status, open_bank(loader, &loader->banks[i]), fail);
    *result = loader;
    return GHP_OK;
fail:
    ghp_loader_close(loader);
    return status;
}

void ghp_loader_close(struct ghp_loader *loader)
{
    struct ghp_device d;

    if (loader == NULL) return;
    d = loader->device;
    join(loader);
    ghp_device_finish(d, GHP_DEVICE_STREAM_COPY);
    for (int i = 0; i < GHP_BANKS; i++) {
        d.ops->event_close(d.backend, loader->banks[i].copied);
        d.ops->release(d.backend, loader->banks[i].device);
        d.ops->release_host(d.backend, loader->banks[i].host);
    }
    free((int64_t *)(uintptr_t)loader->hinted.samples);
    free(loader);
}
