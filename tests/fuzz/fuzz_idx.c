/* tests/fuzz/fuzz_idx.c - the IDX reader. An input is two files: its first two bytes, little-endian, are the bytes of
 * the images' file, which follows; the rest is the labels' file. Both may be gzip. */
#include "executor/data/data.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>

enum { SIDE = 4, CLASSES = 10, BATCH = 2 };

static void read_batch(struct ghp_data *data)
{
    int64_t last = ghp_data_count(data, GHP_DATA_TRAIN) - 1, samples[BATCH] = {0, last};
    double images[BATCH * SIDE * SIDE];
    int32_t labels[BATCH];
    struct ghp_batch batch = {.set = GHP_DATA_TRAIN,
                              .samples = samples,
                              .n = BATCH,
                              .channels = 1,
                              .element_bytes = 8,
                              .images = images};

    GHP_ASSERT_EQ(ghp_data_images(data, &batch), GHP_OK);
    GHP_ASSERT_EQ(ghp_data_labels(data, GHP_DATA_TRAIN, samples, BATCH, labels), GHP_OK);
    for (int i = 0; i < BATCH; i++)
        GHP_ASSERT(labels[i] >= 0 && labels[i] < CLASSES);
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    char images[512], labels[512], folder[512], spec[600];
    struct ghp_data_request request = {.spec = spec,
                                       .global_batch = BATCH,
                                       .shape = ghp_shape_image(1, SIDE, SIDE),
                                       .sample_labels = 1,
                                       .classes = CLASSES};
    struct ghp_data *data = NULL;
    size_t n_images;

    (void)path;
    if (n < 2) return false;
    n_images = (size_t)bytes[0] | (size_t)bytes[1] << 8;
    if (n_images > n - 2) n_images = n - 2;
    fuzz_write(fuzz_path("train-images-idx3-ubyte", images, sizeof images), bytes + 2, n_images);
    fuzz_write(fuzz_path("train-labels-idx1-ubyte", labels, sizeof labels), bytes + 2 + n_images,
               n - 2 - n_images);
    snprintf(spec, sizeof spec, "idx:%s", fuzz_path("", folder, sizeof folder));
    if (ghp_data_open(&request, &data) != GHP_OK) return false;
    read_batch(data);
    ghp_data_close(data);
    return true;
}
