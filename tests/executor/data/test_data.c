/* Data sources: files made here, their normalisation, cutting, every way in which they can be wrong; and the
 * generator. */
#include "core/model/precision.h"
#include "executor/data/data_private.h"
#include "executor/data/fingerprint.h"
#include "tests/check.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { SIDE = 4, IMAGES = 10 };

static const char *folder;

static void write_file(const char *name, const void *bytes, size_t n, bool packed)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s%s", folder, name, packed ? ".gz" : "");
    if (packed) {
        gzFile file = gzopen(path, "wb");

        CHECK(file != NULL && gzwrite(file, bytes, (unsigned)n) == (int)n);
        gzclose(file);
    } else {
        FILE *file = fopen(path, "wb");

        CHECK(file != NULL && fwrite(bytes, 1, n, file) == n);
        fclose(file);
    }
}

static void remove_all(void)
{
    static const char *const names[] = {"train-images-idx3-ubyte",
                                        "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte",
                                        "t10k-labels-idx1-ubyte",
                                        "train-images-idx3-ubyte.gz",
                                        "train-labels-idx1-ubyte.gz",
                                        "t10k-images-idx3-ubyte.gz",
                                        "t10k-labels-idx1-ubyte.gz",
                                        "data_batch_1.bin",
                                        "data_batch_2.bin",
                                        "test_batch.bin"};
    char path[256];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
}

static unsigned char pixel(int image, int i)
{
    return (unsigned char)((image * 13 + i * 5) & 255);
}

static void write_idx(const char *set, int n, bool packed, int missing_bytes)
{
    unsigned char images[16 + IMAGES * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, 0, (unsigned char)n,
                                                       0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)n};
    char name[64];

    for (int i = 0; i < n; i++) {
        labels[8 + i] = (unsigned char)(i % 3);
        for (int j = 0; j < SIDE * SIDE; j++)
            images[16 + i * SIDE * SIDE + j] = pixel(i, j);
    }
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", set);
    write_file(name, images, (size_t)(16 + n * SIDE * SIDE - missing_bytes), packed);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", set);
    write_file(name, labels, (size_t)(8 + n), packed);
}

static struct ghp_data_request request_for(const char *kind)
{
    static char spec[128];

    snprintf(spec, sizeof spec, "%s:%s", kind, folder);
    return (struct ghp_data_request){.spec = spec,
                                     .seed = 1,
                                     .global_batch = 4,
                                     .shape = ghp_shape_image(1, SIDE, SIDE),
                                     .sample_labels = 1,
                                     .classes = 3};
}

/* All images of a set as double. */
static double *images_of(struct ghp_data *data, enum ghp_data_set set, struct ghp_shape shape)
{
    int64_t n = ghp_data_count(data, set), *samples = calloc((size_t)n, sizeof *samples);
    double *images = calloc((size_t)(n * ghp_shape_elements(shape)), sizeof(double));
    struct ghp_batch batch = {.set = set,
                              .samples = samples,
                              .n = n,
                              .channels = shape.c,
                              .element_bytes = 8,
                              .images = images};

    for (int64_t i = 0; i < n; i++)
        samples[i] = i;
    CHECK_STATUS(ghp_data_images(data, &batch), GHP_OK);
    free(samples);
    return images;
}

static void check_unit(const double *values, int64_t n, double tolerance)
{
    double sum = 0, square = 0;

    for (int64_t i = 0; i < n; i++) {
        sum += values[i];
        square += values[i] * values[i];
    }
    CHECK_NEAR(sum / (double)n, 0, tolerance);
    CHECK_NEAR(square / (double)n, 1, tolerance);
}

static void check_idx(bool packed)
{
    struct ghp_data_request request = request_for("idx");
    struct ghp_data *data = NULL;
    int32_t labels[2];
    double *train, *test;

    remove_all();
    write_idx("t10k", IMAGES, packed, 0);
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_USAGE);
    CHECK_MESSAGE("--train-fraction");
    request.split = 0.8;
    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), 8);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), 2);
    train = images_of(data, GHP_DATA_TRAIN, request.shape);
    test = images_of(data, GHP_DATA_TEST, request.shape);
    check_unit(train, 8 * SIDE * SIDE, 1e-12);
    /* the test set goes through the training set's numbers: equal bytes give equal values */
    for (int i = 0; i < 2 * SIDE * SIDE; i++)
        for (int j = 0; j < 8 * SIDE * SIDE; j++)
            if (pixel(8 + i / (SIDE * SIDE), i % (SIDE * SIDE)) ==
                pixel(j / (SIDE * SIDE), j % (SIDE * SIDE)))
                CHECK(test[i] == train[j]);
    CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TEST, (const int64_t[2]){0, 1}, 2, labels), GHP_OK);
    CHECK_EQ(labels[0], 8 % 3);
    CHECK_EQ(labels[1], 9 % 3);
    free(test);
    free(train);
    ghp_data_close(data);
    write_idx("train", 6, packed, 0);
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_USAGE); /* nothing to cut */
    request.split = 0;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), 6);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), IMAGES);
    ghp_data_close(data);
}

/* --normalise unit and --labels parity: each image over its length, labels modulo 2. */
static void check_changes(void)
{
    struct ghp_data_request request = request_for("idx");
    struct ghp_data *data = NULL;
    int32_t label;
    double *images;

    remove_all();
    write_idx("train", IMAGES, false, 0);
    write_idx("t10k", 2, false, 0);
    request.normalise = "unit";
    request.labels = GHP_LABELS_PARITY;
    request.classes = 2;
    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    images = images_of(data, GHP_DATA_TRAIN, request.shape);
    for (int64_t i = 0; i < IMAGES; i++) {
        double squares = 0;

        for (int j = 0; j < SIDE * SIDE; j++)
            squares += (double)pixel((int)i, j) * pixel((int)i, j);
        for (int j = 0; j < SIDE * SIDE; j++)
            CHECK_NEAR(images[i * SIDE * SIDE + j], pixel((int)i, j) / sqrt(squares), 1e-12);
        CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TRAIN, &i, 1, &label), GHP_OK);
        CHECK_EQ(label, i % 3 % 2);
    }
    free(images);
    ghp_data_close(data);
}

/* Equal files have equal fingerprints whatever their names and packing; another pixel, or label, has another. */
static void check_fingerprint(void)
{
    struct ghp_data_request request = request_for("idx");
    struct ghp_data_fingerprint plain = {0}, packed = {0}, parity = {0};
    struct ghp_data *data = NULL;
    uint64_t normalised;

    remove_all();
    write_idx("train", IMAGES, false, 0);
    write_idx("t10k", 2, false, 0);
    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    CHECK_STATUS(ghp_data_fingerprint_of(data, GHP_DATA_TRAIN, &plain), GHP_OK);
    CHECK_STATUS(ghp_data_fingerprint_of(data, GHP_DATA_TEST, &packed), GHP_OK);
    CHECK(plain.samples != packed.samples && plain.labels != packed.labels);
    normalised = ghp_data_normalisation_hash(data);
    ghp_data_close(data);
    remove_all();
    write_idx("train", IMAGES, true, 0);
    write_idx("t10k", 2, true, 0);
    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    CHECK_STATUS(ghp_data_fingerprint_of(data, GHP_DATA_TRAIN, &packed), GHP_OK);
    CHECK(memcmp(&plain, &packed, sizeof plain) == 0);
    CHECK(ghp_data_normalisation_hash(data) == normalised);
    CHECK_TEXT(ghp_data_kind(data), "idx");
    /* the last pixel of the last image */
    *(unsigned char *)(uintptr_t)(ghp_data_pictures(data, GHP_DATA_TRAIN)->files[0].pixels +
                                  IMAGES * SIDE * SIDE - 1) ^= 1;
    CHECK_STATUS(ghp_data_fingerprint_of(data, GHP_DATA_TRAIN, &packed), GHP_OK);
    CHECK(packed.samples != plain.samples && packed.labels == plain.labels);
    ghp_data_close(data);
    request.labels = GHP_LABELS_PARITY;
    request.normalise = "none";
    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    CHECK_STATUS(ghp_data_fingerprint_of(data, GHP_DATA_TRAIN, &parity), GHP_OK);
    CHECK(parity.samples == plain.samples && parity.labels != plain.labels);
    CHECK(ghp_data_normalisation_hash(data) != normalised);
    ghp_data_close(data);
}

static void check_refusals(void)
{
    struct ghp_data_request request = request_for("idx");
    struct ghp_data *data = NULL;

    remove_all();
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_IO);
    CHECK_MESSAGE(folder);
    for (int packed = 0; packed < 2; packed++) {
        remove_all();
        write_idx("train", IMAGES, packed == 1, 3);
        CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_FORMAT);
        CHECK_MESSAGE("truncated");
    }
    remove_all();
    write_idx("train", IMAGES, false, 0);
    request.shape.h = 5;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_INPUT);
    CHECK_MESSAGE("1x4x4");
    CHECK_MESSAGE("1x5x4");
    request.shape.h = SIDE;
    request.classes = 2;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_INPUT);
    CHECK_MESSAGE("2 classes");
    request.classes = 3;
    request.global_batch = IMAGES + 1;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_INPUT);
    CHECK_MESSAGE("global batch");
    request.spec = "tape:x";
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_USAGE);
    request.spec = "idx";
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_USAGE);
}

static void check_cifar(void)
{
    enum { RECORD = 3073, RECORDS = 4 };
    struct ghp_data_request request = request_for("cifar10");
    unsigned char *bytes = calloc(RECORDS, RECORD);
    struct ghp_data *data = NULL;
    double *images, slice[32 * 32 * 2];
    struct ghp_batch part = {.set = GHP_DATA_TRAIN,
                             .samples = (const int64_t[1]){5},
                             .n = 1,
                             .first_channel = 1,
                             .channels = 2,
                             .element_bytes = 8,
                             .images = slice};

    remove_all();
    for (int i = 0; i < RECORDS * RECORD; i++)
        bytes[i] = (unsigned char)((i % RECORD == 0 ? i / RECORD : i * 11 + i / 97) & 255);
    write_file("data_batch_1.bin", bytes, RECORDS * RECORD, false);
    write_file("data_batch_2.bin", bytes, RECORDS * RECORD, false);
    write_file("test_batch.bin", bytes, RECORDS * RECORD, false);
    request.shape = ghp_shape_image(3, 32, 32);
    request.classes = 10;
    if (!CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK)) return;
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TRAIN), 2 * RECORDS);
    CHECK_EQ(ghp_data_count(data, GHP_DATA_TEST), RECORDS);
    images = images_of(data, GHP_DATA_TRAIN, request.shape);
    check_unit(images, 2 * RECORDS * 3072, 1e-9); /* so is each channel */
    CHECK_STATUS(ghp_data_images(data, &part), GHP_OK);
    for (int p = 0; p < 32 * 32; p++)
        for (int c = 0; c < 2; c++)
            CHECK(slice[p * 2 + c] == images[(5 * 1024 + p) * 3 + 1 + c]);
    ghp_data_close(data);
    write_file("test_batch.bin", bytes, RECORD + 1, false);
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_ERR_FORMAT);
    free(images);
    free(bytes);
}

static void check_synthetic(void)
{
    struct ghp_shape shape = ghp_shape_image(3, 12, 10);
    struct ghp_data_request request = {.spec = "synthetic",
                                       .seed = 7,
                                       .global_batch = 16,
                                       .shape = shape,
                                       .sample_labels = 1,
                                       .classes = 5};
    struct ghp_data *data = NULL, *again = NULL;
    double *images, *same, one[12 * 10];
    float narrow[12 * 10];
    uint16_t least[12 * 10];
    int64_t sample = 321;
    struct ghp_batch part = {.set = GHP_DATA_TRAIN,
                             .samples = &sample,
                             .n = 1,
                             .first_channel = 2,
                             .channels = 1,
                             .element_bytes = 8,
                             .images = one};

    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(ghp_data_open(&request, &again), GHP_OK);
    images = images_of(data, GHP_DATA_TRAIN, shape);
    same = images_of(again, GHP_DATA_TRAIN, shape);
    CHECK(memcmp(images, same,
                 (size_t)(ghp_data_count(data, GHP_DATA_TRAIN) * 360) * sizeof(double)) == 0);
    check_unit(images, ghp_data_count(data, GHP_DATA_TRAIN) * 360, 0.15);
    CHECK_STATUS(ghp_data_images(data, &part), GHP_OK);
    for (int p = 0; p < 120; p++)
        CHECK(one[p] == images[(sample * 120 + p) * 3 + 2]);
    part.element_bytes = 4;
    part.images = narrow;
    CHECK_STATUS(ghp_data_images(data, &part), GHP_OK);
    for (int p = 0; p < 120; p++)
        CHECK((double)narrow[p] == one[p]);
    part.element_bytes = 2;
    part.images = least;
    CHECK_STATUS(ghp_data_images(data, &part), GHP_OK);
    for (int p = 0; p < 120; p++)
        CHECK_EQ(least[p], ghp_bf16_of(narrow[p]));
    part.element_bytes = 4;
    part.images = narrow;
    part.set = GHP_DATA_TEST; /* other samples than the training set's */
    CHECK_STATUS(ghp_data_images(data, &part), GHP_OK);
    CHECK((double)narrow[0] != one[0]);
    free(same);
    free(images);
    ghp_data_close(again);
    ghp_data_close(data);
}

/* Ids are int32 whatever the precision, and labels are the ids one position ahead. */
static void check_tokens(void)
{
    enum { S = 9, V = 13 };
    struct ghp_data_request request = {.spec = "synthetic",
                                       .seed = 7,
                                       .global_batch = 16,
                                       .shape = ghp_shape_tokens(S, V),
                                       .sample_labels = S,
                                       .classes = V};
    struct ghp_data_request bytes = {.spec = "bytes:" __FILE__,
                                     .global_batch = 1,
                                     .shape = ghp_shape_tokens(S, 256),
                                     .sample_labels = S,
                                     .classes = 255};
    struct ghp_data *data = NULL;
    int64_t samples[2] = {321, 5};
    int32_t ids[2][S], labels[2][S];
    struct ghp_batch batch = {.set = GHP_DATA_TRAIN,
                              .samples = samples,
                              .n = 2,
                              .channels = 1,
                              .element_bytes = 2,
                              .images = ids};

    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(ghp_data_images(data, &batch), GHP_OK);
    CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TRAIN, samples, 2, &labels[0][0]), GHP_OK);
    CHECK(memcmp(ids[0], ids[1], sizeof ids[0]) != 0);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < S; i++) {
            CHECK(ids[s][i] >= 0 && ids[s][i] < V && labels[s][i] >= 0 && labels[s][i] < V);
            CHECK(i == S - 1 || labels[s][i] == ids[s][i + 1]);
        }
    ghp_data_close(data);
    request.sample_labels = 1; /* of a network that classifies samples */
    request.classes = 2;
    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(ghp_data_labels(data, GHP_DATA_TRAIN, samples, 2, &labels[0][0]), GHP_OK);
    CHECK(labels[0][0] >= 0 && labels[0][0] < 2);
    ghp_data_close(data);
    CHECK_STATUS(ghp_data_open(&bytes, &data), GHP_ERR_INPUT);
    CHECK_MESSAGE("tokens 0 to 255, but its loss has 255 classes");
    bytes.sample_labels = 1;
    CHECK_STATUS(ghp_data_open(&bytes, &data), GHP_ERR_INPUT);
    CHECK_MESSAGE("use a model with a loss at each position, or arrays of ids");
    bytes.spec = "idx:.";
    CHECK_STATUS(ghp_data_open(&bytes, &data), GHP_ERR_INPUT);
    CHECK_MESSAGE("has images, but the model takes tokens");
}

CHECK_TEST(data)
{
    folder = check_folder();
    check_idx(false);
    check_idx(true);
    check_changes();
    check_fingerprint();
    check_refusals();
    check_cifar();
    check_synthetic();
    check_tokens();
    return check_end();
}
