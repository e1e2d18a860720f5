/* executor/data/samples.c - see samples.h. */
#include "executor/data/samples.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct making {
    const struct ghp_load *load;
    const struct ghp_supply *supply;
    struct ghp_range range;
    unsigned char *images;
    atomic_bool failed;
};

static enum ghp_status make_range(const struct making *m, struct ghp_range range)
{
    const struct ghp_load *load = m->load;
    struct ghp_batch batch = {.set = m->supply->set,
                              .epoch = m->supply->epoch,
                              .samples = m->supply->samples + load->first_image + range.first,
                              .n = range.end - range.first,
                              .first_channel = load->first_channel,
                              .channels = load->channels,
                              .element_bytes = load->element_bytes,
                              .images = m->images + range.first * load->image_bytes};

    return ghp_data_images(m->supply->data, &batch);
}

static void make_part(void *context, struct ghp_part part)
{
    struct making *m = context;
    struct ghp_range range = ghp_part_range(part, m->range.end - m->range.first, 1);

    range.first += m->range.first;
    range.end += m->range.first;
    if (make_range(m, range) != GHP_OK) atomic_store(&m->failed, true);
}

enum ghp_status ghp_samples_check(const struct ghp_load *load, const struct ghp_supply *supply)
{
    int64_t count = ghp_data_count(supply->data, supply->set);

    GHP_ASSERT(load->first_image + load->images <= supply->n);
    for (int64_t i = 0; i < load->images; i++) {
        int64_t sample = supply->samples[load->first_image + i];

        if (sample < 0 || sample >= count)
            return GHP_FAIL(GHP_ERR_INTERNAL, "sample %lld of %lld was asked for; report this",
                            (long long)sample, (long long)count);
    }
    return GHP_OK;
}

enum ghp_status ghp_samples_images(const struct ghp_load *load, const struct ghp_supply *supply,
                                   struct ghp_range range, void *images)
{
    struct making making = {.load = load, .supply = supply, .range = range, .images = images};
    int64_t n = range.end - range.first;

    GHP_TRY(ghp_samples_check(load, supply));
    if (n > 0) ghp_parallel(n < load->threads ? (int)n : load->threads, make_part, &making);
    /* a thread's failure stays with it: this one meets the first of them again */
    return atomic_load(&making.failed) ? make_range(&making, range) : GHP_OK;
}

int64_t ghp_load_label_bytes(const struct ghp_load *load)
{
    return load->labels * load->positions * (int64_t)sizeof(int32_t);
}

/* One sample after the other: a source makes all labels of one. */
static enum ghp_status some_labels(const struct ghp_load *load, const struct ghp_supply *supply,
                                   int32_t *labels)
{
    int32_t *all = ghp_alloc((size_t)load->sample_labels, sizeof *all);
    enum ghp_status status = all == NULL ? GHP_NO_MEMORY() : GHP_OK;

    for (int64_t i = 0; i < load->labels && status == GHP_OK; i++) {
        status = ghp_data_labels(supply->data, supply->set, supply->samples + load->first_label + i,
                                 1, all);
        if (status == GHP_OK)
            memcpy(labels + i * load->positions, all + load->first_position,
                   (size_t)load->positions * sizeof *labels);
    }
    free(all);
    return status;
}

enum ghp_status ghp_samples_labels(const struct ghp_load *load, const struct ghp_supply *supply,
                                   int32_t *labels)
{
    GHP_ASSERT(load->first_label + load->labels <= supply->n);
    if (load->positions < load->sample_labels) return some_labels(load, supply, labels);
    return ghp_data_labels(supply->data, supply->set, supply->samples + load->first_label,
                           load->labels, labels);
}

int64_t ghp_load_second_bytes(const struct ghp_load *load)
{
    return load->blends ? load->labels * (int64_t)sizeof(struct ghp_second_label) : 0;
}

enum ghp_status ghp_samples_seconds(const struct ghp_load *load, const struct ghp_supply *supply,
                                    int32_t *labels, struct ghp_second_label *seconds)
{
    struct ghp_batch batch = {.set = supply->set,
                              .epoch = supply->epoch,
                              .samples = supply->samples + load->first_label,
                              .n = load->labels};

    return ghp_data_blend_labels(supply->data, &batch, labels, seconds);
}
