/* executor/loops_pool.c - max, average and global average pools.
 *
 * A max pool keeps, for each output, which place of its window was greatest: one byte where the window has at most 255
 * places, else four (ghp_local_saved_bytes). The last value of either type says that the window held nothing but
 * padding: its output is 0 and its gradient goes nowhere. */
#include "executor/backend_private.h"
#include "core/precision.h"

#include <string.h>

enum {
    NO_PLACE = -1,
    NO_PLACE_BYTE = 255,
    NARROW = 16 /* channels below which they are taken one by one */
};

/* Window of one output: its corner at h, w, and its places r0 <= r < r1, s0 <= s < s1 that lie inside the image, each
 * dh rows and dw columns from the next. */
struct box {
    int64_t h, w, dh, dw, r0, r1, s0, s1;
};

/* The first place at or behind `bound`, counted from `corner` in steps. */
static int64_t place_from(int64_t bound, int64_t corner, int64_t step)
{
    return bound <= corner ? 0 : (bound - corner + step - 1) / step;
}

static struct box box_of(const struct ghp_local *local, int64_t p, int64_t q)
{
    const struct ghp_window *window = &local->window;
    struct box box = {.h = p * window->stride_h - window->pad_top,
                      .w = q * window->stride_w - window->pad_left,
                      .dh = window->dilation_h,
                      .dw = window->dilation_w};
    int64_t r1 = place_from(local->h, box.h, box.dh), s1 = place_from(local->w, box.w, box.dw);
    box.r0 = place_from(0, box.h, box.dh);
    box.s0 = place_from(0, box.w, box.dw);
    box.r1 = r1 < window->r ? r1 : window->r;
    box.s1 = s1 < window->s ? s1 : window->s;
    return box;
}

static bool box_empty(struct box box)
{
    return box.r0 >= box.r1 || box.s0 >= box.s1;
}

/* Element of channel 0 at a place of the window, in an image. */
static int64_t box_at(const struct ghp_local *local, struct box box, int64_t r, int64_t s)
{
    return ((box.h + r * box.dh) * local->w + box.w + s * box.dw) * local->c;
}

/* 1 / values that a mean counts; 0 where there are none. */
static double mean_scale(const struct ghp_local *local, struct box box)
{
    if (box_empty(box)) return 0.0;
    int64_t inside = (box.r1 - box.r0) * (box.s1 - box.s0);
    int64_t count = local->window.count_pad ? local->window.r * local->window.s : inside;
    return 1.0 / (double)count;
}

static int32_t *part_places(const struct ghp_call *call, int part, int64_t c)
{
    char *base = call->at.scratch;
    return (int32_t *)(void *)(base + part * ghp_loop_row_bytes(c * (int64_t)sizeof(int32_t)));
}

static void save_places(const struct ghp_local *local, const int32_t *place, int64_t at,
                        void *saved)
{
    if (local->window.r * local->window.s > 255) {
        memcpy((int32_t *)saved + at, place, (size_t)local->c * sizeof *place);
        return;
    }
    uint8_t *to = (uint8_t *)saved + at;
    for (int64_t i = 0; i < local->c; i++)
        to[i] = (uint8_t)(place[i] & NO_PLACE_BYTE);
}

static void load_places(const struct ghp_local *local, const void *saved, int64_t at,
                        int32_t *place)
{
    if (local->window.r * local->window.s > 255) {
        memcpy(place, (const int32_t *)saved + at, (size_t)local->c * sizeof *place);
        return;
    }
    const uint8_t *from = (const uint8_t *)saved + at;
    for (int64_t i = 0; i < local->c; i++)
        place[i] = from[i];
}

/* Whether windows cover the image side by side, without padding, and channels come in whole registers: then each input
 * has one output, places fit a byte, and nothing but registers stands between x and y. The most common pool, 2 x 2 by 2,
 * on tensors of blocks. */
enum { TILE_CHANNELS = 16 };

static bool is_tiled(const struct ghp_local *local)
{
    const struct ghp_window *w = &local->window;
    return w->r == w->stride_h && w->s == w->stride_w && w->dilation_h == 1 && w->dilation_w == 1 &&
           w->pad_top == 0 && w->pad_left == 0 && local->p * w->r == local->h &&
           local->q * w->s == local->w && w->r * w->s <= 255 && local->c % TILE_CHANNELS == 0;
}

#define BODY "executor/loops_pool_body.h"
#include "executor/loops_precisions.h"

static int64_t place_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_loop_row_bytes(local->c * (int64_t)sizeof(int32_t));
}

/* In bfloat16 sums are kept in float until they are complete: of a pixel, or of an image. */
static int64_t pixel_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    return element_bytes == 2 ? parts * ghp_loop_row_bytes(local->c * (int64_t)sizeof(float)) : 0;
}

static int64_t image_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    int64_t image = local->h * local->w * local->c;
    return element_bytes == 2 ? parts * ghp_loop_row_bytes(image * (int64_t)sizeof(float)) : 0;
}

static int64_t places_and_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    return place_rows(local, parts, element_bytes) +
           (is_tiled(local) ? 0 : image_sums(local, parts, element_bytes));
}

#define EACH(run)                                                                                  \
    {                                                                                              \
        {NULL, run##_float, NULL}, {NULL, run##_double, NULL},                                     \
        {                                                                                          \
            NULL, run##_bf16, NULL                                                                 \
        }                                                                                          \
    }

const struct ghp_loop ghp_loops_pool[] = {
    {GHP_OP_MAX_POOL, GHP_PASS_FORWARD, "loop", EACH(max_forward), place_rows},
    {GHP_OP_MAX_POOL, GHP_PASS_BACKWARD_DATA, "loop", EACH(max_data), places_and_sums},
    {GHP_OP_AVG_POOL, GHP_PASS_FORWARD, "loop", EACH(avg_forward), pixel_sums},
    {GHP_OP_AVG_POOL, GHP_PASS_BACKWARD_DATA, "loop", EACH(avg_data), image_sums},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_FORWARD, "loop", EACH(global_forward), pixel_sums},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_BACKWARD_DATA, "loop", EACH(global_data), NULL},
    {.name = NULL},
};
