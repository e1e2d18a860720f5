/* Decoding parts of JPEG and PNG compared with the whole picture, to the byte; resizing compared with plain loops in
 * double; crops; and files that are damaged. */
#include "executor/data/image/augment.h"
#include "executor/data/image/resize.h"
#include "tests/check.h"
#include "tests/executor/data/pictures.h"

#include <unistd.h>

static const char *folder;
static char path[128];

/* ---- decoding ---- */

static struct ghp_rectangle all_of(struct ghp_image_size size)
{
    return (struct ghp_rectangle){.end_x = size.w, .end_y = size.h};
}

/* Every pixel of a part is the whole picture's. Returns whether less than the whole was decoded. */
static bool check_part(const struct ghp_image_file *file, struct ghp_image_request request,
                       const struct ghp_image *whole)
{
    struct ghp_image part;
    bool equal = true, less;
    int by = request.reduction;

    if (!CHECK_STATUS(ghp_image_decode(file, &request, &part), GHP_OK)) return false;
    CHECK_EQ(part.reduction, whole->reduction);
    CHECK(part.part.first_x <= request.part.first_x / by &&
          part.part.first_y <= request.part.first_y / by);
    CHECK(part.part.end_x >= request.part.end_x / by && part.part.end_y >= request.part.end_y / by);
    for (int64_t y = request.part.first_y / by; y < request.part.end_y / by; y++)
        for (int64_t x = request.part.first_x / by; x < request.part.end_x / by; x++)
            for (int c = 0; c < part.channels; c++)
                equal =
                    equal &&
                    part.pixels[((y - part.part.first_y) * (part.part.end_x - part.part.first_x) +
                                 x - part.part.first_x) *
                                    part.channels +
                                c] ==
                        whole->pixels[(y * whole->part.end_x + x) * part.channels + c];
    CHECK(equal);
    less = part.part.end_x - part.part.first_x < whole->part.end_x ||
           part.part.end_y - part.part.first_y < whole->part.end_y;
    ghp_image_release(&part);
    return less;
}

static void check_parts(const struct ghp_image_file *file, int channels, bool is_jpeg)
{
    struct ghp_image_size size;
    int less = 0, parts = 0;

    CHECK_STATUS(ghp_image_measure(file, &size), GHP_OK);
    for (int by = 1; by <= (is_jpeg ? GHP_IMAGE_REDUCTION_MOST : 1); by *= 2) {
        struct ghp_image_request request = {
            .channels = channels, .part = all_of(size), .reduction = by};
        struct ghp_image whole;

        if (!CHECK_STATUS(ghp_image_decode(file, &request, &whole), GHP_OK)) return;
        CHECK_EQ(whole.part.end_x, (size.w + by - 1) / by);
        CHECK_EQ(whole.part.end_y, (size.h + by - 1) / by);
        for (int i = 0; i < check_cases(40); i++, parts++) {
            struct ghp_crop crop =
                ghp_crop_random(size, &ghp_augment_usual.crop, (struct ghp_crop_key){3, by, i});

            request.part = crop.seen;
            less += check_part(file, request, &whole);
        }
        ghp_image_release(&whole);
    }
    CHECK(!is_jpeg || 2 * less > parts); /* else nothing is saved */
}

static void check_decoding(void)
{
    static const struct picture_way ways[] = {
        {90, false, true}, {75, true, true}, {95, false, false}};

    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1)
        for (int odd = 0; odd < 2; odd++) {
            struct picture p = picture_make(301 + odd, 223 - odd, channels, 5);
            struct ghp_image_file file;

            for (int way = 0; way < 3; way++) {
                picture_jpeg(path, &p, ways[way]);
                file = picture_read(path);
                check_parts(&file, 3, true);
                check_parts(&file, 1, true);
                free((unsigned char *)(uintptr_t)file.bytes);
            }
            for (int interlaced = 0; channels < 4 && interlaced < 2; interlaced++) {
                struct ghp_image_request request = {.channels = channels, .reduction = 8};
                struct ghp_image image;

                picture_png(path, &p, interlaced == 1);
                file = picture_read(path);
                check_parts(&file, 3, false);
                check_parts(&file, 1, false);
                CHECK_STATUS(ghp_image_decode(&file, &request, &image), GHP_OK);
                CHECK_EQ(image.reduction, 1);
                CHECK(memcmp(image.pixels, p.pixels, (size_t)(p.w * p.h * channels)) == 0);
                ghp_image_release(&image);
                free((unsigned char *)(uintptr_t)file.bytes);
            }
            picture_release(&p);
        }
}

/* ---- resizing ---- */

/* A pixel of the sample by the definition: the mean weighted by a triangle. */
static double defined(const struct picture *p, const struct ghp_crop *crop,
                      struct ghp_image_size to, const int64_t at[3])
{
    double unit_x = (crop->right - crop->left) / (double)to.w,
           unit_y = (crop->bottom - crop->top) / (double)to.h,
           centre_x = crop->left + ((double)at[0] + 0.5) * unit_x,
           centre_y = crop->top + ((double)at[1] + 0.5) * unit_y, sum = 0, weights = 0;

    for (int64_t y = crop->seen.first_y; y < crop->seen.end_y; y++)
        for (int64_t x = crop->seen.first_x; x < crop->seen.end_x; x++) {
            double wx = fmax(1 - fabs((double)x + 0.5 - centre_x) / fmax(unit_x, 1), 0),
                   wy = fmax(1 - fabs((double)y + 0.5 - centre_y) / fmax(unit_y, 1), 0);

            weights += wx * wy;
            sum += wx * wy * p->pixels[(y * p->w + x) * p->channels + at[2]];
        }
    return sum / weights;
}

/* The rounded definition but for halves, which float may round the other way: 1e-3 of a level is much more than a sum
 * of some dozens of floats below 256 is off. */
static void check_resized(const struct picture *p, const struct ghp_crop *crop,
                          struct ghp_image_size to)
{
    struct ghp_image image = {.pixels = p->pixels,
                              .channels = p->channels,
                              .reduction = 1,
                              .part = {.end_x = p->w, .end_y = p->h}};
    unsigned char *out = malloc((size_t)(to.w * to.h * p->channels));
    double worst = 0;

    CHECK_STATUS(ghp_resize(&image, crop, to, out), GHP_OK);
    for (int64_t y = 0; y < to.h; y++)
        for (int64_t x = 0; x < to.w; x++)
            for (int c = 0; c < p->channels; c++) {
                int64_t shown = crop->mirrored ? to.w - 1 - x : x;
                double is = out[(y * to.w + shown) * p->channels + c];

                worst = fmax(worst, fabs(is - defined(p, crop, to, (const int64_t[3]){x, y, c})));
            }
    CHECK_NEAR(worst, 0, 0.501);
    free(out);
}

static void check_resizing(void)
{
    static const struct ghp_image_size sizes[] = {{32, 32}, {61, 40}, {7, 90}, {1, 1}};

    for (int channels = 1; channels <= 3; channels += 2) {
        struct picture p = picture_make(97, 71, channels, 9);
        struct ghp_image_size size = {p.w, p.h};
        struct ghp_crop crop = ghp_crop_centre(size, size);
        unsigned char *same = malloc((size_t)(p.w * p.h * channels));

        for (int s = 0; s < 4; s++) {
            crop = ghp_crop_centre(size, sizes[s]);
            check_resized(&p, &crop, sizes[s]);
            for (int i = 0; i < check_cases(20); i++) {
                crop =
                    ghp_crop_random(size, &ghp_augment_usual.crop, (struct ghp_crop_key){1, 0, i});
                check_resized(&p, &crop, sizes[s]);
            }
        }
        crop = ghp_crop_centre(size, size);
        CHECK_STATUS(
            ghp_resize(&(struct ghp_image){p.pixels, channels, 1, all_of(size)}, &crop, size, same),
            GHP_OK);
        CHECK(memcmp(same, p.pixels, (size_t)(p.w * p.h * channels)) == 0);
        free(same);
        picture_release(&p);
    }
}

/* ---- crops ---- */

static void check_crops(void)
{
    struct ghp_image_size picture = {400, 300}, to = {224, 224};
    struct ghp_crop crop = ghp_crop_centre(picture, to), other;
    double area = 0;
    int mirrored = 0, n = 4000;

    /* resized to 341 x 256, of which the middle begins at column 58 (58.5 to even) and row 16 */
    CHECK_NEAR(crop.left, 58 * 400.0 / 341, 1e-9);
    CHECK_NEAR(crop.right, 282 * 400.0 / 341, 1e-9);
    CHECK_NEAR(crop.top, 16 * 300.0 / 256, 1e-9);
    CHECK_NEAR(crop.bottom, 240 * 300.0 / 256, 1e-9);
    for (int i = 0; i < n; i++) {
        struct ghp_rectangle *r = &crop.seen;

        crop = ghp_crop_random(picture, &ghp_augment_usual.crop, (struct ghp_crop_key){7, 2, i});
        CHECK(r->first_x >= 0 && r->first_y >= 0 && r->end_x <= 400 && r->end_y <= 300 &&
              r->end_x > r->first_x && r->end_y > r->first_y);
        area += (double)((r->end_x - r->first_x) * (r->end_y - r->first_y)) / 120000;
        mirrored += crop.mirrored;
    }
    /* uniform from 0.08 to 1, less what does not fit into 4:3: drawn 200 000 times by another program, 0.433 */
    CHECK_NEAR(area / n, 0.433, 0.02);           /* five deviations of 4000 */
    CHECK_NEAR((double)mirrored / n, 0.5, 0.04); /* five deviations */
    crop = ghp_crop_random(picture, &ghp_augment_usual.crop, (struct ghp_crop_key){7, 2, 11});
    other = ghp_crop_random(picture, &ghp_augment_usual.crop, (struct ghp_crop_key){7, 2, 11});
    CHECK(memcmp(&crop.seen, &other.seen, sizeof crop.seen) == 0 &&
          crop.mirrored == other.mirrored);
    other = ghp_crop_random(picture, &ghp_augment_usual.crop, (struct ghp_crop_key){7, 3, 11});
    CHECK(memcmp(&crop.seen, &other.seen, sizeof crop.seen) != 0);
    other = ghp_crop_random(picture, &ghp_augment_usual.crop, (struct ghp_crop_key){8, 2, 11});
    CHECK(memcmp(&crop.seen, &other.seen, sizeof crop.seen) != 0);
    crop = ghp_crop_random((struct ghp_image_size){1, 900}, &ghp_augment_usual.crop,
                           (struct ghp_crop_key){7, 2, 11});
    CHECK_EQ(crop.seen.end_x - crop.seen.first_x,
             1); /* no draw fits: the middle, as wide as high */
    CHECK_EQ(crop.seen.end_y - crop.seen.first_y, 1);
    CHECK_EQ(crop.seen.first_y, 449);
    crop = ghp_crop_centre((struct ghp_image_size){2048, 2048}, to);
    CHECK_EQ(ghp_crop_reduction(&crop, to), 8);
    crop = ghp_crop_centre((struct ghp_image_size){2047, 2047}, to);
    CHECK_EQ(ghp_crop_reduction(&crop, to), 4);
}

/* ---- damage ---- */

static void check_refused(const void *bytes, size_t n, const char *says)
{
    struct ghp_image_file file = {.path = "odd.jpg", .bytes = bytes, .n = n};
    struct ghp_image_request request = {.channels = 3, .reduction = 1};
    struct ghp_image_size size;
    struct ghp_image image;
    enum ghp_status status = ghp_image_measure(&file, &size);

    if (status == GHP_OK) {
        request.part = all_of(size);
        status = ghp_image_decode(&file, &request, &image);
    }
    CHECK_STATUS(status, GHP_ERR_FORMAT);
    CHECK_MESSAGE("odd.jpg");
    CHECK_MESSAGE(says);
}

static void check_damage(void)
{
    struct picture p = picture_make(64, 48, 3, 2);
    struct ghp_image_file file;
    unsigned char *bytes;

    check_refused("", 0, "empty");
    check_refused("GIF89a  ", 8, "neither JPEG nor PNG");
    for (int png = 0; png < 2; png++) {
        if (png)
            picture_png(path, &p, false);
        else
            picture_jpeg(path, &p, (struct picture_way){90, false, true});
        file = picture_read(path);
        bytes = (unsigned char *)(uintptr_t)file.bytes;
        for (size_t n = 8; n < file.n; n += file.n / 13)
            check_refused(bytes, n, "damaged");
        check_refused(bytes, file.n - 1, "damaged");
        bytes[file.n / 2] ^= 0x55; /* of JPEG often other codes as good as these */
        if (png) check_refused(bytes, file.n, "damaged");
        free(bytes);
    }
    picture_release(&p);
}

/* The place at which SOS stores the end of the spectral selection, which is 63 in a sequential file; some telephones
 * write 0. */
static size_t selection_end(const struct ghp_image_file *file)
{
    for (size_t i = 2; i + 3 < file->n;
         i += 2 + (size_t)(file->bytes[i + 2] << 8 | file->bytes[i + 3]))
        if (file->bytes[i + 1] == 0xda)
            return i + 2 + (size_t)(file->bytes[i + 2] << 8 | file->bytes[i + 3]) - 2;
    return 0;
}

static void check_telephone(void)
{
    struct picture p = picture_make(64, 48, 3, 2);
    struct ghp_image_request request = {.channels = 3, .reduction = 1, .part = {0, 0, 64, 48}};
    struct ghp_image images[2];
    struct ghp_image_file file;
    unsigned char *bytes;
    size_t at;

    picture_jpeg(path, &p, (struct picture_way){90, false, true});
    file = picture_read(path);
    bytes = (unsigned char *)(uintptr_t)file.bytes;
    at = selection_end(&file);
    CHECK_EQ(bytes[at], 63);
    CHECK_STATUS(ghp_image_decode(&file, &request, &images[0]), GHP_OK);
    bytes[at] = 0;
    if (CHECK_STATUS(ghp_image_decode(&file, &request, &images[1]), GHP_OK)) {
        CHECK(memcmp(images[0].pixels, images[1].pixels, 64 * 48 * 3) == 0);
        ghp_image_release(&images[1]);
    }
    ghp_image_release(&images[0]);
    free(bytes);
    picture_release(&p);
}

/* Colours of 16 bits: their upper bytes are the image's. Those of 12 bits, stored as they are, would be nearly
 * black. */
static void check_wide(void)
{
    struct picture p = picture_make(20, 15, 3, 4), wide = {20, 15, 3, malloc(20 * 15 * 3 * 2)};
    struct ghp_image_request request = {.channels = 3, .reduction = 1, .part = {0, 0, 20, 15}};
    struct ghp_image image;
    struct ghp_image_file file;

    for (int i = 0; i < 20 * 15 * 3; i++) {
        wide.pixels[2 * i] = p.pixels[i];
        wide.pixels[2 * i + 1] = (unsigned char)(i * 7);
    }
    picture_wide_png(path, &wide);
    file = picture_read(path);
    if (CHECK_STATUS(ghp_image_decode(&file, &request, &image), GHP_OK)) {
        CHECK(memcmp(image.pixels, p.pixels, 20 * 15 * 3) == 0);
        ghp_image_release(&image);
    }
    free((void *)(uintptr_t)file.bytes);
    for (int i = 0; i < 20 * 15 * 3; i++)
        wide.pixels[2 * i] = p.pixels[i] >> 4;
    picture_wide_png(path, &wide);
    file = picture_read(path);
    check_refused(file.bytes, file.n, "16-bit colours stay below 4096");
    free((void *)(uintptr_t)file.bytes);
    picture_release(&wide);
    picture_release(&p);
}

CHECK_TEST(image)
{
    folder = check_folder();
    snprintf(path, sizeof path, "%s/picture", folder);
    check_decoding();
    check_resizing();
    check_crops();
    check_damage();
    check_telephone();
    check_wide();
    return check_end();
}
