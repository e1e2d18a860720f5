/* executor/data/image/rand_augment.c - see rand_augment.h. */
#include "executor/data/image/rand_augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_RAND = 0x72616e64, DRAWS_OF_A_SAMPLE = 2 * GHP_RAND_OPS_MOST, LEVELS = 256 };

struct picture {
    struct ghp_image_size size;
    int channels;
    unsigned char *pixels;
    const unsigned char *before; /* a copy */
};

/* ---- drawing ---- */

/* What an operation takes, at the greatest magnitude; and whether it goes both ways. */
static double greatest(enum ghp_rand_op op, struct ghp_image_size to, bool *both_ways)
{
    *both_ways = op >= GHP_RAND_SHEAR_X && op <= GHP_RAND_SHARPNESS;
    switch (op) {
    case GHP_RAND_SHEAR_X:
    case GHP_RAND_SHEAR_Y: return 0.3;
    case GHP_RAND_TRANSLATE_X: return 150.0 / 331 * (double)to.w;
    case GHP_RAND_TRANSLATE_Y: return 150.0 / 331 * (double)to.h;
    case GHP_RAND_ROTATE: return 30;
    case GHP_RAND_BRIGHTNESS:
    case GHP_RAND_COLOR:
    case GHP_RAND_CONTRAST:
    case GHP_RAND_SHARPNESS: return 0.9;
    case GHP_RAND_POSTERIZE: return 4;
    case GHP_RAND_SOLARIZE: return 255;
    default: return 0;
    }
}

static double amount(enum ghp_rand_op op, double by, bool backwards)
{
    double signed_by = backwards ? -by : by;

    if (op == GHP_RAND_TRANSLATE_X || op == GHP_RAND_TRANSLATE_Y) return trunc(signed_by);
    if (op >= GHP_RAND_BRIGHTNESS && op <= GHP_RAND_SHARPNESS) return 1 + signed_by;
    if (op == GHP_RAND_POSTERIZE) return 8 - nearbyint(by);
    if (op == GHP_RAND_SOLARIZE) return 255 - by;
    return signed_by;
}

struct ghp_rand_drawn ghp_rand_draw(int n, double magnitude, struct ghp_image_size to,
                                    struct ghp_crop_key key)
{
    struct ghp_draws d = {.key = key, .stream = STREAM_RAND, .most = DRAWS_OF_A_SAMPLE};
    struct ghp_rand_drawn drawn = {.n = n};

    for (int i = 0; i < n; i++) {
        enum ghp_rand_op op = (enum ghp_rand_op)(ghp_draws_next(&d) * GHP_RAND_OP_COUNT);
        bool half = ghp_draws_next(&d) < 0.5, both_ways;
        double by = greatest(op, to, &both_ways) * magnitude / GHP_RAND_MAGNITUDE_MOST;

        drawn.ops[i].op = op;
        drawn.ops[i].by = amount(op, by, both_ways && half);
    }
    return drawn;
}

/* ---- places ---- */

/* Each pixel from the nearest to a (x, y) + b of it, where x and y are of pixels' middles from `origin` on. */
struct warp {
    double xx, xy, yx, yy, x, y;
    double origin_x, origin_y;
};

static void move(const struct picture *p, const struct warp *w)
{
    for (int64_t y = 0; y < p->size.h; y++)
        for (int64_t x = 0; x < p->size.w; x++) {
            unsigned char *to = p->pixels + (y * p->size.w + x) * p->channels;
            double at_x = (double)x + 0.5 - w->origin_x, at_y = (double)y + 0.5 - w->origin_y;
            double from_x = nearbyint(w->xx * at_x + w->xy * at_y + w->x + w->origin_x - 0.5);
            double from_y = nearbyint(w->yx * at_x + w->yy * at_y + w->y + w->origin_y - 0.5);
            bool inside = from_x >= 0 && from_x < (double)p->size.w && from_y >= 0 &&
                          from_y < (double)p->size.h;

            if (inside)
                memcpy(to,
                       p->before + ((int64_t)from_y * p->size.w + (int64_t)from_x) * p->channels,
                       (size_t)p->channels);
            else
                memset(to, 0, (size_t)p->channels);
        }
}

static void move_by(const struct picture *p, enum ghp_rand_op op, double by)
{
    struct warp warp = {.xx = 1, .yy = 1};

    if (op == GHP_RAND_SHEAR_X) warp.xy = by;
    if (op == GHP_RAND_SHEAR_Y) warp.yx = by;
    if (op == GHP_RAND_TRANSLATE_X) warp.x = -by;
    if (op == GHP_RAND_TRANSLATE_Y) warp.y = -by;
    if (op == GHP_RAND_ROTATE) { /* about the middle, against the clock */
        double turn = by * acos(-1.0) / 180;

        warp = (struct warp){.xx = cos(turn),
                             .xy = -sin(turn),
                             .yx = sin(turn),
                             .yy = cos(turn),
                             .origin_x = (double)p->size.w / 2,
                             .origin_y = (double)p->size.h / 2};
    }
    move(p, &warp);
}

/* ---- colours ---- */

static unsigned char clamp(float level)
{
    return (unsigned char)fminf(fmaxf(level, 0), LEVELS - 1);
}

static unsigned char gray_of(const struct picture *p, int64_t i)
{
    const unsigned char *at = p->before + i * p->channels;

    return p->channels == 1
               ? at[0]
               : clamp(0.2989f * (float)at[0] + 0.587f * (float)at[1] + 0.114f * (float)at[2]);
}

/* `factor` times the picture's level and the rest of the other. */
static unsigned char mixed(double factor, unsigned char level, float other)
{
    return clamp((float)factor * (float)level + (float)(1 - factor) * other);
}

static float mean_gray(const struct picture *p)
{
    int64_t n = p->size.w * p->size.h;
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += gray_of(p, i);
    return (float)(sum / (double)n);
}

/* The mean of a pixel's neighbours and five times itself; at the border the pixel. */
static float blurred(const struct picture *p, int64_t i, int channel)
{
    int64_t y = i / p->size.w, x = i % p->size.w;
    const unsigned char *at = p->before + i * p->channels + channel;
    int sum = 4 * *at;

    if (x == 0 || y == 0 || x + 1 == p->size.w || y + 1 == p->size.h) return (float)*at;
    for (int64_t down = -1; down <= 1; down++)
        for (int64_t right = -1; right <= 1; right++)
            sum += at[(down * p->size.w + right) * p->channels];
    return nearbyintf((float)sum / 13);
}

static void recolour(const struct picture *p, enum ghp_rand_op op, double factor)
{
    float mean = op == GHP_RAND_CONTRAST ? mean_gray(p) : 0;

    if (op == GHP_RAND_SHARPNESS && (p->size.w <= 2 || p->size.h <= 2)) return;
    if (op == GHP_RAND_COLOR && p->channels == 1) return;
    for (int64_t i = 0; i < p->size.w * p->size.h; i++) {
        float gray = op == GHP_RAND_COLOR ? gray_of(p, i) : mean;

        for (int c = 0; c < p->channels; c++)
            p->pixels[i * p->channels + c] =
                mixed(factor, p->before[i * p->channels + c],
                      op == GHP_RAND_SHARPNESS ? blurred(p, i, c) : gray);
    }
}

/* ---- levels ---- */

static void stretch(const int64_t *count, unsigned char *becomes)
{
    int least = 0, most = LEVELS - 1;
    float scale;

    while (count[least] == 0)
        least++;
    while (count[most] == 0)
        most--;
    if (least == most) return;
    scale = (float)(LEVELS - 1) / (float)(most - least);
    for (int level = least; level <= most; level++)
        becomes[level] = clamp((float)(level - least) * scale);
}

/* So that each level that is there stands for as many pixels. */
static void equalize(const int64_t *count, int64_t pixels, unsigned char *becomes)
{
    int most = LEVELS - 1;
    int64_t step, below = 0;

    while (count[most] == 0)
        most--;
    step = (pixels - count[most]) / (LEVELS - 1);
    if (step == 0) return;
    for (int level = 0; level < LEVELS; level++) {
        int64_t to = level == 0 ? 0 : (below + step / 2) / step;

        becomes[level] = (unsigned char)(to < LEVELS ? to : LEVELS - 1);
        below += count[level];
    }
}

/* Each channel by a table of its levels. */
static void change_levels(const struct picture *p, enum ghp_rand_op op, double by)
{
    int64_t n = p->size.w * p->size.h;

    for (int c = 0; c < p->channels; c++) {
        int64_t count[LEVELS] = {0};
        unsigned char becomes[LEVELS];

        for (int64_t i = 0; i < n; i++)
            count[p->before[i * p->channels + c]]++;
        for (int level = 0; level < LEVELS; level++) {
            becomes[level] = (unsigned char)level;
            if (op == GHP_RAND_POSTERIZE) becomes[level] &= (unsigned char)(0xff << (8 - (int)by));
            if (op == GHP_RAND_SOLARIZE && level >= by)
                becomes[level] = (unsigned char)(LEVELS - 1 - level);
        }
        if (op == GHP_RAND_AUTOCONTRAST) stretch(count, becomes);
        if (op == GHP_RAND_EQUALIZE) equalize(count, n, becomes);
        for (int64_t i = 0; i < n; i++)
            p->pixels[i * p->channels + c] = becomes[p->before[i * p->channels + c]];
    }
}

enum ghp_status ghp_rand_apply(const struct ghp_rand_drawn *drawn, struct ghp_image_size to,
                               int channels, unsigned char *pixels)
{
    size_t bytes = (size_t)(to.w * to.h * channels);
    unsigned char *before = malloc(bytes);
    struct picture p = {to, channels, pixels, before};

    if (before == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < drawn->n; i++) {
        enum ghp_rand_op op = drawn->ops[i].op;

        if (op == GHP_RAND_IDENTITY) continue;
        memcpy(before, pixels, bytes);
        if (op <= GHP_RAND_ROTATE)
            move_by(&p, op, drawn->ops[i].by);
        else if (op <= GHP_RAND_SHARPNESS)
            recolour(&p, op, drawn->ops[i].by);
        else
            change_levels(&p, op, drawn->ops[i].by);
    }
    free(before);
    return GHP_OK;
}
