/* executor/data/image/image.h - files of pictures as bytes: JPEG and PNG, told apart by what they begin with.
 *
 * A decoder is asked for a rectangle of the picture, at full size or reduced 2, 4 or 8 times; it may give more than it
 * was asked for, and says what it gave. JPEG leaves out the rows and columns that nobody asked for, and is reduced by
 * decoding fewer frequencies; PNG is decoded whole and never reduced. Orientation tags are not followed, transparency
 * is dropped, and neither colour profiles nor gamma are applied.
 *
 * Knows no sets, no augmentation and no normalisation. Thread-safe: nothing is shared.
 * To add a format: NAME.c with a struct ghp_image_format (format.h), and its row in image.c. */
#ifndef GHP_EXECUTOR_DATA_IMAGE_IMAGE_H
#define GHP_EXECUTOR_DATA_IMAGE_IMAGE_H

#include "executor/data/image/format.h"

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

#endif
