/* executor/data/synthetic.c - images or tokens made from numbers: nothing to download, the same for everyone with the
 * same seed.
 *
 * Each class has a pattern of random tiles; a sample (of a sequence with labels, each position) is its class's pattern
 * plus noise of the same strength, scaled to about unit deviation, so that a network can learn it but not at once. If
 * labels are numbers, samples are of a few kinds in place of classes, and a kind's labels are normal numbers, or its
 * own class where they are classes. A
 * sample depends on seed and number alone and is made when asked for.
 *
 * Of tokens three in four follow from the one before, by one rule for all samples; the others are drawn. Labels are one
 * position ahead. */
#include "executor/data/data_private.h"

#include "executor/platform/random.h"

#include <stdlib.h>

enum {
    TRAIN_SAMPLES = 8192, /* or the global batch, if that is more */
    TEST_SAMPLES = 1024,
    MOST_TILES = 8, /* in each direction */
    KINDS = 8       /* of samples whose labels are numbers */
};

/* Streams of random numbers: what a number is for. */
enum {
    STREAM_PATTERN = 0x70617474,
    STREAM_LABEL = 0x6c616265,
    STREAM_NOISE = 0x6e6f6973,
    STREAM_TARGET = 0x74617267,
    STREAM_TOKEN = 0x746f6b65
};

struct synthetic {
    bool numbers;           /* labels are */
    int64_t tile_h, tile_w; /* of the class patterns */
    float noise[256];       /* what a random byte adds */
    float *patterns;        /* [classes][c][tile_h][tile_w], owned */
};

static const double pattern_scale = 0.7071067811865476,
                    noise_scale = 0.7071067811865476; /* squares sum to 1 */
/* a byte less 127.5 has deviation sqrt((256^2 - 1) / 12): one over it */
static const double byte_unit = 0.01353164693413614;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static enum ghp_status synthetic_open(const struct ghp_data_request *request, const char *folder,
                                      struct ghp_data *data)
{
    struct synthetic *own = data->own;
    int64_t values;

    (void)folder;
    if (request->split > 0)
        return GHP_FAIL(GHP_ERR_USAGE, "synthetic data has a test set of its own; leave "
                                       "--train-fraction out, or use --data idx:DIR");
    data->shape = request->shape;
    data->classes = request->targets.c > 0 ? KINDS : request->classes;
    own->numbers = request->targets.c > 0;
    data->count[GHP_DATA_TRAIN] =
        request->global_batch > TRAIN_SAMPLES ? request->global_batch : TRAIN_SAMPLES;
    data->count[GHP_DATA_TEST] = TEST_SAMPLES;
    if (data->shape.vocabulary > 0) return GHP_OK;
    own->tile_h = smaller(data->shape.h, MOST_TILES);
    own->tile_w = smaller(data->shape.w, MOST_TILES);
    for (int byte = 0; byte < 256; byte++)
        own->noise[byte] = (float)(noise_scale * byte_unit * ((double)byte - 127.5));
    values = data->classes * data->shape.c * own->tile_h * own->tile_w;
    own->patterns = ghp_alloc((size_t)values, sizeof *own->patterns);
    if (own->patterns == NULL) return GHP_NO_MEMORY();
    ghp_random_fill_normal(request->seed, STREAM_PATTERN, 0, values, pattern_scale,
                           (int)sizeof(float), own->patterns);
    return GHP_OK;
}

static void synthetic_close(void *own)
{
    free(((struct synthetic *)own)->patterns);
}

/* Sample number over both sets: the test set follows the training set. */
static int64_t number_of(const struct ghp_data *data, enum ghp_data_set set, int64_t sample)
{
    return set == GHP_DATA_TEST ? data->count[GHP_DATA_TRAIN] + sample : sample;
}

static int32_t label_at(const struct ghp_data *data, int64_t number, int64_t at)
{
    return (int32_t)(ghp_random_u64(data->seed, STREAM_LABEL,
                                    (uint64_t)(number * data->sample_labels + at)) %
                     (uint64_t)data->classes);
}

/* The sample's tokens from the second or the first on, [positions]. */
static void make_tokens(const struct ghp_data *data, int64_t number, bool ahead, int32_t *ids)
{
    uint64_t vocabulary = (uint64_t)data->shape.vocabulary, token = 0;

    for (int64_t i = 0; i < data->shape.h + (ahead ? 1 : 0); i++) {
        uint64_t drawn =
            ghp_random_u64(data->seed, STREAM_TOKEN, (uint64_t)(number * (data->shape.h + 1) + i));

        token = i == 0 || drawn % 4 == 0 ? drawn / 4 % vocabulary : (5 * token + 3) % vocabulary;
        if (i >= (ahead ? 1 : 0)) *ids++ = (int32_t)token;
    }
}

static void synthetic_labels(const struct ghp_data *data, enum ghp_data_set set, int64_t sample,
                             int32_t *labels)
{
    if (((const struct synthetic *)data->own)->numbers) {
        int64_t kind = label_at(data, number_of(data, set, sample), 0);

        ghp_random_fill_normal(data->seed, STREAM_TARGET, kind * data->sample_labels,
                               data->sample_labels, 1, (int)sizeof(float), labels);
        for (int64_t i = 0; data->mixes && i < data->sample_labels; i++) {
            int64_t classes = data->outputs.classes[ghp_label_output(&data->outputs, i)];

            if (classes > 0) labels[i] = ghp_label_of_number((float)(kind % classes));
        }
        return;
    }
    if (data->shape.vocabulary > 0 && data->sample_labels == data->shape.h) {
        make_tokens(data, number_of(data, set, sample), true, labels);
        for (int64_t i = 0; i < data->sample_labels; i++)
            labels[i] %= data->classes;
        return;
    }
    for (int64_t i = 0; i < data->sample_labels; i++)
        labels[i] = label_at(data, number_of(data, set, sample), i);
}

/* One step of a fast generator (xorshift64*), seeded for each row of a sample's channel; its bytes are the noise. */
static uint64_t next_noise(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* A row of one channel, pixels `stride` elements apart. */
struct row {
    const float *tiles; /* of this class, channel and row */
    uint64_t noise;
    int64_t stride;
};

/* Pixel w lies in tile w * tile_w / shape.w, tile_w <= shape.w: `part` is that product's remainder. */
static inline void fill_row(const struct ghp_data *data, struct row row, int element_bytes,
                            void *out)
{
    const struct synthetic *own = data->own;
    uint64_t bits = 0;
    int64_t part = 0;

    for (int64_t w = 0; w < data->shape.w; w++) {
        if (w % 8 == 0) bits = next_noise(&row.noise);
        ghp_element_set(out, w * row.stride, element_bytes,
                        (double)(*row.tiles + own->noise[bits & 255]));
        bits >>= 8;
        part += own->tile_w;
        if (part < data->shape.w) continue;
        part -= data->shape.w;
        row.tiles++;
    }
}

/* A loop for each kind of number. */
static void make_row(const struct ghp_data *data, struct row row, int element_bytes, void *out)
{
    switch (element_bytes) {
    case 8: fill_row(data, row, 8, out); break;
    case 4: fill_row(data, row, 4, out); break;
    default: fill_row(data, row, 2, out); break;
    }
}

/* The rows of one channel. Each has the pattern of the class at its place: of several labels, its own. */
static void make_channel(const struct ghp_data *data, int64_t number, int64_t channel,
                         const struct ghp_batch *batch, void *image)
{
    const struct synthetic *own = data->own;
    struct ghp_shape s = data->shape;
    uint64_t key = ghp_random_u64(data->seed, STREAM_NOISE, (uint64_t)number);
    int64_t label = -1, place = -1, tiles = own->tile_h * own->tile_w;
    int64_t places = own->numbers ? 1 : data->sample_labels;

    for (int64_t h = 0; h < s.h; h++) {
        struct row row = {.noise = mix(key ^ mix((uint64_t)(channel * s.h + h) + 1)) | 1,
                          .stride = batch->channels};

        if (place != h * places / s.h) {
            place = h * places / s.h;
            label = label_at(data, number, place);
        }
        row.tiles =
            own->patterns + (label * s.c + channel) * tiles + h * own->tile_h / s.h * own->tile_w;
        make_row(data, row, batch->element_bytes,
                 (char *)image + h * s.w * batch->channels * batch->element_bytes);
    }
}

static enum ghp_status synthetic_image(const struct ghp_data *data, int64_t sample,
                                       const struct ghp_batch *batch, void *image)
{
    int64_t number = number_of(data, batch->set, sample);

    if (data->shape.vocabulary > 0) {
        make_tokens(data, number, false, image);
        return GHP_OK;
    }
    for (int64_t c = 0; c < batch->channels; c++)
        make_channel(data, number, batch->first_channel + c, batch,
                     (char *)image + c * batch->element_bytes);
    return GHP_OK;
}

const struct ghp_data_ops ghp_data_synthetic = {.name = "synthetic",
                                                .own_bytes = sizeof(struct synthetic),
                                                .open = synthetic_open,
                                                .close = synthetic_close,
                                                .image = synthetic_image,
                                                .labels = synthetic_labels};
