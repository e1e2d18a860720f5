/* tests/executor/data/pictures.h - pictures made of numbers, and files of them, for the tests of image sources. */
#ifndef GHP_TESTS_EXECUTOR_DATA_PICTURES_H
#define GHP_TESTS_EXECUTOR_DATA_PICTURES_H

#include "executor/data/image/image.h"

struct picture { /* rgb, or luminance, or inks */
    int w, h, channels;
    unsigned char *pixels; /* [h][w][channels], owned */
};

/* Shades, edges and grain, other ones for each seed. */
struct picture picture_make(int w, int h, int channels, unsigned seed);
void picture_release(struct picture *picture);

/* How a JPEG is written; PNG takes `interlaced` alone. */
struct picture_way {
    int quality;      /* 1 to 100 */
    bool progressive; /* or interlaced */
    bool halved;      /* colours at half the resolution, as cameras do */
};

/* Writes a file; 4 channels are inks of a JPEG. */
void picture_jpeg(const char *path, const struct picture *picture, struct picture_way way);
void picture_png(const char *path, const struct picture *picture, bool interlaced);
/* Writes a PNG whose pixels are big-endian numbers of 16 bits. */
void picture_wide_png(const char *path, const struct picture *picture);

/* Reads a file; its bytes are the caller's to free. */
struct ghp_image_file picture_read(const char *path);

#endif
