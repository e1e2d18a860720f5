/* executor/data/image/format.c - see format.h. */
#include "executor/data/image/format.h"

#include <stdlib.h>

enum ghp_status ghp_image_fail(const struct ghp_image_file *file, const char *why)
{
    return GHP_FAIL(GHP_ERR_FORMAT, "'%s' is damaged: %s; fetch it again or remove it", file->path,
                    why);
}

enum ghp_status ghp_image_reserve(struct ghp_image *image)
{
    int64_t pixels =
        (image->part.end_x - image->part.first_x) * (image->part.end_y - image->part.first_y);

    image->pixels = malloc((size_t)(pixels * image->channels));
    return image->pixels != NULL ? GHP_OK : GHP_NO_MEMORY();
}

void ghp_image_luminance(const unsigned char *from, int64_t n, unsigned char *to)
{
    enum { RED = 19595, GREEN = 38470, BLUE = 7471, UNIT_BITS = 16 }; /* 0.299, 0.587, 0.114 */

    for (int64_t i = 0; i < n; i++)
        to[i] = (unsigned char)((RED * from[3 * i] + GREEN * from[3 * i + 1] +
                                 BLUE * from[3 * i + 2] + (1 << (UNIT_BITS - 1))) >>
                                UNIT_BITS);
}
