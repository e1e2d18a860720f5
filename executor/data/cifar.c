/* executor/data/cifar.c - CIFAR's binary files: records of one or two label bytes and 3 x 32 x 32 colour bytes.
 *
 * CIFAR-10's DIR holds data_batch_1.bin .. data_batch_5.bin (any of them, in order) and test_batch.bin; CIFAR-100's
 * train.bin and test.bin, whose records begin with a coarse label, which is not used. */
#include "executor/data/data_private.h"

#include "core/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIDE = 32, COLOURS = 3, IMAGE_BYTES = COLOURS * SIDE * SIDE, LABELS_MOST = 2 };

/* Appends a file's records, of which the last of the labels counts. */
static enum ghp_status add_file(const char *path, int labels, struct ghp_pictures *pictures)
{
    size_t record = (size_t)labels + IMAGE_BYTES, bytes = 0;
    char *text = NULL;
    int32_t *to = NULL;
    const unsigned char *from;
    int64_t n;

    GHP_TRY(ghp_file_read(path, &text, &bytes));
    from = (const unsigned char *)text;
    n = (int64_t)(bytes / record);
    if (n == 0 || bytes % record != 0) {
        free(text);
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' has %zu bytes, not a multiple of CIFAR-%d's record of %zu; fetch the "
                        "binary version again",
                        path, bytes, labels == LABELS_MOST ? 100 : 10, record);
    }
    pictures->shape = ghp_shape_image(COLOURS, SIDE, SIDE);
    pictures->channel_stride = SIDE * SIDE;
    pictures->pixel_stride = 1;
    GHP_TRY(ghp_pictures_add(
        pictures,
        (struct ghp_picture_file){
            .n = n, .pixels = from + labels, .picture_bytes = (int64_t)record, .memory = text},
        &to));
    for (int64_t i = 0; i < n; i++)
        to[i] = from[(size_t)i * record + (size_t)labels - 1];
    return GHP_OK;
}

/* The files that are there. */
static enum ghp_status add_files(const char *folder, const char *const names[], int labels,
                                 struct ghp_pictures *pictures)
{
    char path[GHP_DATA_PATH_BYTES];

    for (int i = 0; names[i] != NULL; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (access(path, F_OK) == 0) GHP_TRY(add_file(path, labels, pictures));
    }
    return GHP_OK;
}

static enum ghp_status cifar10_open(const struct ghp_data_request *request, const char *folder,
                                    struct ghp_data *data)
{
    static const char *const train[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", NULL};
    static const char *const test[] = {"test_batch.bin", NULL};

    GHP_TRY(add_files(folder, train, 1, ghp_data_pictures(data, GHP_DATA_TRAIN)));
    GHP_TRY(add_files(folder, test, 1, ghp_data_pictures(data, GHP_DATA_TEST)));
    return ghp_pictures_divide(data, request, folder);
}

static enum ghp_status cifar100_open(const struct ghp_data_request *request, const char *folder,
                                     struct ghp_data *data)
{
    static const char *const train[] = {"train.bin", NULL}, *const test[] = {"test.bin", NULL};

    GHP_TRY(add_files(folder, train, LABELS_MOST, ghp_data_pictures(data, GHP_DATA_TRAIN)));
    GHP_TRY(add_files(folder, test, LABELS_MOST, ghp_data_pictures(data, GHP_DATA_TEST)));
    return ghp_pictures_divide(data, request, folder);
}

const struct ghp_data_ops ghp_data_cifar10 = {
    .name = "cifar10",
    .argument = "DIR",
    .files = "data_batch_1.bin .. data_batch_5.bin and test_batch.bin",
    .open = cifar10_open,
    .own_bytes = GHP_PICTURES_OWN_BYTES,
    .close = ghp_pictures_close,
    .image = ghp_pictures_image,
    .labels = ghp_pictures_labels};

const struct ghp_data_ops ghp_data_cifar100 = {.name = "cifar100",
                                               .argument = "DIR",
                                               .files = "train.bin and test.bin",
                                               .open = cifar100_open,
                                               .own_bytes = GHP_PICTURES_OWN_BYTES,
                                               .close = ghp_pictures_close,
                                               .image = ghp_pictures_image,
                                               .labels = ghp_pictures_labels};
