/* executor/data/image/image.h - files of pictures as bytes: JPEG and PNG, told apart by what they begin with.
 *
 * A decoder is asked for a rectangle of the picture, at full size or reduced 2, 4 or 8 times; it may give more than it
 * was asked for, and says what it gave. JPEG leaves out the rows and columns that nobody asked for, and is reduced by
 * decoding fewer frequencies; PNG is decoded whole and never reduced. Orientation tags are not followed, transparency
 * is dropped, and neither colour profiles nor gamma are applied.
 *
 * Knows no sets, no augmentation and no normalisation. Thread-safe: nothing is shared.
 * To add a format: NAME.c with a struct ghp_image_format, and its row in image.c. */
#ifndef GHP_EXECUTOR_DATA_IMAGE_IMAGE_H
#define GHP_EXECUTOR_DATA_IMAGE_IMAGE_H

#include "core/base/status.h"

#include <stdbool.h>

enum { GHP_IMAGE_REDUCTION_MOST = 8 };

struct ghp_image_file {
    const char *path; /* for messages */
    const unsigned char *bytes;
    size_t n;
};

struct ghp_rectangle { /* first <= x < end, in pixels */
    int64_t first_x, first_y, end_x, end_y;
};

struct ghp_image_size {
    int64_t w, h; /* of the whole picture, not reduced */
};

struct ghp_image_request {
    int channels;              /* 1: luminance; 3: red, green, blue */
    struct ghp_rectangle part; /* of the picture, not reduced */
    int reduction;             /* 1, 2, 4 or 8: at most so */
};

struct ghp_image {
    unsigned char *pixels;     /* [h][w][channels] of `part`, owned */
    int channels;              /* 1 or 3 */
    int reduction;             /* that was done */
    struct ghp_rectangle part; /* that is there, in reduced pixels */
};

/* The picture's size, from its header.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT naming the file (empty, neither JPEG nor PNG, a broken header, more than 2^28
 *           pixels)
 * Local
 * Tested    tests/executor/data/image/test_image.c, tests/fuzz/fuzz_image.c */
enum ghp_status ghp_image_measure(const struct ghp_image_file *file, struct ghp_image_size *size);

/* Decodes at least the asked part, `image` is the caller's to release.
 *
 * Returns   what ghp_image_measure returns; GHP_ERR_FORMAT (damaged or cut short); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_image_decode(const struct ghp_image_file *file,
                                 const struct ghp_image_request *request, struct ghp_image *image);
void ghp_image_release(struct ghp_image *image); /* accepts a zeroed one */

/* ---- for formats ---- */

struct ghp_image_format {
    const char *name;
    const char *magic; /* a file's first bytes */
    size_t magic_bytes;
    enum ghp_status (*measure)(const struct ghp_image_file *file, struct ghp_image_size *size);
    /* The request is inside of the picture. */
    enum ghp_status (*decode)(const struct ghp_image_file *file,
                              const struct ghp_image_request *request, struct ghp_image *image);
};

extern const struct ghp_image_format ghp_image_jpeg, ghp_image_png;

/* Room for the image's part. */
enum ghp_status ghp_image_reserve(struct ghp_image *image);
/* n pixels of red, green, blue as luminance, ITU-R 601. to may be from. */
void ghp_image_luminance(const unsigned char *from, int64_t n, unsigned char *to);
enum ghp_status ghp_image_fail(const struct ghp_image_file *file, const char *why);

#endif
