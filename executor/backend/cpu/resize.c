/* executor/backend/cpu/resize.c - resize: an output pixel is a weighted sum of some neighbours.
 *
 * Gradients are gathered: each input pixel asks the outputs that it has a weight in, which lie side by side, in their
 * order. So results do not depend on the parts.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "executor/backend/cpu/kernels_cpu.h"

enum { TILE = 16 }; /* channels */

struct axis {
    enum ghp_resize mode;
    int64_t in, out;
};

struct taps { /* input pixels that an output is made of */
    int64_t first, n;
    float each,
        second; /* weight of every one; LINEAR, CORNERS: of the first and the second of two */
};

static struct taps taps_of(struct axis axis, int64_t i)
{
    double in = (double)axis.in, out = (double)axis.out, at, last = in - 1;
    struct taps taps = {.first = i * axis.in / axis.out, .n = 1, .each = 1};
    if (axis.mode == GHP_RESIZE_NEAREST) return taps;
    if (axis.mode == GHP_RESIZE_AREA) {
        taps.n = ((i + 1) * axis.in + axis.out - 1) / axis.out - taps.first;
        taps.each = 1 / (float)taps.n;
        return taps;
    }
    at = axis.mode == GHP_RESIZE_LINEAR ? ((double)i + 0.5) * in / out - 0.5
         : axis.out > 1                 ? (double)i * last / (out - 1)
                                        : 0;
    at = at < 0 ? 0 : at > last ? last : at;
    taps.first = (int64_t)at;
    if (taps.first == axis.in - 1) return taps;
    taps.n = 2;
    taps.second = (float)(at - (double)taps.first);
    taps.each = (float)(1 - (at - (double)taps.first));
    return taps;
}

static float weight_of(struct axis axis, struct taps taps, int64_t j)
{
    bool is_pair = axis.mode == GHP_RESIZE_LINEAR || axis.mode == GHP_RESIZE_CORNERS;
    return is_pair && j > taps.first ? taps.second : taps.each;
}

struct
    pixel { /* of the input, and the first row and column of outputs that it may have a weight in */
    int64_t h, w, p, q;
};

/* The first output that an input pixel may have a weight in. */
static int64_t first_output(struct axis axis, int64_t j)
{
    int64_t low = axis.in > 1 && axis.out > axis.in
                      ? (j - 1) * axis.out / axis.in - 2
                      : (j - 1) * (axis.out - 1) / (axis.in > 1 ? axis.in - 1 : 1) - 2;
    struct taps taps;
    if (low < 0 || axis.in == 1) low = 0;
    for (taps = taps_of(axis, low); low < axis.out - 1 && taps.first + taps.n <= j;
         taps = taps_of(axis, low))
        low++;
    return low;
}

#define BODY "executor/backend/cpu/resize.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_resize[] = {
    {GHP_OP_RESIZE, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(resize_forward, NULL), NULL},
    {GHP_OP_RESIZE, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(resize_data, NULL), NULL},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). */

/* sum[c] += weight x[c], c < n <= TILE. */
static ALWAYS_INLINE void KERNEL(resize_add)(int64_t n, float weight, const SCALAR *x,
                                             float sum[TILE])
{
    if (n == TILE)
#pragma omp simd
        for (int c = 0; c < TILE; c++)
            sum[c] += weight * GET(x[c]);
    else
        for (int64_t c = 0; c < n; c++)
            sum[c] += weight * GET(x[c]);
}

static void KERNEL(resize_forward)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, local->n * local->p, 1);
    const struct axis rows = {local->resize, local->h, local->p},
                      columns = {local->resize, local->w, local->q};
    int64_t channels = local->c;
    for (int64_t row = at.first; row < at.end; row++) {
        const SCALAR *x =
            (const SCALAR *)args->at.x[0] + row / local->p * local->h * local->w * channels;
        struct taps down = taps_of(rows, row % local->p);
        for (int64_t q = 0; q < local->q; q++) {
            SCALAR *y = (SCALAR *)args->at.y + (row * local->q + q) * channels;
            struct taps across = taps_of(columns, q);
            for (int64_t c = 0; c < channels; c += TILE) {
                int64_t n = channels - c < TILE ? channels - c : TILE;
                float sum[TILE] = {0};
                for (int64_t h = down.first; h < down.first + down.n; h++)
                    for (int64_t w = across.first; w < across.first + across.n; w++)
                        KERNEL(resize_add)
                (n, weight_of(rows, down, h) * weight_of(columns, across, w),
                 x + (h * local->w + w) * channels + c, sum);
                for (int64_t i = 0; i < n; i++)
                    y[c + i] = PUT(sum[i]);
            }
        }
    }
}

/* The gradient of one input pixel's channels from c on; dy is the sample's. */
static void KERNEL(resize_pixel)(const struct ghp_local *local, const SCALAR *dy,
                                 struct pixel pixel, int64_t n, float sum[TILE])
{
    const struct axis rows = {local->resize, local->h, local->p},
                      columns = {local->resize, local->w, local->q};
    for (int64_t p = pixel.p; p < local->p; p++) {
        struct taps down = taps_of(rows, p);
        if (down.first > pixel.h) break;
        if (down.first + down.n <= pixel.h) continue;
        for (int64_t q = pixel.q; q < local->q; q++) {
            struct taps across = taps_of(columns, q);
            if (across.first > pixel.w) break;
            if (across.first + across.n <= pixel.w) continue;
            KERNEL(resize_add)
            (n, weight_of(rows, down, pixel.h) * weight_of(columns, across, pixel.w),
             dy + (p * local->q + q) * local->c, sum);
        }
    }
}

static void KERNEL(resize_data)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, local->n * local->h, 1);
    const struct axis rows = {local->resize, local->h, local->p},
                      columns = {local->resize, local->w, local->q};
    int64_t channels = local->c;
    for (int64_t row = at.first; row < at.end; row++) {
        const SCALAR *dy =
            (const SCALAR *)args->at.dy + row / local->h * local->p * local->q * channels;
        struct pixel pixel = {.h = row % local->h};
        pixel.p = first_output(rows, pixel.h);
        for (int64_t w = 0; w < local->w; w++) {
            SCALAR *dx = (SCALAR *)args->at.dx[0] + (row * local->w + w) * channels;
            pixel.w = w;
            pixel.q = first_output(columns, w);
            for (int64_t c = 0; c < channels; c += TILE) {
                int64_t n = channels - c < TILE ? channels - c : TILE;
                float sum[TILE] = {0};
                KERNEL(resize_pixel)(local, dy + c, pixel, n, sum);
                for (int64_t i = 0; i < n; i++)
                    dx[c + i] = PUT(sum[i]);
            }
        }
    }
}

#endif
