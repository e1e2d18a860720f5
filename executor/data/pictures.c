/* executor/data/pictures.c - samples of a fixed size in files: which train and which test, and reading them. */
#include "executor/data/data_private.h"
#include "executor/data/mapped_file.h"
#include "executor/data/npy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ghp_pictures *ghp_data_pictures(const struct ghp_data *data, int set)
{
    return data->ops->close == ghp_pictures_close ? (struct ghp_pictures *)data->own + set : NULL;
}

enum ghp_status ghp_pictures_divide(struct ghp_data *data, const struct ghp_data_request *request,
                                    const char *folder)
{
    const struct ghp_pictures *sets = data->own, *train = &sets[GHP_DATA_TRAIN],
                              *test = &sets[GHP_DATA_TEST];
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
            data->count[set] = sets[set].n;
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
        return GHP_FAIL(GHP_ERR_USAGE,
                        "'%s' has only a test set; cut it in order with --train-fraction F, such "
                        "as --train-fraction 0.8",
                        folder);
    data->shape = sets[lone].shape;
    data->source[GHP_DATA_TRAIN] = data->source[GHP_DATA_TEST] = lone;
    data->count[GHP_DATA_TRAIN] = sets[lone].n;
    if (request->split > 0)
        data->count[GHP_DATA_TRAIN] = (int64_t)floor((double)sets[lone].n * request->split + 1e-9);
    data->first[GHP_DATA_TEST] = data->count[GHP_DATA_TRAIN];
    data->count[GHP_DATA_TEST] = sets[lone].n - data->count[GHP_DATA_TRAIN];
    return GHP_OK;
}

/* ---- reading ---- */

static inline void fill(struct ghp_bytes b, int element_bytes, void *to)
{
    for (int64_t i = 0; i < b.pixels; i++)
        ghp_element_set(to, i * b.to_stride, element_bytes, b.value[b.from[i * b.from_stride]]);
}

void ghp_bytes_put(struct ghp_bytes bytes, int element_bytes, void *to)
{
    switch (element_bytes) {
    case 8: fill(bytes, 8, to); break;
    case 4: fill(bytes, 4, to); break;
    default: fill(bytes, 2, to); break;
    }
}

/* The file that a picture is in. */
static const struct ghp_picture_file *file_of(const struct ghp_pictures *pictures, int64_t picture)
{
    int first = 0, end = pictures->n_files;

    while (end - first > 1) {
        int middle = first + (end - first) / 2;

        if (pictures->files[middle].first <= picture)
            first = middle;
        else
            end = middle;
    }
    return &pictures->files[first];
}

static const unsigned char *bytes_of(const struct ghp_pictures *pictures, int64_t picture)
{
    const struct ghp_picture_file *file = file_of(pictures, picture);

    return file->pixels + (picture - file->first) * file->picture_bytes;
}

/* Channel c of a picture of floating-point numbers. */
static void put_numbers(const struct ghp_data *data, const struct ghp_pictures *pictures,
                        const unsigned char *picture, int64_t c, const struct ghp_batch *batch,
                        void *out)
{
    double mean = data->normalisation.mean[c], deviation = data->normalisation.deviation[c];

    for (int64_t i = 0; i < data->shape.h * data->shape.w; i++) {
        double number = ghp_number_at(pictures->number, picture,
                                      c * pictures->channel_stride + i * pictures->pixel_stride);

        ghp_element_set(out, i * batch->channels, batch->element_bytes,
                        (number - mean) / deviation);
    }
}

/* What divides a sample of bytes: its length, over all channels. */
static double length_of(const struct ghp_data *data, const struct ghp_pictures *pictures,
                        const unsigned char *picture)
{
    double sum = 0;

    if (!data->normalisation.unit) return 1;
    for (int64_t c = 0; c < data->shape.c; c++)
        for (int64_t i = 0; i < data->shape.h * data->shape.w; i++) {
            double x =
                data->normalisation
                    .value[c * GHP_DATA_BYTE_VALUES +
                           picture[c * pictures->channel_stride + i * pictures->pixel_stride]];

            sum += x * x;
        }
    return sum > 0 ? sqrt(sum) : 1;
}

static void put_ids(const struct ghp_pictures *pictures, const unsigned char *picture, int32_t *ids)
{
    const struct ghp_npy array = {
        .kind = pictures->id_kind, .item_bytes = pictures->id_bytes, .items = picture};

    for (int64_t i = 0; i < pictures->shape.h; i++) {
        int64_t id = 0;

        ghp_npy_integer(&array, i, &id); /* all were looked at */
        ids[i] = (int32_t)id;
    }
}

enum ghp_status ghp_pictures_image(const struct ghp_data *data, int64_t sample,
                                   const struct ghp_batch *batch, void *image)
{
    const struct ghp_pictures *pictures = ghp_data_pictures(data, data->source[batch->set]);
    int64_t n = data->first[batch->set] + sample;
    const unsigned char *picture = bytes_of(pictures, n);
    bool bytes = pictures->number == GHP_NUMBER_BYTE;
    double scaled[GHP_DATA_BYTE_VALUES], length = bytes ? length_of(data, pictures, picture) : 1;

    if (pictures->number == GHP_NUMBER_ID) {
        put_ids(pictures, picture, image);
        return GHP_OK;
    }
    for (int64_t i = 0; i < batch->channels; i++) {
        int64_t c = batch->first_channel + i;
        char *out = (char *)image + i * batch->element_bytes;
        const double *value = bytes ? data->normalisation.value + c * GHP_DATA_BYTE_VALUES : NULL;

        for (int b = 0; data->normalisation.unit && b < GHP_DATA_BYTE_VALUES; b++)
            scaled[b] = value[b] / length;
        if (bytes)
            ghp_bytes_put((struct ghp_bytes){.from = picture + c * pictures->channel_stride,
                                             .value = data->normalisation.unit ? scaled : value,
                                             .pixels = data->shape.h * data->shape.w,
                                             .from_stride = pictures->pixel_stride,
                                             .to_stride = batch->channels},
                          batch->element_bytes, out);
        else
            put_numbers(data, pictures, picture, c, batch, out);
    }
    return GHP_OK;
}

int64_t ghp_pictures_count_labels(const struct ghp_pictures *pictures)
{
    return pictures->picture_labels > 0 ? pictures->picture_labels : 1;
}

/* As numbers, [pixel][channel]. */
static void put_targets(const struct ghp_pictures *targets, const unsigned char *target,
                        int32_t *labels)
{
    int64_t channels = targets->shape.c, pixels = targets->shape.h * targets->shape.w;

    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c++)
            labels[i * channels + c] = ghp_label_of_number((float)ghp_number_at(
                targets->number, target, c * targets->channel_stride + i * targets->pixel_stride));
}

void ghp_pictures_labels(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                         int32_t *labels)
{
    const struct ghp_pictures *pictures = ghp_data_pictures(data, data->source[set]);
    int64_t each = ghp_pictures_count_labels(pictures), n = data->first[set] + sample;

    if (pictures->targets != NULL)
        put_targets(pictures->targets, bytes_of(pictures->targets, n), labels);
    else
        memcpy(labels, pictures->labels + n * each, (size_t)each * sizeof *labels);
}

/* ---- a set ---- */

static void release_file(struct ghp_picture_file *file)
{
    if (file->mapped_bytes > 0)
        ghp_mapped_file_close(file->memory, file->mapped_bytes);
    else
        free(file->memory);
}

enum ghp_status ghp_pictures_add(struct ghp_pictures *pictures, struct ghp_picture_file file,
                                 int32_t **labels)
{
    struct ghp_picture_file *files =
        realloc(pictures->files, (size_t)(pictures->n_files + 1) * sizeof *files);
    bool failed = files == NULL;

    if (files != NULL) pictures->files = files;
    if (labels != NULL) {
        size_t each = (size_t)ghp_pictures_count_labels(pictures);
        int32_t *all =
            realloc(pictures->labels, (size_t)(pictures->n + file.n) * each * sizeof *all);

        if (all != NULL) {
            pictures->labels = all;
            *labels = all + (size_t)pictures->n * each;
        }
        failed = failed || all == NULL;
    }
    if (failed) {
        release_file(&file);
        return GHP_NO_MEMORY();
    }
    file.first = pictures->n;
    files[pictures->n_files++] = file;
    pictures->n += file.n;
    return GHP_OK;
}

static void release(struct ghp_pictures *pictures)
{
    for (int i = 0; i < pictures->n_files; i++)
        release_file(&pictures->files[i]);
    if (pictures->targets != NULL) release(pictures->targets);
    free(pictures->targets);
    free(pictures->files);
    free(pictures->labels);
}

void ghp_pictures_close(void *own)
{
    for (int set = 0; set < GHP_DATA_SET_COUNT; set++)
        release((struct ghp_pictures *)own + set);
}
