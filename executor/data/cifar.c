/* executor/data/cifar.c - CIFAR-10's binary files: records of one label byte and 3 x 32 x 32 colour bytes.
 *
 * DIR holds data_batch_1.bin .. data_batch_5.bin (any of them, in order) and test_batch.bin. */
#include "executor/data/data_private.h"

#include "core/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SIDE = 32,
    COLOURS = 3,
    IMAGE_BYTES = COLOURS * SIDE * SIDE,
    RECORD_BYTES = 1 + IMAGE_BYTES,
    TRAIN_FILES = 5
};

/* Appends a file's records. */
static enum ghp_status append_file(const char *path, struct ghp_pictures *pictures)
{
    char *text = NULL;
    size_t bytes = 0, n;
    unsigned char *pixels, *labels;

    GHP_TRY(ghp_file_read(path, &text, &bytes));
    n = bytes / RECORD_BYTES;
    if (n == 0 || bytes % RECORD_BYTES != 0) {
        free(text);
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' has %zu bytes, not a multiple of CIFAR-10's record of %d; fetch the "
                        "binary version again",
                        path, bytes, RECORD_BYTES);
    }
    pixels = realloc(pictures->pixels, ((size_t)pictures->n + n) * IMAGE_BYTES);
    if (pixels != NULL) pictures->pixels = pixels;
    labels = realloc(pictures->labels, (size_t)pictures->n + n);
    if (labels != NULL) pictures->labels = labels;
    if (pixels == NULL || labels == NULL) {
        free(text);
        return GHP_NO_MEMORY();
    }
    for (size_t i = 0; i < n; i++) {
        const char *record = text + i * RECORD_BYTES;

        labels[(size_t)pictures->n + i] = (unsigned char)record[0];
        memcpy(pixels + ((size_t)pictures->n + i) * IMAGE_BYTES, record + 1, IMAGE_BYTES);
    }
    pictures->n += (int64_t)n;
    pictures->shape = ghp_shape_image(COLOURS, SIDE, SIDE);
    free(text);
    return GHP_OK;
}

static enum ghp_status cifar_open(const struct ghp_data_request *request, const char *folder,
                                  struct ghp_data *data)
{
    char path[GHP_DATA_PATH_BYTES];

    for (int i = 1; i <= TRAIN_FILES; i++) {
        snprintf(path, sizeof(path), "%s/data_batch_%d.bin", folder, i);
        if (access(path, F_OK) == 0) GHP_TRY(append_file(path, &data->pictures[GHP_DATA_TRAIN]));
    }
    snprintf(path, sizeof(path), "%s/test_batch.bin", folder);
    if (access(path, F_OK) == 0) GHP_TRY(append_file(path, &data->pictures[GHP_DATA_TEST]));
    return ghp_pictures_share(data, request, folder);
}

const struct ghp_data_ops ghp_data_cifar10 = {
    .name = "cifar10",
    .argument = "DIR",
    .files = "data_batch_1.bin .. data_batch_5.bin and test_batch.bin",
    .open = cifar_open,
    .image = ghp_pictures_image,
    .labels = ghp_pictures_labels};
