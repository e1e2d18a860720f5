/* executor/engine/loader.c - see loader.h. */
#include "executor/engine/loader.h"

#include "executor/engine/timeline.h"

#include <stdlib.h>
#include <string.h>

struct half {
    unsigned char *samples;          /* of all micro-batches, as in `pinned` */
    struct ghp_device_event *copied; /* the samples are there */
};

struct ghp_loader {
    struct ghp_loader_plan plan;
    struct ghp_supply step; /* the present one */
    struct ghp_supply next; /* hinted: its first micro-batch; samples owned */
    bool has_next;
    struct ghp_prefetch *prefetch; /* NULL: none */
    /* in host memory, of all micro-batches, owned; NULL: none */
    struct ghp_second_label *seconds;
    /* on a device */
    int64_t labels_at, seconds_at, bytes; /* of a micro-batch: images, labels, second labels */
    unsigned char *ahead;                 /* the prefetch's place */
    unsigned char *pinned;                /* of all micro-batches */
    struct half halves[GHP_HALVES];
    int half; /* of the present step */
};

bool ghp_loader_is_double_buffered(const struct ghp_loader *l)
{
    return !ghp_device_is_host(l->plan.device);
}

bool ghp_loader_prefetches(const struct ghp_loader *l)
{
    return l->prefetch != NULL;
}

struct ghp_prefetch_count ghp_loader_prefetched(const struct ghp_loader *l)
{
    return ghp_prefetch_counted(l->prefetch);
}

void ghp_loader_hint(struct ghp_loader *l, const struct ghp_supply *next)
{
    int64_t *samples = (int64_t *)(uintptr_t)l->next.samples;

    if (l->prefetch == NULL) return;
    memcpy(samples, next->samples, (size_t)l->plan.micro_batch * sizeof *samples);
    l->next = *next;
    l->next.n = l->plan.micro_batch;
    l->next.samples = samples;
    l->has_next = true;
}

/* ---- making samples ---- */

static struct ghp_supply micro_batch_of(const struct ghp_loader *l, int micro)
{
    struct ghp_supply supply = l->step;

    supply.samples += micro * l->plan.micro_batch;
    supply.n = l->plan.micro_batch;
    return supply;
}

static enum ghp_status make_images(struct ghp_loader *l, int micro, void *images)
{
    const struct ghp_load *load = &l->plan.load;
    struct ghp_supply supply = micro_batch_of(l, micro);

    if (l->prefetch != NULL) return ghp_prefetch_take(l->prefetch, &supply, images);
    return ghp_samples_images(load, &supply, (struct ghp_range){0, load->images}, images);
}

static enum ghp_status make_labels(const struct ghp_loader *l, int micro, void *labels,
                                   struct ghp_second_label *seconds)
{
    struct ghp_supply supply = micro_batch_of(l, micro);

    GHP_TRY(ghp_samples_labels(&l->plan.load, &supply, labels));
    return l->plan.load.blends ? ghp_samples_seconds(&l->plan.load, &supply, labels, seconds)
                               : GHP_OK;
}

/* What is made after a micro-batch's images can be made from now on. */
static void prefetch_after(struct ghp_loader *l, int micro)
{
    if (l->prefetch == NULL) return;
    if (micro + 1 < l->plan.micro_batches) {
        struct ghp_supply supply = micro_batch_of(l, micro + 1);

        ghp_prefetch_hint(l->prefetch, &supply);
    } else if (l->has_next) {
        ghp_prefetch_hint(l->prefetch, &l->next);
        l->has_next = false;
    }
}

/* ---- a step ---- */

/* All of a step's samples on their way into the half, which the compute stream waits for. */
static enum ghp_status fill_half(struct ghp_loader *l, struct half *half)
{
    struct ghp_device d = l->plan.device;
    struct ghp_copy copy = {half->samples, l->pinned, l->plan.micro_batches * l->bytes,
                            GHP_COPY_TO_DEVICE};

    if (l->bytes == 0) return GHP_OK;
    GHP_TRY(ghp_device_finish(d, GHP_DEVICE_STREAM_COPY)); /* `pinned` was read */
    for (int micro = 0; micro < l->plan.micro_batches; micro++) {
        unsigned char *to = l->pinned + micro * l->bytes;

        if (l->plan.load.images > 0) GHP_TRY(make_images(l, micro, to));
        if (l->plan.load.labels > 0)
            GHP_TRY(make_labels(l, micro, to + l->labels_at, (void *)(to + l->seconds_at)));
    }
    GHP_TRY(ghp_device_copy(d, GHP_DEVICE_STREAM_COPY, copy));
    GHP_TRY(d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COPY, half->copied));
    return d.ops->wait_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, half->copied);
}

enum ghp_status ghp_loader_begin(struct ghp_loader *l, int half, const struct ghp_supply *supply)
{
    l->step = *supply;
    l->half = half;
    return ghp_loader_is_double_buffered(l) ? fill_half(l, &l->halves[half]) : GHP_OK;
}

static enum ghp_status load_here(struct ghp_loader *l, int micro, void *images, void *labels)
{
    if (images != NULL) {
        GHP_TRY(make_images(l, micro, images));
        prefetch_after(l, micro);
    }
    if (labels == NULL) return GHP_OK;
    return make_labels(l, micro, labels,
                       l->seconds != NULL ? l->seconds + micro * l->plan.load.labels : NULL);
}

const struct ghp_second_label *ghp_loader_seconds(const struct ghp_loader *l, int micro)
{
    if (!l->plan.load.blends || l->plan.load.labels == 0) return NULL;
    if (!ghp_loader_is_double_buffered(l)) return l->seconds + micro * l->plan.load.labels;
    return (const void *)(l->halves[l->half].samples + micro * l->bytes + l->seconds_at);
}

static enum ghp_status copy_to(const struct ghp_loader *l, void *to, const void *from,
                               int64_t bytes)
{
    if (to == NULL) return GHP_OK;
    return ghp_device_copy(l->plan.device, GHP_DEVICE_STREAM_COMPUTE,
                           (struct ghp_copy){to, from, bytes, GHP_COPY_ON_DEVICE});
}

enum ghp_status ghp_loader_load(struct ghp_loader *l, int micro, void *images, void *labels)
{
    const struct ghp_load *load = &l->plan.load;
    const unsigned char *from;

    if (!ghp_loader_is_double_buffered(l)) return load_here(l, micro, images, labels);
    from = l->halves[l->half].samples + micro * l->bytes;
    GHP_TRY(copy_to(l, images, from, load->images * load->image_bytes));
    return copy_to(l, labels, from + l->labels_at, ghp_load_label_bytes(load));
}

void ghp_loader_end(struct ghp_loader *l)
{
    if (ghp_loader_is_double_buffered(l)) prefetch_after(l, l->plan.micro_batches - 1);
}

/* ---- opening ---- */

static enum ghp_status open_half(struct ghp_loader *l, struct half *half)
{
    struct ghp_device d = l->plan.device;
    void *samples = NULL;

    GHP_TRY(d.ops->allocate(d.backend, l->plan.micro_batches * l->bytes, &samples));
    half->samples = samples;
    return d.ops->event_open(d.backend, false, &half->copied);
}

static enum ghp_status open_halves(struct ghp_loader *l)
{
    const struct ghp_load *load = &l->plan.load;
    struct ghp_device d = l->plan.device;
    int64_t images = load->images * load->image_bytes;
    void *pinned = NULL;

    l->labels_at = ghp_align(images);
    l->seconds_at = ghp_align(l->labels_at + ghp_load_label_bytes(load));
    l->bytes = ghp_align(l->seconds_at + ghp_load_second_bytes(load));
    if (l->bytes == 0) return GHP_OK;
    GHP_TRY(d.ops->allocate_host(d.backend, l->plan.micro_batches * l->bytes, &pinned));
    l->pinned = pinned;
    for (int i = 0; i < GHP_HALVES; i++)
        GHP_TRY(open_half(l, &l->halves[i]));
    if (images == 0) return GHP_OK;
    l->plan.place = l->ahead = ghp_alloc((size_t)images, 1);
    return l->ahead != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static enum ghp_status open_seconds(struct ghp_loader *l)
{
    int64_t n = l->plan.load.blends ? l->plan.micro_batches * l->plan.load.labels : 0;

    if (n == 0) return GHP_OK;
    l->seconds = ghp_alloc((size_t)n, sizeof *l->seconds);
    return l->seconds != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static enum ghp_status open_prefetch(struct ghp_loader *l)
{
    if (l->plan.place == NULL) return GHP_OK;
    l->next.samples = ghp_alloc((size_t)l->plan.micro_batch, sizeof *l->next.samples);
    if (l->next.samples == NULL) return GHP_NO_MEMORY();
    return ghp_prefetch_open(&l->plan.load, l->plan.place, &l->prefetch);
}

enum ghp_status ghp_loader_open(const struct ghp_loader_plan *plan, struct ghp_loader **loader)
{
    struct ghp_loader *l = ghp_alloc(1, sizeof *l);
    enum ghp_status status = GHP_OK;

    *loader = NULL;
    if (l == NULL) return GHP_NO_MEMORY();
    l->plan = *plan;
    status = ghp_loader_is_double_buffered(l) ? open_halves(l) : open_seconds(l);
    if (status == GHP_OK) status = open_prefetch(l);
    if (status != GHP_OK)
        ghp_loader_close(l);
    else
        *loader = l;
    return status;
}

void ghp_loader_close(struct ghp_loader *l)
{
    struct ghp_device d;

    if (l == NULL) return;
    d = l->plan.device;
    ghp_prefetch_close(l->prefetch);
    ghp_device_finish(d, GHP_DEVICE_STREAM_COPY);
    for (int i = 0; i < GHP_HALVES; i++) {
        d.ops->event_close(d.backend, l->halves[i].copied);
        d.ops->release(d.backend, l->halves[i].samples);
    }
    d.ops->release_host(d.backend, l->pinned);
    free(l->seconds);
    free(l->ahead);
    free((int64_t *)(uintptr_t)l->next.samples);
    free(l);
}
