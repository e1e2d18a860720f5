/* executor/data/image/resize.h - part of a picture resized to a sample, smoothed as far as it becomes smaller.
 *
 * A sample's pixel is the mean of the picture's pixels around its place, weighted by a triangle whose half width is one
 * pixel of the sample, or of the picture if that is the larger: bilinear interpolation of what grows, antialiased
 * if it shrinks. Computed in float and rounded once, to whole levels of 0 to 255. Pillow's bilinear filter is the
 * same triangle, rounded to whole levels after columns and again after rows: so the two differ by a level at most.
 *
 * If a crop has the sample's own size, the sample has the picture's bytes. */
#ifndef GHP_EXECUTOR_DATA_IMAGE_RESIZE_H
#define GHP_EXECUTOR_DATA_IMAGE_RESIZE_H

#include "executor/data/image/crop.h"

/* The crop of a decoded image as a sample.
 *
 * image   has at least what ghp_crop_needed says
 * to      the sample's size
 * out     [to.h][to.w][image->channels]
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/executor/data/image/test_image.c (against plain loops in double), test_pillow.c */
enum ghp_status ghp_resize(const struct ghp_image *image, const struct ghp_crop *crop,
                           struct ghp_image_size to, unsigned char *out);

#endif
