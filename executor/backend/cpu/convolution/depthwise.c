/* executor/backend/cpu/convolution/depthwise.c - weight gradients of channel-wise convolutions, in float, on plain tensors:
 *
 *     dw[c][r][s] = the sum of x[n][p + r][q + s][c] dy[n][p][q][c] over n, p and q
 *
 * The library has a kernel of its own for windows of 3 x 3 only; to its others a channel is a group of one. Here a
 * row of the window, of 16 channels, stays in registers along a row of dy. Sums of rows are added up in scratch, so
 * none has many terms. Compiled with fused multiply-adds: for `fast` numerics only, one of the algorithms that the
 * profiler times.
 *
 * -Wno-psabi: functions that take or give vectors are all inlined, so no call depends on a processor's registers.
 *
 * ghp-options: -O3 -ffp-contract=fast -Wno-psabi */
#include "executor/backend/cpu/kernels_cpu.h"

#include <string.h>

enum {
    BLOCK = GHP_BLOCK_CHANNELS,
#ifdef __AVX512F__
    LANES = 16,
#else
    LANES = 8,
#endif
    VECTORS = BLOCK / LANES,
    MOST_S = 7
};

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static ALWAYS_INLINE lanes load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* A row of dy, and the row of x that one row of the window sees of it; of 16 channels. */
struct row {
    const float *x, *dy;
    int64_t channels, w, q, stride, pad, dilation;
};

/* Adds what one pixel of dy gives to the places of a row of the window that lie inside x. */
static ALWAYS_INLINE void add_pixel(struct row row, int64_t q, bool inside, int s,
                                    lanes sum[MOST_S][VECTORS])
{
    const int64_t first = q * row.stride - row.pad;
    lanes dy[VECTORS];
    UNROLLED (v, VECTORS)
        dy[v] = load(row.dy + q * row.channels + v * LANES);
    UNROLLED (i, s) {
        int64_t w = first + i * row.dilation;
        if (inside || (w >= 0 && w < row.w))
            UNROLLED (v, VECTORS)
                sum[i][v] += load(row.x + w * row.channels + v * LANES) * dy[v];
    }
}

static ALWAYS_INLINE void add_row(struct row row, int s, float *to)
{
    const int64_t reach = (s - 1) * row.dilation - row.pad; /* of the window, to the right */
    int64_t begin = (row.pad + row.stride - 1) / row.stride, q = 0;
    int64_t end = row.w - 1 - reach < 0 ? 0 : (row.w - 1 - reach) / row.stride + 1;
    lanes sum[MOST_S][VECTORS];
    if (begin > row.q) begin = row.q;
    if (end > row.q) end = row.q;
    UNROLLED (i, s)
        UNROLLED (v, VECTORS)
            sum[i][v] = load(to + i * BLOCK + v * LANES);
    for (; q < begin; q++)
        add_pixel(row, q, false, s, sum);
    for (; q < end; q++)
        add_pixel(row, q, true, s, sum);
    for (; q < row.q; q++)
        add_pixel(row, q, false, s, sum);
    UNROLLED (i, s)
        UNROLLED (v, VECTORS)
            memcpy(to + i * BLOCK + v * LANES, &sum[i][v], sizeof sum[i][v]);
}

/* Adds what one image gives to the sums of 16 channels, [r][s][16]. */
static void add_image(const struct ghp_local *l, const float *x, const float *dy, float *sums)
{
    const struct ghp_window *window = &l->window;
    for (int64_t p = 0; p < l->p; p++)
        for (int64_t r = 0; r < window->r; r++) {
            int64_t h = p * window->stride_h - window->pad_top + r * window->dilation_h;
            const struct row row = {.x = x + h * l->w * l->c,
                                    .dy = dy + p * l->q * l->c,
                                    .channels = l->c,
                                    .w = l->w,
                                    .q = l->q,
                                    .stride = window->stride_w,
                                    .pad = window->pad_left,
                                    .dilation = window->dilation_w};
            if (h < 0 || h >= l->h) continue;
            switch (window->s) {
            case 3: add_row(row, 3, sums + r * 3 * BLOCK); break;
            case 5: add_row(row, 5, sums + r * 5 * BLOCK); break;
            default: add_row(row, MOST_S, sums + r * MOST_S * BLOCK); break;
            }
        }
}

/* Sums of all images lie [channel / 16][r][s][16]; one image's, before they are added to these, after them. */
static void depthwise_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    const int64_t places = local->window.r * local->window.s;
    const float *x = args->at.x[0], *dy = args->at.dy;
    float *sums = args->at.scratch, *dw = args->at.dw[0];
    float *image = sums + (local->c + part.index * BLOCK) * places;
    struct ghp_range range = ghp_part_range(part, local->c, BLOCK);
    memset(sums + range.first * places, 0,
           (size_t)((range.end - range.first) * places) * sizeof *sums);
    for (int64_t n = 0; n < local->n; n++)
        for (int64_t c = range.first; c < range.end; c += BLOCK) {
            memset(image, 0, (size_t)(BLOCK * places) * sizeof *image);
            add_image(local, x + n * local->h * local->w * local->c + c,
                      dy + n * local->p * local->q * local->c + c, image);
            for (int64_t i = 0; i < BLOCK * places; i++)
                sums[c * places + i] += image[i];
        }
    for (int64_t c = range.first; c < range.end; c++)
        for (int64_t i = 0; i < places; i++)
            dw[c * places + i] = sums[c / BLOCK * BLOCK * places + i * BLOCK + c % BLOCK];
}

static int64_t depthwise_scratch(const struct ghp_local *local, int parts, int element_bytes)
{
    return (local->c + parts * (int64_t)BLOCK) * local->window.r * local->window.s * element_bytes;
}

bool ghp_cpu_kernel_is_depthwise(const struct ghp_backend *backend, const struct ghp_local *local,
                                 enum ghp_pass pass, struct ghp_kernel_spec spec)
{
    const struct ghp_window *window = &local->window;
    return !backend->config.exact && backend->config.element_bytes == sizeof(float) &&
           local->op == GHP_OP_CONV2D && pass == GHP_PASS_BACKWARD_WEIGHT &&
           window->groups == local->c && local->k == local->c && local->c % BLOCK == 0 &&
           (window->s == 3 || window->s == 5 || window->s == MOST_S) && !spec.x && !spec.y;
}

const struct ghp_cpu_kernel ghp_cpu_kernel_depthwise = {GHP_OP_CONV2D,
                                                        GHP_PASS_BACKWARD_WEIGHT,
                                                        GHP_CPU_KERNEL_DEPTHWISE,
                                                        {{NULL, depthwise_weight, NULL}},
                                                        depthwise_scratch};
