/* executor/backend/cpu/pool.c - max, average and global average pools.
 *
 * A max pool keeps, for each output, which place of its window was greatest: one byte if the window has at most 255
 * places, else four (ghp_local_saved_bytes). The last value of either type says that the window held nothing but
 * padding: its output is 0 and its gradient goes nowhere. So it does too if a ReLU is right before the pool, takes
 * its backward pass along, and would let nothing through: if the greatest value is not above 0. */
#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/platform/streaming_store.h"

#include <string.h>

enum {
    NO_ARGMAX = -1,
    NO_ARGMAX_BYTE = 255,
    LANES = 16 /* neighbouring channels that are computed at once */
};

typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef uint16_t shorts __attribute__((vector_size(LANES * sizeof(uint16_t))));
typedef int32_t words __attribute__((vector_size(LANES * sizeof(int32_t))));

/* Window of one output: its corner at h, w, and its places r0 <= r < r1, s0 <= s < s1 that lie inside the image, each
 * dh rows and dw columns from the next. */
struct box {
    int64_t h, w, dh, dw, r0, r1, s0, s1;
};

/* The first place at or after `bound`, counted from `corner` in steps. */
static int64_t argmax_from(int64_t bound, int64_t corner, int64_t step)
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
    int64_t r1 = argmax_from(local->h, box.h, box.dh), s1 = argmax_from(local->w, box.w, box.dw);
    box.r0 = argmax_from(0, box.h, box.dh);
    box.s0 = argmax_from(0, box.w, box.dw);
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

/* 1 / values that a mean counts; 0 if there are none. */
static double mean_scale(const struct ghp_local *local, struct box box)
{
    if (box_empty(box)) return 0.0;
    int64_t inside = (box.r1 - box.r0) * (box.s1 - box.s0);
    int64_t count = local->window.count_pad ? local->window.r * local->window.s : inside;
    return 1.0 / (double)count;
}

static bool saves_bytes(const struct ghp_local *local)
{
    return local->window.r * local->window.s <= NO_ARGMAX_BYTE;
}

static void save_argmax(const struct ghp_local *local, int32_t argmax, int64_t at, void *saved)
{
    if (saves_bytes(local))
        ((uint8_t *)saved)[at] = (uint8_t)(argmax & NO_ARGMAX_BYTE);
    else
        ((int32_t *)saved)[at] = argmax;
}

/* As saved: no place of the window, either way, if it held nothing but padding. */
static int32_t load_argmax(const struct ghp_local *local, const void *saved, int64_t at)
{
    return saves_bytes(local) ? ((const uint8_t *)saved)[at] : ((const int32_t *)saved)[at];
}

/* Whether LANES channels from channel i on of a pixel can be taken at once, with `left` elements from its first to the
 * end of the tensor, or of the share if they are written. If a pixel is narrower they reach into the next ones: these
 * are read for nothing, and written before their own turn comes. */
static bool lanes_fit(int64_t i, int64_t c, int64_t left)
{
    return i + LANES <= c || (c < LANES && left >= LANES);
}

/* Whether windows cover the image side by side, without padding: each input has one output. The most common pool, 2 x 2
 * by 2. */
static bool is_tiled(const struct ghp_local *local)
{
    const struct ghp_window *w = &local->window;
    return w->r == w->stride_h && w->s == w->stride_w && w->dilation_h == 1 && w->dilation_w == 1 &&
           w->pad_top == 0 && w->pad_left == 0 && local->p * w->r == local->h &&
           local->q * w->s == local->w;
}

/* A place of the window, at which an output takes an input and the input gives to the output: the one's pixel for row
 * and column 0 of the other, those outside being padding, or no output. */
struct tap {
    int64_t row, column;
    int64_t at; /* its element of channel 0 */
    int32_t argmax;
};

/* All that outputs take, in the order of their places. */
static int64_t output_taps(const struct ghp_local *local, struct tap *tap)
{
    const struct ghp_window *w = &local->window;
    int64_t count = 0;
    for (int64_t r = 0; r < w->r; r++)
        for (int64_t s = 0; s < w->s; s++) {
            int64_t row = r * w->dilation_h - w->pad_top, column = s * w->dilation_w - w->pad_left;
            tap[count++] = (struct tap){row, column, (row * local->w + column) * local->c,
                                        (int32_t)(r * w->s + s)};
        }
    return count;
}

/* What inputs give whose row and column, counted from the padding's, leave these rests by the strides, in the order
 * of the outputs; these are counted from the quotients. */
static int64_t input_taps(const struct ghp_local *local, int64_t down, int64_t right,
                          struct tap *tap)
{
    const struct ghp_window *w = &local->window;
    int64_t count = 0;
    for (int64_t r = w->r; r-- > 0;) {
        int64_t row = down - r * w->dilation_h;
        if (row % w->stride_h != 0) continue;
        row /= w->stride_h;
        for (int64_t s = w->s; s-- > 0;) {
            int64_t column = right - s * w->dilation_w;
            if (column % w->stride_w != 0) continue;
            column /= w->stride_w;
            tap[count++] = (struct tap){row, column, (row * local->q + column) * local->c,
                                        (int32_t)(r * w->s + s)};
        }
    }
    return count;
}

static bool inside(int64_t at, int64_t problem)
{
    return (uint64_t)at < (uint64_t)problem;
}

/* Taps from first to end - 1. */
struct taps {
    const struct tap *first, *end;
};

/* Those whose rows are inside, seen from this row: rows rise, or fall. */
static struct taps taps_inside(struct taps taps, int64_t row, int64_t rows)
{
    while (taps.first < taps.end && !inside(row + taps.first->row, rows))
        taps.first++;
    while (taps.first < taps.end && !inside(row + taps.end[-1].row, rows))
        taps.end--;
    return taps;
}

/* Scratch of each part: all taps; and where those of each pair of rests begin. */
static int64_t taps_bytes(const struct ghp_local *local)
{
    return ghp_align(local->window.r * local->window.s * (int64_t)sizeof(struct tap));
}

static int64_t part_bytes(const struct ghp_local *local)
{
    int64_t rests = local->window.stride_h * local->window.stride_w;
    return taps_bytes(local) + ghp_align((rests + 1) * (int64_t)sizeof(int64_t));
}

static struct tap *part_taps(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             int part)
{
    return (struct tap *)(void *)((char *)args->at.scratch + part * part_bytes(local));
}

static int64_t *part_rests(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           int part)
{
    return (int64_t *)(void *)((char *)part_taps(local, args, part) + taps_bytes(local));
}

#define BODY "executor/backend/cpu/pool_body.h"
#include "executor/backend/cpu/precisions.h"

static int64_t tap_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * part_bytes(local);
}

/* In bfloat16 sums are kept in float until they are complete: of a pixel, or of an image. */
static int64_t pixel_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    return element_bytes == 2 ? parts * ghp_align(local->c * (int64_t)sizeof(float)) : 0;
}

static int64_t image_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    int64_t image = local->h * local->w * local->c;
    return element_bytes == 2 ? parts * ghp_align(image * (int64_t)sizeof(float)) : 0;
}

const struct ghp_cpu_kernel ghp_cpu_kernel_max_relu = {GHP_OP_MAX_POOL, GHP_PASS_FORWARD, "loop",
                                                       GHP_CPU_KERNEL_EACH(max_forward_relu, NULL),
                                                       tap_rows};

const struct ghp_cpu_kernel ghp_cpu_kernels_pool[] = {
    {GHP_OP_MAX_POOL, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(max_forward, NULL), tap_rows},
    {GHP_OP_MAX_POOL, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(max_data, NULL),
     tap_rows},
    {GHP_OP_AVG_POOL, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(avg_forward, NULL), pixel_sums},
    {GHP_OP_AVG_POOL, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(avg_data, NULL),
     image_sums},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(global_forward, NULL),
     pixel_sums},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(global_data, NULL),
     NULL},
    {.name = NULL},
};
