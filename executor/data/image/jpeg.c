/* executor/data/image/jpeg.c - JPEG by libjpeg-turbo, whose header stays in here.
 *
 * Rows above the asked part are skipped and rows below are never reached; columns on its sides are left out by whole
 * blocks. A margin around the part is decoded too, so that colours at its edge are interpolated as in the whole
 * picture: a part has the same bytes as the whole picture decoded. Reduced pictures come from as many fewer frequencies
 * of each 8 x 8 block.
 *
 * If data are wrong, libjpeg continues with grey in their place; here such a file is damaged. One without an
 * end-of-image marker is damaged too, even if its part of the rows is there. */
#include "executor/data/image/format.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>
#include <jerror.h>

enum {
    MARGIN = 4, /* pixels; interpolation looks at one sample of colour, two pixels, to each side */
    CMYK = 4,
    MOST = 255
};

struct decoding {
    struct jpeg_error_mgr errors; /* first: libjpeg gives its address back */
    jmp_buf back;
    char why[JMSG_LENGTH_MAX];
    struct jpeg_decompress_struct jpeg;
    const struct ghp_image_file *file;
    const struct ghp_image_request *request;
    struct ghp_image *image;
    unsigned char *row; /* of other colours than the image's, owned */
    enum ghp_status status;
};

/* ---- errors ---- */

static void give_up(j_common_ptr jpeg)
{
    struct decoding *d = (struct decoding *)(void *)jpeg->err;

    jpeg->err->format_message(jpeg, d->why);
    longjmp(d->back, 1);
}

/* Warnings are about lost data, but for some about odd headers. */
static void on_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;

    if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR ||
        code == JWRN_ADOBE_XFORM || code == JWRN_NOT_SEQUENTIAL)
        return;
    give_up(jpeg);
}

/* Runs `work`. Returns false if libjpeg failed and jumped out of it. */
static bool survives(struct decoding *d, void (*work)(struct decoding *d))
{
    if (setjmp(d->back) != 0) return false;
    work(d);
    return true;
}

static enum ghp_status run(struct decoding *d, void (*work)(struct decoding *d))
{
    enum ghp_status status;

    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = give_up;
    d->errors.emit_message = on_message;
    status = survives(d, work) ? d->status : ghp_image_fail(d->file, d->why);
    jpeg_destroy_decompress(&d->jpeg);
    free(d->row);
    return status;
}

/* ---- decoding ---- */

static void read_header(struct decoding *d)
{
    jpeg_create_decompress(&d->jpeg);
    jpeg_mem_src(&d->jpeg, d->file->bytes, d->file->n);
    jpeg_read_header(&d->jpeg, TRUE);
}

/* Whether there is an end-of-image marker after the header. */
static bool ends(const struct decoding *d)
{
    const unsigned char *first = d->jpeg.src->next_input_byte;

    for (const unsigned char *at = d->file->bytes + d->file->n - 2; at >= first; at--)
        if (at[0] == 0xff && at[1] == JPEG_EOI) return true;
    return false;
}

static J_COLOR_SPACE colours_of(const struct decoding *d)
{
    switch (d->jpeg.jpeg_color_space) {
    case JCS_CMYK:
    case JCS_YCCK: return JCS_CMYK;
    case JCS_GRAYSCALE:
    case JCS_YCbCr: return d->image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    default: return JCS_RGB;
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The rows and columns to decode. */
static void choose_part(struct decoding *d)
{
    int64_t by = d->request->reduction, w = d->jpeg.output_width, h = d->jpeg.output_height;
    struct ghp_rectangle asked = d->request->part, *part = &d->image->part;
    JDIMENSION first, n;

    part->first_y = larger(asked.first_y / by - MARGIN, 0);
    part->end_y = smaller((asked.end_y + by - 1) / by + MARGIN, h);
    first = (JDIMENSION)larger(asked.first_x / by - MARGIN, 0);
    n = (JDIMENSION)smaller((asked.end_x + by - 1) / by + MARGIN, w) - first;
    if (n < w) jpeg_crop_scanline(&d->jpeg, &first, &n);
    part->first_x = first;
    part->end_x = (int64_t)first + n;
}

/* A row as libjpeg gives it, in the image's colours. Adobe's inks are stored inverted, and all who write them do so. */
static void convert_row(const struct decoding *d, int64_t n, unsigned char *to)
{
    unsigned char *from = d->row;

    for (int64_t i = 0; d->jpeg.out_color_space == JCS_CMYK && i < n; i++)
        for (int c = 0; c < 3; c++)
            from[3 * i + c] =
                (unsigned char)((from[CMYK * i + c] * from[CMYK * i + 3] + MOST / 2) / MOST);
    if (d->image->channels == 1)
        ghp_image_luminance(from, n, to);
    else
        for (int64_t i = 0; i < 3 * n; i++)
            to[i] = from[i];
}

static void read_rows(struct decoding *d)
{
    struct ghp_rectangle part = d->image->part;
    int64_t w = part.end_x - part.first_x, row_bytes = w * d->image->channels;
    bool converts = d->jpeg.out_color_components != d->image->channels;

    if (part.first_y > 0) jpeg_skip_scanlines(&d->jpeg, (JDIMENSION)part.first_y);
    for (int64_t y = 0; y < part.end_y - part.first_y; y++) {
        unsigned char *to = d->image->pixels + y * row_bytes, *row = converts ? d->row : to;

        jpeg_read_scanlines(&d->jpeg, &row, 1);
        if (converts) convert_row(d, w, to);
    }
}

static void decode(struct decoding *d)
{
    read_header(d);
    if (!ends(d)) {
        d->status = ghp_image_fail(d->file, "it has no end, so it is cut short");
        return;
    }
    d->jpeg.out_color_space = colours_of(d);
    d->jpeg.scale_num = 1;
    d->jpeg.scale_denom = (unsigned)d->request->reduction;
    d->image->reduction = d->request->reduction;
    jpeg_start_decompress(&d->jpeg);
    choose_part(d);
    d->status = ghp_image_reserve(d->image);
    if (d->status != GHP_OK) return;
    d->row = malloc((size_t)d->jpeg.output_width * CMYK);
    if (d->row == NULL)
        d->status = GHP_NO_MEMORY();
    else
        read_rows(d);
}

static enum ghp_status jpeg_decode(const struct ghp_image_file *file,
                                   const struct ghp_image_request *request, struct ghp_image *image)
{
    struct decoding d = {.file = file, .request = request, .image = image};

    return run(&d, decode);
}

static enum ghp_status jpeg_measure(const struct ghp_image_file *file, struct ghp_image_size *size)
{
    struct decoding d = {.file = file};
    enum ghp_status status = run(&d, read_header);

    *size = (struct ghp_image_size){d.jpeg.image_width, d.jpeg.image_height};
    return status;
}

const struct ghp_image_format ghp_image_jpeg = {.name = "JPEG",
                                                .magic = "\xff\xd8\xff",
                                                .magic_bytes = 3,
                                                .measure = jpeg_measure,
                                                .decode = jpeg_decode};
