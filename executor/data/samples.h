/* executor/data/samples.h - what a worker loads of a batch, and making it.
 *
 * A load is the worker's part of every batch; a supply says which samples a batch consists of. Making a sample
 * depends on neither the plan nor the thread, so every thread that makes it makes the same bits. */
#ifndef GHP_EXECUTOR_DATA_SAMPLES_H
#define GHP_EXECUTOR_DATA_SAMPLES_H

#include "executor/data/data.h"
#include "executor/platform/parallel.h"

/* What of a batch a worker loads; of a stage without the input, or without the loss, the one part or the other means
 * nothing. */
struct ghp_load {
    int64_t first_image, images; /* samples of the batch */
    int64_t first_channel, channels;
    int64_t image_bytes;         /* of one sample's local channels */
    int64_t first_label, labels; /* samples whose labels are loaded */
    int64_t sample_labels;       /* of one sample, all of them */
    int64_t first_position,
        positions; /* of these that are loaded: all, or those of some positions */
    int element_bytes;
    int threads; /* that make samples, >= 1 */
    bool blends; /* samples may be blended: labels have second ones */
};

struct ghp_supply {        /* samples of one batch */
    struct ghp_data *data; /* borrowed until the step is done */
    enum ghp_data_set set;
    const int64_t *samples; /* [n] sample numbers of the batch; copied */
    int64_t n;
    int64_t epoch;
    uint64_t step;
};

/* Whether the samples of the load's images are in the source.
 *
 * Returns   GHP_OK; GHP_ERR_INTERNAL naming the sample that is not */
enum ghp_status ghp_samples_check(const struct ghp_load *load, const struct ghp_supply *supply);

/* The load's images in `range` (0 .. load->images - 1), on load->threads threads.
 *
 * images   [load->images][load->image_bytes]; only those of the range are written
 *
 * Returns   what ghp_samples_check and ghp_data_images return
 * Tested    tests/executor/data/test_prefetch.c, test_device.c */
enum ghp_status ghp_samples_images(const struct ghp_load *load, const struct ghp_supply *supply,
                                   struct ghp_range range, void *images);

int64_t ghp_load_label_bytes(const struct ghp_load *load);
/* The load's labels, [load->labels][load->positions].
 *
 * Returns   GHP_OK; GHP_ERR_INTERNAL naming a sample that is not in the source; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_samples_labels(const struct ghp_load *load, const struct ghp_supply *supply,
                                   int32_t *labels);

int64_t ghp_load_second_bytes(const struct ghp_load *load); /* 0: there are none */
/* The second labels of a load that blends, [load->labels]; changes `labels` as ghp_data_blend_labels says. */
enum ghp_status ghp_samples_seconds(const struct ghp_load *load, const struct ghp_supply *supply,
                                    int32_t *labels, struct ghp_second_label *seconds);

#endif
