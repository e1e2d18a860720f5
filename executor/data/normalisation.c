/* executor/data/normalisation.c - what the numbers of images become: by the training set, by ImageNet, by given
 * numbers, or only bytes as parts of 255. */
#include "executor/data/data_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_MOST = 64 }; /* that may be given one by one */

/* of red, green, blue, in parts of 255; of luminance their means */
static const double imagenet_mean[] = {0.485, 0.456, 0.406},
                    imagenet_deviation[] = {0.229, 0.224, 0.225};
static const double grey_mean = 0.449, grey_deviation = 0.226;

static bool is_folder(const struct ghp_data *data)
{
    return data->ops == &ghp_data_folder;
}

static const struct ghp_pictures *training_set(const struct ghp_data *data)
{
    return ghp_data_pictures(data, data->source[GHP_DATA_TRAIN]);
}

static bool has_bytes(const struct ghp_data *data)
{
    return is_folder(data) || training_set(data)->number == GHP_NUMBER_BYTE;
}

/* ---- the training set's ---- */

/* How often each byte is in a channel of the training set. */
static void count_bytes(const struct ghp_data *data, int64_t c, int64_t seen[GHP_DATA_BYTE_VALUES])
{
    const struct ghp_pictures *pictures = training_set(data);
    int64_t first = data->first[GHP_DATA_TRAIN], end = first + data->count[GHP_DATA_TRAIN];

    for (int f = 0; f < pictures->n_files; f++) {
        const struct ghp_picture_file *file = &pictures->files[f];

        for (int64_t p = file->first; p < file->first + file->n; p++) {
            const unsigned char *at = file->pixels + (p - file->first) * file->picture_bytes +
                                      c * pictures->channel_stride;

            if (p < first || p >= end) continue;
            for (int64_t i = 0; i < data->shape.h * data->shape.w; i++)
                seen[at[i * pictures->pixel_stride]]++;
        }
    }
}

/* Sums of whole numbers, so exact. */
static void measure_channel(struct ghp_data *data, int64_t c)
{
    int64_t seen[GHP_DATA_BYTE_VALUES] = {0};
    double n = (double)(data->count[GHP_DATA_TRAIN] * data->shape.h * data->shape.w), sum = 0,
           square = 0, mean, deviation;

    count_bytes(data, c, seen);
    for (int b = 0; b < GHP_DATA_BYTE_VALUES; b++) {
        sum += (double)seen[b] * b;
        square += (double)seen[b] * b * b;
    }
    mean = sum / n;
    deviation = sqrt(square / n - mean * mean);
    data->normalisation.mean[c] = mean;
    /* a constant channel stays constant */
    data->normalisation.deviation[c] = deviation > 0 ? deviation : 1;
}

static enum ghp_status take_training_set(struct ghp_data *data)
{
    if (is_folder(data) || !has_bytes(data))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--normalise train is for bytes of idx, cifar10, cifar100 and npy, which "
                        "are counted at once; give --normalise imagenet, none or MEAN:DEVIATION");
    for (int64_t c = 0; c < data->shape.c; c++)
        measure_channel(data, c);
    data->normalisation.text = "the training set";
    return GHP_OK;
}

/* ---- given ones ---- */

static enum ghp_status take_imagenet(struct ghp_data *data)
{
    struct ghp_normalisation *n = &data->normalisation;

    if (data->shape.c != 1 && data->shape.c != 3)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--normalise imagenet is for 1 or 3 channels, and samples have %lld; give "
                        "--normalise MEAN:DEVIATION",
                        (long long)data->shape.c);
    for (int64_t c = 0; c < data->shape.c; c++) {
        n->mean[c] = data->shape.c == 1 ? grey_mean : imagenet_mean[c];
        n->deviation[c] = data->shape.c == 1 ? grey_deviation : imagenet_deviation[c];
    }
    n->text = "ImageNet's mean and deviation";
    return GHP_OK;
}

/* Numbers with commas between, up to `end`. Returns how many; -1: something else. */
static int read_numbers(const char *text, const char *end, double *numbers)
{
    int n = 0;

    for (;;) {
        char *behind;

        if (n == CHANNELS_MOST) return -1;
        numbers[n] = strtod(text, &behind);
        if (behind == text || behind > end || !isfinite(numbers[n])) return -1;
        n++;
        if (behind == end) return n;
        if (*behind != ',') return -1;
        text = behind + 1;
    }
}

static enum ghp_status take_given(struct ghp_data *data, const char *text)
{
    double mean[CHANNELS_MOST], deviation[CHANNELS_MOST];
    const char *colon = strchr(text, ':');
    int means = colon != NULL ? read_numbers(text, colon, mean) : -1,
        deviations = colon != NULL ? read_numbers(colon + 1, text + strlen(text), deviation) : -1;

    for (int i = 0; i < deviations; i++)
        if (!(deviation[i] > 0)) deviations = -1;
    if (means < 1 || deviations < 1)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "--normalise is '%s'; give train, imagenet, none, unit, or means and positive "
            "deviations, such as 0.5:0.25 or 0.49,0.48,0.45:0.25,0.24,0.26",
            text);
    if ((means != 1 && means != data->shape.c) || (deviations != 1 && deviations != data->shape.c))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--normalise gives %d means and %d deviations, and samples have %lld "
                        "channels; give one, or one for each",
                        means, deviations, (long long)data->shape.c);
    for (int64_t c = 0; c < data->shape.c; c++) {
        data->normalisation.mean[c] = mean[means == 1 ? 0 : c];
        data->normalisation.deviation[c] = deviation[deviations == 1 ? 0 : c];
    }
    data->normalisation.text = "given means and deviations";
    return GHP_OK;
}

static enum ghp_status take_none(struct ghp_data *data)
{
    for (int64_t c = 0; c < data->shape.c; c++) {
        data->normalisation.mean[c] = 0;
        data->normalisation.deviation[c] = 1;
    }
    data->normalisation.text = has_bytes(data) ? "255" : NULL;
    return GHP_OK;
}

/* Whether the pictures of all sets are bytes, not those of the training set alone. */
static bool all_bytes(const struct ghp_data *data)
{
    for (int i = 0; i < GHP_DATA_SET_COUNT && !is_folder(data); i++) {
        const struct ghp_pictures *pictures = ghp_data_pictures(data, i);

        if (pictures->n > 0 && pictures->number != GHP_NUMBER_BYTE) return false;
    }
    return !is_folder(data);
}

static enum ghp_status take_unit(struct ghp_data *data)
{
    if (!all_bytes(data))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--normalise unit is for bytes of idx, cifar10, cifar100 and npy; give "
                        "--normalise none or MEAN:DEVIATION");
    GHP_TRY(take_none(data));
    data->normalisation.unit = true;
    data->normalisation.text = "each one's length";
    return GHP_OK;
}

/* ---- the table ---- */

static const char *usual(const struct ghp_data *data)
{
    return is_folder(data) ? "imagenet" : has_bytes(data) ? "train" : "none";
}

static enum ghp_status make_table(struct ghp_data *data, double unit)
{
    struct ghp_normalisation *n = &data->normalisation;

    n->value = ghp_alloc((size_t)(data->shape.c * GHP_DATA_BYTE_VALUES), sizeof *n->value);
    if (n->value == NULL) return GHP_NO_MEMORY();
    for (int64_t c = 0; c < data->shape.c; c++)
        for (int b = 0; b < GHP_DATA_BYTE_VALUES; b++)
            n->value[c * GHP_DATA_BYTE_VALUES + b] = (b / unit - n->mean[c]) / n->deviation[c];
    return GHP_OK;
}

enum ghp_status ghp_normalisation_init(struct ghp_data *data,
                                       const struct ghp_data_request *request)
{
    struct ghp_normalisation *n = &data->normalisation;
    const char *normalise = request->normalise != NULL ? request->normalise : usual(data);
    bool trains = strcmp(normalise, "train") == 0;

    n->mean = ghp_alloc((size_t)data->shape.c, sizeof *n->mean);
    n->deviation = ghp_alloc((size_t)data->shape.c, sizeof *n->deviation);
    if (n->mean == NULL || n->deviation == NULL) return GHP_NO_MEMORY();
    if (trains)
        GHP_TRY(take_training_set(data));
    else if (strcmp(normalise, "imagenet") == 0)
        GHP_TRY(take_imagenet(data));
    else if (strcmp(normalise, "unit") == 0)
        GHP_TRY(take_unit(data));
    else if (strcmp(normalise, "none") == 0)
        GHP_TRY(take_none(data));
    else
        GHP_TRY(take_given(data, normalise));
    return has_bytes(data) ? make_table(data, trains ? 1 : GHP_DATA_BYTE_VALUES - 1) : GHP_OK;
}

void ghp_normalisation_release(struct ghp_normalisation *n)
{
    free(n->value);
    free(n->mean);
    free(n->deviation);
    *n = (struct ghp_normalisation){0};
}
