/* tests/executor/data/pictures.c - see pictures.h. */
#include "tests/executor/data/pictures.h"

#include "core/base/file.h"
#include "tests/check.h"

#include <jpeglib.h>
#include <png.h>

static unsigned next(unsigned *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

struct picture picture_make(int w, int h, int channels, unsigned seed)
{
    struct picture p = {w, h, channels, malloc((size_t)(w * h * channels))};
    unsigned state = seed * 2654435761U + 1;

    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < channels; c++) {
                double shade =
                    128 + 60 * sin(0.021 * x + 0.7 * c + seed) * cos(0.017 * y - 0.4 * c);
                int edge = ((x / 23 + y / 31 + (int)seed) % 3 - 1) * (20 + 10 * c),
                    grain = (int)(next(&state) % 17) - 8, value = (int)shade + edge + grain;

                p.pixels[(y * w + x) * channels + c] = (unsigned char)(value < 0     ? 0
                                                                       : value > 255 ? 255
                                                                                     : value);
            }
    return p;
}

void picture_release(struct picture *picture)
{
    free(picture->pixels);
    picture->pixels = NULL;
}

void picture_jpeg(const char *path, const struct picture *p, struct picture_way way)
{
    static const J_COLOR_SPACE spaces[] = {JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN, JCS_RGB,
                                           JCS_CMYK};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    FILE *file = fopen(path, "wb");

    GHP_ASSERT(file != NULL);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = (JDIMENSION)p->w;
    jpeg.image_height = (JDIMENSION)p->h;
    jpeg.input_components = p->channels;
    jpeg.in_color_space = spaces[p->channels];
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, way.quality, TRUE);
    if (way.progressive) jpeg_simple_progression(&jpeg);
    if (!way.halved) jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < p->h; y++) {
        JSAMPROW row = p->pixels + (size_t)(y * p->w * p->channels);

        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

static void write_png(const char *path, const struct picture *p, int bits, bool interlaced)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *file = fopen(path, "wb");

    GHP_ASSERT(file != NULL);
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)p->w, (png_uint_32)p->h, bits,
                 p->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
        for (int y = 0; y < p->h; y++)
            png_write_row(png, p->pixels + (size_t)(y * p->w * p->channels * bits / 8));
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(file);
}

void picture_png(const char *path, const struct picture *p, bool interlaced)
{
    write_png(path, p, 8, interlaced);
}

void picture_wide_png(const char *path, const struct picture *p)
{
    write_png(path, p, 16, false);
}

struct ghp_image_file picture_read(const char *path)
{
    struct ghp_image_file file = {.path = path};
    char *bytes = NULL;

    CHECK_STATUS(ghp_file_read(path, &bytes, &file.n), GHP_OK);
    file.bytes = (unsigned char *)bytes;
    return file;
}
