/* executor/data/image/png.c - PNG by libpng, whose header stays in here. */
#include "executor/data/image/format.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <png.h>

/* Colours of 16 bits that stay below this are of a camera of 12 bits or fewer, whose numbers were stored as they
 * are. */
enum { WHY_BYTES = 192, LEAST_WHITE = 1 << 12 };

struct decoding {
    jmp_buf back;
    char why[WHY_BYTES];
    const struct ghp_image_file *file;
    size_t read; /* bytes of the file */
    png_structp png;
    png_infop info;
    struct ghp_image_size size;
    struct ghp_image *image;
    unsigned char *rows; /* as the file has them, if the image differs; owned */
    enum ghp_status status;
};

/* ---- errors and bytes ---- */

static void give_up(png_structp png, png_const_charp why)
{
    struct decoding *d = png_get_error_ptr(png);

    snprintf(d->why, sizeof d->why, "%s", why);
    longjmp(d->back, 1);
}

static void ignore(png_structp png, png_const_charp what)
{
    (void)png;
    (void)what;
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    struct decoding *d = png_get_io_ptr(png);

    if (n > d->file->n - d->read) png_error(png, "it is cut short");
    memcpy(to, d->file->bytes + d->read, n);
    d->read += n;
}

/* Runs `work`. Returns false if libpng failed and jumped out of it. */
static bool survives(struct decoding *d, void (*work)(struct decoding *d))
{
    if (setjmp(d->back) != 0) return false;
    work(d);
    return true;
}

static enum ghp_status run(struct decoding *d, void (*work)(struct decoding *d))
{
    enum ghp_status status = GHP_OK;

    d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, give_up, ignore);
    if (d->png != NULL) d->info = png_create_info_struct(d->png);
    if (d->info == NULL)
        status = GHP_NO_MEMORY();
    else
        status = survives(d, work) ? d->status : ghp_image_fail(d->file, d->why);
    if (d->png != NULL) png_destroy_read_struct(&d->png, &d->info, NULL);
    free(d->rows);
    return status;
}

/* ---- decoding ---- */

static void read_header(struct decoding *d)
{
    png_set_read_fn(d->png, d, read_bytes);
    png_read_info(d->png, d->info);
    d->size.w = png_get_image_width(d->png, d->info);
    d->size.h = png_get_image_height(d->png, d->info);
}

/* Colours of 8 or 16 bits, 1 or 3 of them, whatever the file has. Returns how many. */
static int choose_colours(struct decoding *d)
{
    bool coloured = (png_get_color_type(d->png, d->info) & PNG_COLOR_MASK_COLOR) != 0;

    png_set_expand(d->png); /* palettes, fewer than 8 bits, transparent colours */
    png_set_strip_alpha(d->png);
    if (!coloured && d->image->channels == 3) png_set_gray_to_rgb(d->png);
    return coloured ? 3 : d->image->channels;
}

/* to   [h][row_bytes] */
static void read_rows(struct decoding *d, unsigned char *to, int64_t row_bytes)
{
    int passes = png_set_interlace_handling(d->png);

    png_read_update_info(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != (size_t)row_bytes)
        png_error(d->png, "it has colours of another kind than its header says");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < d->size.h; y++)
            png_read_row(d->png, to + y * row_bytes, NULL);
    png_read_end(d->png, NULL);
}

/* Keeps the upper byte of each of n big-endian numbers of 16 bits. */
static void narrow(struct decoding *d, int64_t n)
{
    int most = 0;

    for (int64_t i = 0; i < n; i++) {
        int value = d->rows[2 * i] << 8 | d->rows[2 * i + 1];

        if (value > most) most = value;
        d->rows[i] = d->rows[2 * i];
    }
    if (most > 0 && most < LEAST_WHITE)
        png_error(d->png, "its 16-bit colours stay below 4096, so it is nearly black; save it with "
                          "8 bits a colour, or "
                          "with colours up to 65535");
}

static void decode(struct decoding *d)
{
    int channels, bytes;

    read_header(d);
    d->image->reduction = 1;
    d->image->part = (struct ghp_rectangle){.end_x = d->size.w, .end_y = d->size.h};
    d->status = ghp_image_reserve(d->image);
    if (d->status != GHP_OK) return;
    channels = choose_colours(d);
    bytes = png_get_bit_depth(d->png, d->info) == 16 ? 2 : 1;
    if (channels == d->image->channels && bytes == 1) {
        read_rows(d, d->image->pixels, d->size.w * channels);
        return;
    }
    d->rows = malloc((size_t)(d->size.w * d->size.h * channels * bytes));
    if (d->rows == NULL) {
        d->status = GHP_NO_MEMORY();
        return;
    }
    read_rows(d, d->rows, d->size.w * channels * bytes);
    if (bytes == 2) narrow(d, d->size.w * d->size.h * channels);
    if (channels == d->image->channels)
        memcpy(d->image->pixels, d->rows, (size_t)(d->size.w * d->size.h * channels));
    else
        ghp_image_luminance(d->rows, d->size.w * d->size.h, d->image->pixels);
}

static enum ghp_status png_decode(const struct ghp_image_file *file,
                                  const struct ghp_image_request *request, struct ghp_image *image)
{
    struct decoding d = {.file = file, .image = image};

    (void)request;
    return run(&d, decode);
}

static enum ghp_status png_measure(const struct ghp_image_file *file, struct ghp_image_size *size)
{
    struct decoding d = {.file = file};
    enum ghp_status status = run(&d, read_header);

    *size = d.size;
    return status;
}

const struct ghp_image_format ghp_image_png = {.name = "PNG",
                                               .magic = "\x89PNG\r\n\x1a\n",
                                               .magic_bytes = 8,
                                               .measure = png_measure,
                                               .decode = png_decode};
