/* executor/data/image/image.c - see image.h. */
#include "executor/data/image/image.h"

#include <stdlib.h>
#include <string.h>

static const struct ghp_image_format *const formats[] = {&ghp_image_jpeg, &ghp_image_png};

static const int64_t pixels_most = INT64_C(1) << 28;

static enum ghp_status find_format(const struct ghp_image_file *file,
                                   const struct ghp_image_format **format)
{
    if (file->n == 0)
        return GHP_FAIL(GHP_ERR_FORMAT, "'%s' is empty; fetch it again or remove it", file->path);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        *format = formats[i];
        if (file->n >= formats[i]->magic_bytes &&
            memcmp(file->bytes, formats[i]->magic, formats[i]->magic_bytes) == 0)
            return GHP_OK;
    }
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' is neither JPEG nor PNG, whatever its name says; convert or remove it",
                    file->path);
}

static enum ghp_status check_size(const struct ghp_image_file *file, struct ghp_image_size size)
{
    if (size.w >= 1 && size.h >= 1 && size.h <= pixels_most / size.w) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' has %lld x %lld pixels, and at most %lld in all are taken; make it "
                    "smaller or remove it",
                    file->path, (long long)size.w, (long long)size.h, (long long)pixels_most);
}

enum ghp_status ghp_image_measure(const struct ghp_image_file *file, struct ghp_image_size *size)
{
    const struct ghp_image_format *format = NULL;

    *size = (struct ghp_image_size){0};
    GHP_TRY(find_format(file, &format));
    GHP_TRY(format->measure(file, size));
    return check_size(file, *size);
}

enum ghp_status ghp_image_decode(const struct ghp_image_file *file,
                                 const struct ghp_image_request *request, struct ghp_image *image)
{
    const struct ghp_image_format *format = NULL;
    enum ghp_status status;

    *image = (struct ghp_image){.channels = request->channels};
    GHP_TRY(find_format(file, &format));
    status = format->decode(file, request, image);
    if (status != GHP_OK) ghp_image_release(image);
    return status;
}

void ghp_image_release(struct ghp_image *image)
{
    free(image->pixels);
    *image = (struct ghp_image){0};
}
