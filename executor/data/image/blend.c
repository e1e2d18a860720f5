/* executor/data/image/blend.c - see blend.h. */
#include "executor/data/image/blend.h"

#include "core/model/element.h"

#include <math.h>
#include <string.h>

enum {
    STREAM_BLEND = 0x626c656e,
    TRIES = 64,
    DRAWS_OF_A_SAMPLE = 2 * TRIES + 4 /* numbers that may be drawn for a sample, at most */
};

/* By Jöhnk's method: of a pair u^(1/a), v^(1/a) whose sum is at most 1, the first one's part of the sum. With a of at
 * most 1 at least half of all pairs are such, so that 64 pairs are never all in vain. */
static double draw_beta(struct ghp_draws *d, double a)
{
    for (int i = 0; i < TRIES; i++) {
        double log_u = log(1 - ghp_draws_next(d)) / a, log_v = log(1 - ghp_draws_next(d)) / a;

        if (exp(log_u) + exp(log_v) <= 1) return 1 / (1 + exp(log_v - log_u));
    }
    return 0.5;
}

/* The middle is drawn in the whole picture, and what lies outside is left out. */
static void draw_box(struct ghp_draws *d, struct ghp_image_size to, struct ghp_blend *blend)
{
    double half = 0.5 * sqrt(blend->fraction);
    int64_t x = (int64_t)(ghp_draws_next(d) * (double)to.w),
            y = (int64_t)(ghp_draws_next(d) * (double)to.h),
            half_w = (int64_t)(half * (double)to.w), half_h = (int64_t)(half * (double)to.h);
    struct ghp_rectangle *box = &blend->box;

    box->first_x = x > half_w ? x - half_w : 0;
    box->first_y = y > half_h ? y - half_h : 0;
    box->end_x = x + half_w < to.w ? x + half_w : to.w;
    box->end_y = y + half_h < to.h ? y + half_h : to.h;
    blend->fraction =
        (double)((box->end_x - box->first_x) * (box->end_y - box->first_y)) / (double)(to.w * to.h);
}

struct ghp_blend ghp_blend_draw(const struct ghp_blending *blending, struct ghp_image_size to,
                                int64_t samples, struct ghp_crop_key key)
{
    struct ghp_draws d = {.key = key, .stream = STREAM_BLEND, .most = DRAWS_OF_A_SAMPLE};
    bool second = ghp_draws_next(&d) < 0.5;
    int64_t ahead = 1 + (int64_t)(ghp_draws_next(&d) * (double)(samples - 1));
    struct ghp_blend blend = {.other = (key.sample + ahead) % samples,
                              .cutmix = blending->cutmix > 0 && (second || !(blending->mixup > 0))};

    blend.fraction = 1 - draw_beta(&d, blend.cutmix ? blending->cutmix : blending->mixup);
    if (blend.cutmix) draw_box(&d, to, &blend);
    return blend;
}

/* ---- numbers ---- */

static void put_box(const struct ghp_rectangle *box, const struct ghp_blended *n)
{
    int64_t bytes = n->channels * n->element_bytes;

    for (int64_t y = box->first_y; y < box->end_y; y++) {
        int64_t at = (y * n->to.w + box->first_x) * bytes;

        memcpy((char *)n->image + at, (const char *)n->other + at,
               (size_t)((box->end_x - box->first_x) * bytes));
    }
}

/* In doubles if numbers are, else in floats. */
static inline void add(double fraction, const struct ghp_blended *n, int element_bytes)
{
    int64_t count = n->to.w * n->to.h * n->channels;
    float narrow = (float)fraction, narrow_rest = (float)(1 - fraction);

    for (int64_t i = 0; i < count; i++) {
        double own = ghp_element_get(n->image, i, element_bytes),
               other = ghp_element_get(n->other, i, element_bytes);

        ghp_element_set(n->image, i, element_bytes,
                        element_bytes == 8
                            ? (1 - fraction) * own + fraction * other
                            : (double)(narrow_rest * (float)own + narrow * (float)other));
    }
}

void ghp_blend_apply(const struct ghp_blend *blend, struct ghp_blended numbers)
{
    if (blend->cutmix)
        put_box(&blend->box, &numbers);
    else if (numbers.element_bytes == 8)
        add(blend->fraction, &numbers, 8);
    else if (numbers.element_bytes == 4)
        add(blend->fraction, &numbers, 4);
    else
        add(blend->fraction, &numbers, 2);
}
