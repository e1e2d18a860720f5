/* tests/fuzz/fuzz_image.c - the readers of JPEG and PNG: the middle of a picture, and all of it reduced. Pictures of
 * more pixels than a fuzzer has time for are passed over. */
#include "executor/data/image/resize.h"
#include "tests/fuzz/fuzz.h"

enum { SIDE = 16, PIXELS_MOST = 1 << 20 };

static bool read_as(const struct ghp_image_file *file, struct ghp_image_size size, int channels,
                    int reduction)
{
    struct ghp_image_size to = {SIDE, SIDE};
    struct ghp_crop crop = ghp_crop_centre(size, to);
    struct ghp_image_request request = {
        .channels = channels, .part = ghp_crop_needed(&crop, to), .reduction = reduction};
    unsigned char sample[SIDE * SIDE * 3];
    struct ghp_image image;

    if (ghp_image_decode(file, &request, &image) != GHP_OK) return false;
    GHP_ASSERT_EQ(ghp_resize(&image, &crop, to, sample), GHP_OK);
    ghp_image_release(&image);
    return true;
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_image_file file = {path, bytes, n};
    struct ghp_image_size size;
    bool read;

    if (ghp_image_measure(&file, &size) != GHP_OK || size.w * size.h > PIXELS_MOST) return false;
    read = read_as(&file, size, 3, 1);
    return read_as(&file, size, 1, 4) && read;
}
