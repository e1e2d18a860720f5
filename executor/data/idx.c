/* executor/data/idx.c - IDX files (the MNIST family), plain or gzip: a magic number, dimensions, bytes.
 *
 *     00 00 08 DIMENSIONS | each dimension as 32-bit big-endian | one byte a value
 *
 * DIR holds train-images-idx3-ubyte[.gz] with train-labels-idx1-ubyte[.gz], and/or the same two under t10k-. */
#include "executor/data/data_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { TYPE_UNSIGNED_BYTE = 8, MOST_DIMENSIONS = 3, HEADER_BYTES = 4, FIRST_READ = 1 << 20 };

static const int64_t LARGEST_FILE = INT64_C(1) << 40; /* bytes of values */

struct idx {
    int n_dims;
    int64_t dims[MOST_DIMENSIONS];
    unsigned char *bytes; /* owned */
};

static enum ghp_status fail_short(gzFile file, const char *path, int64_t done, int64_t n)
{
    int code = 0;

    gzerror(file, &code);
    return GHP_FAIL(
        GHP_ERR_FORMAT,
        "'%s' is %s after %lld of the %lld bytes its header promises; fetch the file again", path,
        code != Z_OK && code != Z_BUF_ERROR ? "damaged" : "truncated", (long long)done,
        (long long)n);
}

/* Reads n bytes, plain or packed. */
static enum ghp_status read_bytes(gzFile file, const char *path, void *to, int64_t n)
{
    int got = gzread(file, to, (unsigned)n);

    return got == n ? GHP_OK : fail_short(file, path, got > 0 ? got : 0, n);
}

/* Reads n bytes into memory that grows with what has come: a header that promises too much costs nothing. */
static enum ghp_status read_values(gzFile file, const char *path, int64_t n, unsigned char **bytes)
{
    int64_t done = 0, room = 0;

    while (done < n) {
        int got;

        if (done == room) {
            unsigned char *more;

            room = room == 0 ? FIRST_READ : 2 * room;
            if (room > n) room = n;
            more = realloc(*bytes, (size_t)room);
            if (more == NULL) return GHP_NO_MEMORY();
            *bytes = more;
        }
        got = gzread(file, *bytes + done,
                     (unsigned)(room - done < INT32_MAX ? room - done : INT32_MAX));
        if (got <= 0) return fail_short(file, path, done, n);
        done += got;
    }
    return GHP_OK;
}

static int64_t big_endian(const unsigned char *b)
{
    return ((int64_t)b[0] << 24) | ((int64_t)b[1] << 16) | ((int64_t)b[2] << 8) | (int64_t)b[3];
}

static enum ghp_status read_header(gzFile file, const char *path, int n_dims, struct idx *idx)
{
    int64_t bytes = 1;
    unsigned char head[HEADER_BYTES * (1 + MOST_DIMENSIONS)];

    GHP_TRY(read_bytes(file, path, head, HEADER_BYTES));
    if (head[0] != 0 || head[1] != 0 || head[2] != TYPE_UNSIGNED_BYTE || head[3] != n_dims)
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "'%s' is not an IDX file of unsigned bytes with %d dimension(s): it starts "
                        "with %02x%02x%02x%02x; "
                        "use files of the MNIST family",
                        path, n_dims, head[0], head[1], head[2], head[3]);
    GHP_TRY(read_bytes(file, path, head, (int64_t)HEADER_BYTES * n_dims));
    idx->n_dims = n_dims;
    for (int i = 0; i < n_dims; i++) {
        idx->dims[i] = big_endian(head + HEADER_BYTES * i);
        if (idx->dims[i] < 1 || idx->dims[i] > LARGEST_FILE / bytes)
            return GHP_FAIL(GHP_ERR_FORMAT, "'%s': dimension %d is %lld; fetch the file again",
                            path, i + 1, (long long)idx->dims[i]);
        bytes *= idx->dims[i];
    }
    return GHP_OK;
}

static enum ghp_status read_idx(const char *path, int n_dims, struct idx *idx)
{
    enum ghp_status status = GHP_OK;
    gzFile file = gzopen(path, "rb");
    int64_t n = 1; /* read_header keeps it below LARGEST_FILE */
    char extra;

    if (file == NULL)
        return GHP_FAIL(GHP_ERR_IO, "cannot read '%s'; see that the file is there and may be read",
                        path);
    GHP_TRY_GOTO(status, read_header(file, path, n_dims, idx), done);
    for (int i = 0; i < n_dims; i++)
        n *= idx->dims[i];
    GHP_TRY_GOTO(status, read_values(file, path, n, &idx->bytes), done);
    if (gzread(file, &extra, 1) > 0)
        GHP_TRY_GOTO(
            status,
            GHP_FAIL(GHP_ERR_FORMAT,
                     "'%s' is longer than the %lld bytes its header promises; fetch it again", path,
                     (long long)n),
            done);
done:
    gzclose(file);
    if (status != GHP_OK) {
        free(idx->bytes);
        idx->bytes = NULL;
    }
    return status;
}

/* DIR/NAME or DIR/NAME.gz, whichever is there. */
static bool find_file(const char *folder, const char *name, char *path)
{
    snprintf(path, GHP_DATA_PATH_BYTES, "%s/%s", folder, name);
    if (access(path, F_OK) == 0) return true;
    snprintf(path, GHP_DATA_PATH_BYTES, "%s/%s.gz", folder, name);
    return access(path, F_OK) == 0;
}

static enum ghp_status open_set(const char *folder, const char *set, struct ghp_pictures *pictures)
{
    char images_name[64], labels_name[64], images_path[GHP_DATA_PATH_BYTES],
        labels_path[GHP_DATA_PATH_BYTES];
    struct idx images = {0}, labels = {0};
    enum ghp_status status;
    int32_t *to = NULL;

    snprintf(images_name, sizeof images_name, "%s-images-idx3-ubyte", set);
    snprintf(labels_name, sizeof labels_name, "%s-labels-idx1-ubyte", set);
    if (!find_file(folder, images_name, images_path)) return GHP_OK;
    if (!find_file(folder, labels_name, labels_path))
        return GHP_FAIL(GHP_ERR_IO,
                        "'%s' has no '%s' (or .gz) next to its images; put the labels there",
                        folder, labels_name);
    GHP_TRY(read_idx(images_path, 3, &images));
    GHP_TRY_GOTO(status, read_idx(labels_path, 1, &labels), done);
    if (labels.dims[0] != images.dims[0])
        GHP_TRY_GOTO(
            status,
            GHP_FAIL(GHP_ERR_FORMAT,
                     "'%s' has %lld images, but '%s' has %lld labels; fetch both files again",
                     images_path, (long long)images.dims[0], labels_path,
                     (long long)labels.dims[0]),
            done);
    pictures->shape = ghp_shape_image(1, images.dims[1], images.dims[2]);
    pictures->pixel_stride = 1;
    status =
        ghp_pictures_add(pictures,
                         (struct ghp_picture_file){.n = images.dims[0],
                                                   .pixels = images.bytes,
                                                   .picture_bytes = images.dims[1] * images.dims[2],
                                                   .memory = images.bytes},
                         &to);
    images.bytes = NULL;
    for (int64_t i = 0; status == GHP_OK && i < labels.dims[0]; i++)
        to[i] = labels.bytes[i];
done:
    free(labels.bytes);
    free(images.bytes);
    return status;
}

static enum ghp_status idx_open(const struct ghp_data_request *request, const char *folder,
                                struct ghp_data *data)
{
    GHP_TRY(open_set(folder, "train", ghp_data_pictures(data, GHP_DATA_TRAIN)));
    GHP_TRY(open_set(folder, "t10k", ghp_data_pictures(data, GHP_DATA_TEST)));
    return ghp_pictures_divide(data, request, folder);
}

const struct ghp_data_ops ghp_data_idx = {
    .name = "idx",
    .argument = "DIR",
    .files = "train-images-idx3-ubyte[.gz] and train-labels-idx1-ubyte[.gz], or the same as t10k-",
    .open = idx_open,
    .own_bytes = GHP_PICTURES_OWN_BYTES,
    .close = ghp_pictures_close,
    .image = ghp_pictures_image,
    .labels = ghp_pictures_labels};
