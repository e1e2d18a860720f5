/* executor/data/image/format.h - what a format of pictures is, and what formats share. */
#ifndef GHP_EXECUTOR_DATA_IMAGE_FORMAT_H
#define GHP_EXECUTOR_DATA_IMAGE_FORMAT_H

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
