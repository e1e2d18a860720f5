/* tests/fuzz/fuzz_cifar.c - the readers of CIFAR's binary files. An input is a byte, CIFAR-10 (even) or CIFAR-100, and
 * two files: two bytes, little-endian, are the bytes of the first training file, which follows; the rest is the test
 * file. */
#include "executor/data/data.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <unistd.h>

enum { SIDE = 32, COLOURS = 3, CLASSES = 10, BATCH = 2 };

static void read_batch(struct ghp_data *data, enum ghp_data_set set)
{
    int64_t last = ghp_data_count(data, set) - 1, samples[BATCH] = {0, last};
    static float images[BATCH * COLOURS * SIDE * SIDE];
    int32_t labels[BATCH];
    struct ghp_batch batch = {.set = set,
                              .samples = samples,
                              .n = BATCH,
                              .channels = COLOURS,
                              .element_bytes = 4,
                              .images = images};

    if (last < 0) return;
    GHP_ASSERT_EQ(ghp_data_images(data, &batch), GHP_OK);
    GHP_ASSERT_EQ(ghp_data_labels(data, set, samples, BATCH, labels), GHP_OK);
    for (int i = 0; i < BATCH; i++)
        GHP_ASSERT(labels[i] >= 0 && labels[i] < CLASSES);
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    static const char *const names[2][2] = {{"data_batch_1.bin", "test_batch.bin"},
                                            {"train.bin", "test.bin"}};
    char train[512], test[512], folder[512], spec[600];
    struct ghp_data_request request = {.spec = spec,
                                       .global_batch = BATCH,
                                       .shape = ghp_shape_image(COLOURS, SIDE, SIDE),
                                       .sample_labels = 1,
                                       .classes = CLASSES};
    struct ghp_data *data = NULL;
    size_t n_train;
    int hundred;
    bool accepted;

    (void)path;
    if (n < 3) return false;
    hundred = bytes[0] & 1;
    n_train = (size_t)bytes[1] | (size_t)bytes[2] << 8;
    if (n_train > n - 3) n_train = n - 3;
    fuzz_write(fuzz_path(names[hundred][0], train, sizeof train), bytes + 3, n_train);
    fuzz_write(fuzz_path(names[hundred][1], test, sizeof test), bytes + 3 + n_train,
               n - 3 - n_train);
    snprintf(spec, sizeof spec, "cifar%s:%s", hundred ? "100" : "10",
             fuzz_path("", folder, sizeof folder));
    accepted = ghp_data_open(&request, &data) == GHP_OK;
    if (accepted) {
        read_batch(data, GHP_DATA_TRAIN);
        read_batch(data, GHP_DATA_TEST);
        ghp_data_close(data);
    }
    unlink(train);
    unlink(test);
    return accepted;
}
