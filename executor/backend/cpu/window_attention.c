/* executor/backend/cpu/window_attention.c - attention within windows of an image.
 *
 * A part has heads of windows of samples, each of which is small: its scores are recomputed row by row. The table's
 * gradient is a sum over all of them, so that a part there has whole heads; that of a table of each sample is one over
 * its windows, so that a part has whole heads of a sample.
 *
 * ghp-options: -O3 -ffp-contract=fast */
#ifndef KERNEL
#include "core/model/window_attention.h"

#include "core/model/attention.h"
#include "executor/backend/cpu/exponential.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

enum {
    PIXELS_MOST = GHP_WINDOW_MOST * GHP_WINDOW_MOST,
    PLACES_MOST = (2 * GHP_WINDOW_MOST - 1) * (2 * GHP_WINDOW_MOST - 1),
    CHANNELS = 64 /* summed in registers */
};

/* One head of one window of a sample: where its rows are, `stride` from one to the next. */
struct head {
    int64_t sample, first, stride, window, windows, number;
    float *logarithms;
};

static struct head head_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           int64_t i)
{
    int64_t pixels = local->tiles.h * local->tiles.w, windows = local->h / pixels;
    int64_t number = i % local->heads.n, window = i / local->heads.n % windows,
            n = i / local->heads.n / windows;
    float *saved = args->at.saved;

    return (struct head){
        .sample = n,
        .first = (n * local->h + window * pixels) * local->c + number * local->heads.size,
        .stride = local->c,
        .window = window,
        .windows = windows,
        .number = number,
        .logarithms = saved != NULL
                          ? saved + (n * local->heads.n + number) * local->h + window * pixels
                          : NULL};
}

static int64_t heads_of(const struct ghp_local *local)
{
    return local->n * (local->h / (local->tiles.h * local->tiles.w)) * local->heads.n;
}

/* Windows of a head that a part has all of in the backward pass. */
static int64_t windows_of_part(const struct ghp_local *local)
{
    return ghp_window_has_table(local) ? local->h / (local->tiles.h * local->tiles.w) : 1;
}

/* The number, for head_of, of window k of part i's head. */
static int64_t head_of_part(const struct ghp_local *local, int64_t i, int64_t k)
{
    int64_t windows = windows_of_part(local), heads = local->heads.n;

    return windows == 1 ? i : (i / heads * windows + k) * heads + i % heads;
}

/* The place in the table of a sample of the head's first number. */
static int64_t own_table(const struct ghp_local *local, const struct head *head)
{
    return head->sample * ghp_window_offsets(&local->tiles) * local->heads.n + head->number;
}

/* Weights and slopes of one head, of each part. */
static int64_t data_scratch(const struct ghp_local *local, int parts, int element_bytes)
{
    int64_t pixels = local->tiles.h * local->tiles.w;

    (void)element_bytes;
    return parts * ghp_align(2 * pixels * pixels * (int64_t)sizeof(float));
}

static float *window_room(const struct ghp_kernel_arguments *args, int part, int64_t pixels)
{
    return (float *)(void *)((char *)args->at.scratch +
                             part * ghp_align(2 * pixels * pixels * (int64_t)sizeof(float)));
}

#define BODY "executor/backend/cpu/window_attention.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_window_attention[] = {
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(window_forward, NULL),
     NULL},
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_BACKWARD_DATA, "loop",
     GHP_CPU_KERNEL_EACH(window_data, NULL), data_scratch},
    {GHP_OP_WINDOW_ATTENTION, GHP_PASS_BACKWARD_WEIGHT, "loop",
     GHP_CPU_KERNEL_EACH(window_weight, NULL), NULL},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). Tensors are [n][position][channel], the table float. */

static float KERNEL(window_dot)(int64_t n, const SCALAR *a, const SCALAR *b)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += GET(a[i]) * GET(b[i]);
    return sum;
}

static void KERNEL(window_add)(int64_t n, float factor, const SCALAR *x, float *sum)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * GET(x[i]);
}

/* The scores of a query, by the places of its keys; hidden ones are far below all others. */
static void KERNEL(window_scores)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, const struct head *head,
                                  int64_t query, float *scores)
{
    const struct ghp_tiles *tiles = &local->tiles;
    const SCALAR *x = (const SCALAR *)args->at.x[0] + head->first + query * head->stride;
    const SCALAR *keys = (const SCALAR *)args->at.x[1] + head->first;
    const float *table = (const float *)args->at.w[0] + head->number;
    const SCALAR *own =
        ghp_window_has_table(local) ? (const SCALAR *)args->at.x[3] + own_table(local, head) : NULL;
    float scale = (float)ghp_attention_scale(&local->heads);
    bool shifted = ghp_window_is_last_row(tiles, head->window, head->windows) ||
                   ghp_window_is_last_column(tiles, head->window);
    for (int64_t key = 0; key < tiles->h * tiles->w; key++) {
        int64_t place = ghp_window_offset(tiles, query, key) * local->heads.n;
        scores[key] = scale * KERNEL(window_dot)(local->heads.size, x, keys + key * head->stride) +
                      table[place];
        if (own != NULL) scores[key] += GET(own[place]);
        if (shifted && !ghp_window_sees(tiles, head->window, head->windows, query, key))
            scores[key] = -1e30f;
    }
}

static void KERNEL(window_forward)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range heads = ghp_part_range(part, heads_of(local), 1);
    int64_t pixels = local->tiles.h * local->tiles.w, size = local->heads.size;
    float scores[PIXELS_MOST];
    for (int64_t i = heads.first; i < heads.end; i++) {
        struct head head = head_of(local, args, i);
        const SCALAR *values = (const SCALAR *)args->at.x[2] + head.first;
        for (int64_t query = 0; query < pixels; query++) {
            SCALAR *y = (SCALAR *)args->at.y + head.first + query * head.stride;
            float greatest = -INFINITY, sum = 0;
            KERNEL(window_scores)(local, args, &head, query, scores);
            for (int64_t key = 0; key < pixels; key++)
                greatest = scores[key] > greatest ? scores[key] : greatest;
#pragma omp simd reduction(+ : sum)
            for (int64_t key = 0; key < pixels; key++) {
                scores[key] = ghp_exponential(scores[key] - greatest);
                sum += scores[key];
            }
            for (int64_t c = 0; c < size; c += CHANNELS) {
                float mean[CHANNELS] = {0};
                int64_t n = size - c < CHANNELS ? size - c : CHANNELS;
                for (int64_t key = 0; key < pixels; key++)
                    KERNEL(window_add)(n, scores[key], values + key * head.stride + c, mean);
                for (int64_t k = 0; k < n; k++)
                    y[c + k] = PUT(mean[k] / sum);
            }
            if (head.logarithms != NULL) head.logarithms[query] = greatest + logf(sum);
        }
    }
}

/* Weights of a query's values, and the gradients of its scores. */
static void KERNEL(window_slopes)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, const struct head *head,
                                  int64_t query, float *weights, float *slopes)
{
    int64_t mine = head->first + query * head->stride, size = local->heads.size;
    const SCALAR *dy = (const SCALAR *)args->at.dy + mine;
    const SCALAR *values = (const SCALAR *)args->at.x[2] + head->first;
    float mean = KERNEL(window_dot)(size, dy, (const SCALAR *)args->at.y + mine);
    KERNEL(window_scores)(local, args, head, query, weights);
    for (int64_t key = 0; key < local->tiles.h * local->tiles.w; key++) {
        weights[key] = ghp_exponential(weights[key] - head->logarithms[query]);
        slopes[key] =
            weights[key] * (KERNEL(window_dot)(size, dy, values + key * head->stride) - mean);
    }
}

/* dx of one input and head: rows of another's, each weighted; [key][query] of the weights where `turned`. */
static void KERNEL(window_rows)(const struct ghp_local *local, const struct head *head,
                                const float *weights, bool turned, float scale, const SCALAR *rows,
                                SCALAR *dx)
{
    int64_t pixels = local->tiles.h * local->tiles.w, size = local->heads.size;
    for (int64_t to = 0; to < pixels; to++)
        for (int64_t c = 0; c < size; c += CHANNELS) {
            float sum[CHANNELS] = {0};
            int64_t n = size - c < CHANNELS ? size - c : CHANNELS;
            for (int64_t from = 0; from < pixels; from++)
                KERNEL(window_add)
            (n, weights[turned ? from * pixels + to : to * pixels + from],
             rows + head->first + from * head->stride + c, sum);
            for (int64_t k = 0; k < n; k++)
                dx[head->first + to * head->stride + c + k] = PUT(scale * sum[k]);
        }
}

/* dx of one head of a window; slopes are added to `numbers`, by their places, if a table of the sample wants them. */
static void KERNEL(window_head)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part,
                                int64_t i, float *numbers)
{
    int64_t pixels = local->tiles.h * local->tiles.w;
    float *weights = window_room(args, part.index, pixels), *slopes = weights + pixels * pixels;
    float scale = (float)ghp_attention_scale(&local->heads);
    SCALAR *const *dx = (SCALAR *const *)args->at.dx;
    struct head head = head_of(local, args, i);
    for (int64_t query = 0; query < pixels; query++)
        KERNEL(window_slopes)
    (local, args, &head, query, weights + query * pixels, slopes + query * pixels);
    if (dx[0] != NULL)
        KERNEL(window_rows)(local, &head, slopes, false, scale, args->at.x[1], dx[0]);
    if (dx[1] != NULL) KERNEL(window_rows)(local, &head, slopes, true, scale, args->at.x[0], dx[1]);
    if (dx[2] != NULL) KERNEL(window_rows)(local, &head, weights, true, 1, args->at.dy, dx[2]);
    for (int64_t pair = 0; numbers != NULL && pair < pixels * pixels; pair++)
        numbers[ghp_window_offset(&local->tiles, pair / pixels, pair % pixels)] += slopes[pair];
}

static void KERNEL(window_data)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t windows = windows_of_part(local), places = ghp_window_offsets(&local->tiles);
    struct ghp_range heads = ghp_part_range(part, heads_of(local) / windows, 1);
    for (int64_t i = heads.first; i < heads.end; i++) {
        float numbers[PLACES_MOST];
        struct head head = head_of(local, args, head_of_part(local, i, 0));
        SCALAR *own = ghp_window_has_table(local) ? args->at.dx[3] : NULL;
        memset(numbers, 0, own != NULL ? (size_t)places * sizeof *numbers : 0);
        for (int64_t k = 0; k < windows; k++)
            KERNEL(window_head)
        (local, args, part, head_of_part(local, i, k), own != NULL ? numbers : NULL);
        for (int64_t place = 0; own != NULL && place < places; place++)
            own[own_table(local, &head) + place * local->heads.n] = PUT(numbers[place]);
    }
}

static void KERNEL(window_weight)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range own = ghp_part_range(part, local->heads.n, 1);
    int64_t pixels = local->tiles.h * local->tiles.w, all = local->heads.n;
    float weights[PIXELS_MOST], slopes[PIXELS_MOST];
    for (int64_t number = own.first; number < own.end; number++) {
        float *table = (float *)args->at.dw[0] + number;
        for (int64_t offset = 0; offset < ghp_window_offsets(&local->tiles); offset++)
            table[offset * all] = 0;
        for (int64_t i = number; i < heads_of(local); i += all) {
            struct head head = head_of(local, args, i);
            for (int64_t query = 0; query < pixels; query++) {
                KERNEL(window_slopes)(local, args, &head, query, weights, slopes);
                for (int64_t key = 0; key < pixels; key++)
                    table[ghp_window_offset(&local->tiles, query, key) * all] += slopes[key];
            }
        }
    }
}

#endif
