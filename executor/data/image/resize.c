/* executor/data/image/resize.c - see resize.h.
 * ghp-options: -O3 -ffp-contract=fast
 *
 * First rows are mixed to one, over all columns that are looked at, as long vectors; then the columns of that row, a
 * pixel's colours at once. Rows first: there is less to do for the columns, which are the slower part. */
#include "executor/data/image/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 4,
    SLACK = LANES
}; /* a pixel is read as four numbers, of which one or three count */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

struct taps {           /* of one direction: what each of the sample's pixels is mixed of */
    int64_t to;         /* pixels of the sample */
    int64_t most;       /* taps of one pixel, and one more */
    int64_t first, end; /* of all */
    int64_t *from;      /* [to] the first, in the image */
    int64_t *n;         /* [to] how many, 1 .. most - 1 */
    float *weight;      /* [to][most], the sum of each is 1; zero after the last */
};

struct span { /* one direction of a crop, in the image's pixels */
    double begin, end;
    int64_t seen_first, seen_end;
};

/* ---- weights ---- */

static int64_t within(int64_t at, const struct span *span)
{
    return at < span->seen_first ? span->seen_first : at > span->seen_end ? span->seen_end : at;
}

static void weigh(struct taps *taps, const struct span *span, int64_t i)
{
    double unit = (span->end - span->begin) / (double)taps->to, half = unit > 1 ? unit : 1,
           centre = span->begin + ((double)i + 0.5) * unit, sum = 0;
    int64_t first = within((int64_t)floor(centre - half + 0.5), span),
            end = within((int64_t)floor(centre + half + 0.5), span);
    float *weight = taps->weight + i * taps->most;

    if (end <= first) { /* beyond the edge by rounding: its pixel */
        first = first < span->seen_end ? first : span->seen_end - 1;
        end = first + 1;
    }
    taps->from[i] = first;
    taps->n[i] = end - first;
    for (int64_t x = first; x < end; x++)
        sum += fmax(1 - fabs((double)x + 0.5 - centre) / half, 0);
    for (int64_t x = first; x < end; x++)
        weight[x - first] = sum > 0
                                ? (float)(fmax(1 - fabs((double)x + 0.5 - centre) / half, 0) / sum)
                                : 1 / (float)(end - first);
}

static enum ghp_status taps_init(struct taps *taps, const struct span *span)
{
    int64_t to = taps->to;
    double unit = (span->end - span->begin) / (double)to;

    taps->most = 2 * (int64_t)ceil(unit > 1 ? unit : 1) + 2; /* they are read in twos */
    taps->from = ghp_alloc((size_t)to, sizeof *taps->from);
    taps->n = ghp_alloc((size_t)to, sizeof *taps->n);
    taps->weight = ghp_alloc((size_t)(to * taps->most), sizeof *taps->weight);
    if (taps->from == NULL || taps->n == NULL || taps->weight == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < to; i++)
        weigh(taps, span, i);
    taps->first = taps->from[0];
    taps->end = taps->from[to - 1] + taps->n[to - 1];
    return GHP_OK;
}

static void taps_release(struct taps *taps)
{
    free(taps->from);
    free(taps->n);
    free(taps->weight);
}

/* ---- mixing ---- */

/* Two rows of n bytes, added to what is there or in its place. */
static void mix_two(const unsigned char *const rows[2], const float weight[2], bool adds, int64_t n,
                    float *restrict mixed)
{
    const unsigned char *restrict a = rows[0], *restrict b = rows[1];
    float wa = weight[0], wb = weight[1];

    if (adds)
        for (int64_t i = 0; i < n; i++)
            mixed[i] += wa * (float)a[i] + wb * (float)b[i];
    else
        for (int64_t i = 0; i < n; i++)
            mixed[i] = wa * (float)a[i] + wb * (float)b[i];
}

struct rows { /* bytes of the image */
    const unsigned char *first;
    int64_t stride, n; /* from one row to the next, and of a row that count */
};

static void mix_rows(const struct rows *rows, const float *weight, int64_t taps, float *mixed)
{
    for (int64_t t = 0; t < taps; t += 2) {
        /* after the last there is a weight of zero, but no row */
        const unsigned char *const two[2] = {rows->first + t * rows->stride,
                                             rows->first +
                                                 (t + 1 < taps ? t + 1 : t) * rows->stride};

        mix_two(two, weight + t, t > 0, rows->n, mixed);
    }
}

/* A row of the sample from the mixed row, whose first pixel is column across->first; `step` pixels from one of the
 * sample's to the next. */
static void mix_columns(const float *mixed, const struct taps *across, int channels, int64_t step,
                        unsigned char *out)
{
    for (int64_t x = 0; x < across->to; x++, out += step * channels) {
        const float *at = mixed + (across->from[x] - across->first) * channels,
                    *weight = across->weight + x * across->most;
        lanes sum = {0.5F, 0.5F, 0.5F, 0.5F}, pixel;

        for (int64_t t = 0; t < across->n[x]; t++, at += channels) {
            memcpy(&pixel, at, sizeof pixel);
            sum += weight[t] * pixel;
        }
        for (int c = 0; c < channels; c++)
            out[c] = (unsigned char)(int)sum[c];
    }
}

/* ---- a sample ---- */

static struct span span_of(const double ends[2], const int64_t seen[2], const int64_t there[2],
                           int reduction)
{
    int64_t first = seen[0] / reduction, end = (seen[1] + reduction - 1) / reduction;

    return (struct span){.begin = ends[0] / reduction,
                         .end = ends[1] / reduction,
                         .seen_first = first > there[0] ? first : there[0],
                         .seen_end = end < there[1] ? end : there[1]};
}

static enum ghp_status make_rows(const struct ghp_image *image, const struct taps *down,
                                 const struct taps *across, bool mirrored, unsigned char *out)
{
    int channels = image->channels;
    int64_t row_bytes = across->to * channels,
            stride = (image->part.end_x - image->part.first_x) * channels,
            n = (across->end - across->first) * channels;
    float *mixed = ghp_alloc((size_t)(n + SLACK), sizeof *mixed);

    if (mixed == NULL) return GHP_NO_MEMORY();
    for (int64_t y = 0; y < down->to; y++, out += row_bytes) {
        struct rows rows = {image->pixels + (down->from[y] - image->part.first_y) * stride +
                                (across->first - image->part.first_x) * channels,
                            stride, n};

        mix_rows(&rows, down->weight + y * down->most, down->n[y], mixed);
        mix_columns(mixed, across, channels, mirrored ? -1 : 1,
                    mirrored ? out + row_bytes - channels : out);
    }
    free(mixed);
    return GHP_OK;
}

enum ghp_status ghp_resize(const struct ghp_image *image, const struct ghp_crop *crop,
                           struct ghp_image_size to, unsigned char *out)
{
    const struct ghp_rectangle *seen = &crop->seen, *part = &image->part;
    struct span x = span_of((const double[2]){crop->left, crop->right},
                            (const int64_t[2]){seen->first_x, seen->end_x},
                            (const int64_t[2]){part->first_x, part->end_x}, image->reduction),
                y = span_of((const double[2]){crop->top, crop->bottom},
                            (const int64_t[2]){seen->first_y, seen->end_y},
                            (const int64_t[2]){part->first_y, part->end_y}, image->reduction);
    struct taps across = {.to = to.w}, down = {.to = to.h};
    enum ghp_status status = GHP_OK;

    GHP_TRY_GOTO(status, taps_init(&across, &x), done);
    GHP_TRY_GOTO(status, taps_init(&down, &y), done);
    status = make_rows(image, &down, &across, crop->mirrored, out);
done:
    taps_release(&across);
    taps_release(&down);
    return status;
}
