/* executor/data/pictures.c - which pictures of a folder train, and which test; and reading them. */
#include "executor/data/data_private.h"

#include <math.h>

enum ghp_status ghp_pictures_share(struct ghp_data *data, const struct ghp_data_request *request,
                                   const char *folder)
{
    const struct ghp_pictures *train = &data->pictures[GHP_DATA_TRAIN],
                              *test = &data->pictures[GHP_DATA_TEST];
    int lone = train->n > 0 ? GHP_DATA_TRAIN : GHP_DATA_TEST;

    if (train->n == 0 && test->n == 0)
        return GHP_FAIL(GHP_ERR_IO, "no data in '%s'; it must hold %s", folder, data->ops->files);
    if (train->n > 0 && test->n > 0) {
        if (request->split > 0)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "'%s' has both a training and a test set, so there is nothing to cut; "
                            "leave --train-fraction out",
                            folder);
        for (int set = 0; set < GHP_DATA_SET_COUNT; set++) {
            data->count[set] = data->pictures[set].n;
            data->source[set] = set;
        }
        data->shape = train->shape;
        if (!ghp_shape_equal(train->shape, test->shape))
            return GHP_FAIL(
                GHP_ERR_FORMAT,
                "the training and test images in '%s' differ in size; use files of one data set",
                folder);
        return GHP_OK;
    }
    if (request->split <= 0 && lone == GHP_DATA_TEST)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "'%s' has only the t10k (test) set; cut it in order with --train-fraction F, such "
            "as --train-fraction 0.8",
            folder);
    data->shape = data->pictures[lone].shape;
    data->source[GHP_DATA_TRAIN] = data->source[GHP_DATA_TEST] = lone;
    data->count[GHP_DATA_TRAIN] = data->pictures[lone].n;
    if (request->split > 0)
        data->count[GHP_DATA_TRAIN] =
            (int64_t)floor((double)data->pictures[lone].n * request->split + 1e-9);
    data->first[GHP_DATA_TEST] = data->count[GHP_DATA_TRAIN];
    data->count[GHP_DATA_TEST] = data->pictures[lone].n - data->count[GHP_DATA_TRAIN];
    return GHP_OK;
}

/* ---- reading ---- */

struct channel { /* of one picture: bytes, and what each becomes */
    const unsigned char *bytes;
    const double *value;
    int64_t pixels, stride; /* stride: elements between two pixels */
};

static inline void fill_channel(struct channel channel, int element_bytes, void *out)
{
    for (int64_t i = 0; i < channel.pixels; i++)
        ghp_data_put(out, i * channel.stride, element_bytes, channel.value[channel.bytes[i]]);
}

/* A loop for each kind of number. */
static void put_channel(struct channel channel, int element_bytes, void *out)
{
    switch (element_bytes) {
    case 8: fill_channel(channel, 8, out); break;
    case 4: fill_channel(channel, 4, out); break;
    default: fill_channel(channel, 2, out); break;
    }
}

void ghp_pictures_image(const struct ghp_data *data, int64_t sample, const struct ghp_batch *batch,
                        void *image)
{
    const struct ghp_pictures *pictures = &data->pictures[data->source[batch->set]];
    int64_t pixels = data->shape.h * data->shape.w, n = data->first[batch->set] + sample;

    for (int64_t c = 0; c < batch->channels; c++) {
        int64_t channel = batch->first_channel + c;

        put_channel(
            (struct channel){.bytes = pictures->pixels + (n * data->shape.c + channel) * pixels,
                             .value = data->value + channel * GHP_DATA_BYTE_VALUES,
                             .pixels = pixels,
                             .stride = batch->channels},
            batch->element_bytes, (char *)image + c * batch->element_bytes);
    }
}

void ghp_pictures_labels(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                         int32_t *labels)
{
    labels[0] = data->pictures[data->source[set]].labels[data->first[set] + sample];
}
