/* tests/executor/backend/test_pack.c - channel slices against index arithmetic: odd and word-sized blocks; and of
 * tensors of which one side or both lie in blocks of 16 channels, against the way round, packing plain and reordering
 * by itself. */
#include "executor/backend/pack.h"
#include "tests/check.h"

static void check_shape(int64_t rows, int64_t block, int parts)
{
    struct ghp_pack pack = {.rows = rows, .block_bytes = block, .parts = parts};
    int64_t n = rows * block * parts, wrong = 0;
    unsigned char *whole = calloc((size_t)n, 1), *split = calloc((size_t)n, 1),
                  *again = calloc((size_t)n, 1);

    for (int64_t i = 0; i < n; i++)
        whole[i] = (unsigned char)(i * 7 + i / 251);
    ghp_pack_split(pack, whole, split);
    for (int p = 0; p < parts; p++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t b = 0; b < block; b++)
                wrong += split[(p * rows + r) * block + b] != whole[(r * parts + p) * block + b];
    memset(again, 0, (size_t)n);
    ghp_pack_join(pack, split, again);
    CHECK_EQ(wrong, 0);
    CHECK(memcmp(whole, again, (size_t)n) == 0);
    for (int p = 0; p < parts; p++) {
        ghp_pack_take(pack, whole, p, again);
        CHECK(memcmp(again, split + p * rows * block, (size_t)(rows * block)) == 0);
    }
    free(again);
    free(split);
    free(whole);
}

/* Rows that whole blocks do not fill: the rest of the last ones is zeros, and no row gets it. */
static void check_short(int64_t rows, int64_t row, int64_t block, int parts)
{
    struct ghp_pack pack = {.rows = rows, .block_bytes = block, .parts = parts, .row_bytes = row};
    int64_t n = rows * row, padded = rows * block * parts, wrong = 0;
    unsigned char *whole = calloc((size_t)n, 1), *split = malloc((size_t)padded),
                  *again = calloc((size_t)n, 1);

    for (int64_t i = 0; i < n; i++)
        whole[i] = (unsigned char)(1 + i % 251);
    memset(split, 0xff, (size_t)padded);
    ghp_pack_split(pack, whole, split);
    for (int p = 0; p < parts; p++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t b = 0; b < block; b++) {
                int64_t at = p * block + b;

                wrong += split[(p * rows + r) * block + b] != (at < row ? whole[r * row + at] : 0);
            }
    CHECK_EQ(wrong, 0);
    ghp_pack_join(pack, split, again);
    CHECK(memcmp(whole, again, (size_t)n) == 0);
    free(again);
    free(split);
    free(whole);
}

/* ---- blocks of 16 channels ---- */

enum { LANES = 16 };

struct image {
    int64_t n, pixels, c, element; /* bytes of an element */
};

/* The place of a channel of a pixel, in elements. */
static int64_t place(struct image z, bool nchw16c, int64_t n, int64_t p, int64_t c)
{
    if (!nchw16c) return (n * z.pixels + p) * z.c + c;
    return ((n * (z.c / LANES) + c / LANES) * z.pixels + p) * LANES + c % LANES;
}

static void turn(struct image z, const unsigned char *plain, unsigned char *nchw16c)
{
    for (int64_t n = 0; n < z.n; n++)
        for (int64_t p = 0; p < z.pixels; p++)
            for (int64_t c = 0; c < z.c; c++)
                memcpy(nchw16c + z.element * place(z, true, n, p, c),
                       plain + z.element * place(z, false, n, p, c), (size_t)z.element);
}

static unsigned char *copy_of(struct image z, const unsigned char *plain, bool nchw16c)
{
    size_t bytes = (size_t)(z.n * z.pixels * z.c * z.element);
    unsigned char *copy = malloc(bytes);

    if (nchw16c)
        turn(z, plain, copy);
    else
        memcpy(copy, plain, bytes);
    return copy;
}

/* Slices of `part` channels out of `parts` of them, and back, whole and slices in either format (that whole blocks
 * allow). */
static void check_nchw16c(struct image part, int parts, bool whole_nchw16c, bool part_nchw16c)
{
    struct image z = {part.n, part.pixels, part.c * parts, part.element};
    struct ghp_pack plainly = {.rows = z.n * z.pixels,
                               .block_bytes = part.c * z.element,
                               .parts = parts},
                    pack = plainly;
    if ((whole_nchw16c && z.c % LANES != 0) || (part_nchw16c && part.c % LANES != 0)) return;
    size_t bytes = (size_t)(z.n * z.pixels * z.c * z.element), slice = bytes / (size_t)parts;
    unsigned char *plain = malloc(bytes), *slices = malloc(bytes), *got = malloc(bytes),
                  *again = malloc(bytes), *whole;

    pack.whole_nchw16c = whole_nchw16c;
    pack.part_nchw16c = part_nchw16c;
    pack.pixels = z.pixels;
    pack.lane_bytes = LANES * z.element;
    for (size_t i = 0; i < bytes; i++)
        plain[i] = (unsigned char)(i * 7 + i / 251);
    whole = copy_of(z, plain, whole_nchw16c);
    ghp_pack_split(plainly, plain, slices);
    ghp_pack_split(pack, whole, got);
    for (int i = 0; i < parts; i++) {
        unsigned char *wanted = copy_of(part, slices + (size_t)i * slice, part_nchw16c);

        CHECK(memcmp(got + (size_t)i * slice, wanted, slice) == 0);
        memset(again, 0, slice);
        ghp_pack_take(pack, whole, i, again);
        CHECK(memcmp(again, wanted, slice) == 0);
        free(wanted);
    }
    memset(again, 0, bytes);
    ghp_pack_join(pack, got, again);
    CHECK(memcmp(again, whole, bytes) == 0);
    memset(again, 0, bytes);
    for (int i = parts - 1; i >= 0; i--)
        ghp_pack_put(pack, got + (size_t)i * slice, i, again);
    CHECK(memcmp(again, whole, bytes) == 0);
    free(whole);
    free(again);
    free(got);
    free(slices);
    free(plain);
}

static void check_memory_formats(void)
{
    static const struct image images[] = {{3, 35, 16, 4}, {2, 9, 48, 4}, {1, 1, 32, 4},
                                          {2, 16, 32, 2}, {2, 5, 16, 8}, {2, 6, 8, 4},
                                          {3, 5, 24, 4},  {2, 7, 20, 4}, {1, 4, 12, 2}};

    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        for (int parts = 1; parts <= 4; parts++)
            for (int sides = 0; sides < 4; sides++)
                check_nchw16c(images[i], parts, (sides & 1) != 0, (sides & 2) != 0);
}

CHECK_TEST(pack)
{
    static const int64_t blocks[] = {1, 4, 8, 12, 64, 100};

    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        for (int parts = 1; parts <= 5; parts++) {
            check_shape(1, blocks[i], parts);
            check_shape(37, blocks[i], parts);
        }
    check_short(9, 23, 8, 3);
    check_short(5, 20, 8, 4); /* the last slice has nothing */
    check_memory_formats();
    return check_end();
}
