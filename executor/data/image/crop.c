/* executor/data/image/crop.c - see crop.h. */
#include "executor/data/image/crop.h"

#include "executor/platform/random.h"

#include <math.h>

enum {
    STREAM_CROP = 0x63726f70,
    DRAWS_OF_A_SAMPLE = 64, /* numbers that a sample's crop may draw, at most */
    TRIES = 10
};

static const double evaluated = 8.0 / 7; /* the resized picture's side, of the sample's */

static double at_least(double a, double least)
{
    return a < least ? least : a;
}

static double at_most(double a, double most)
{
    return a > most ? most : a;
}

static struct ghp_rectangle all_of(struct ghp_image_size picture)
{
    return (struct ghp_rectangle){.end_x = picture.w, .end_y = picture.h};
}

/* The `to` pixels in the middle of `resized`, in pixels of a picture of `whole`. */
static void find_middle(int64_t whole, int64_t resized, int64_t to, double ends[2])
{
    double unit = (double)whole / (double)resized, first = nearbyint((double)(resized - to) / 2);

    ends[0] = first * unit;
    ends[1] = (first + (double)to) * unit;
}

struct ghp_crop ghp_crop_centre(struct ghp_image_size picture, struct ghp_image_size to)
{
    int64_t w = llround(evaluated * (double)to.w), h = llround(evaluated * (double)to.h);
    struct ghp_crop crop = {.seen = all_of(picture)};
    double across[2], down[2];

    if (picture.w == to.w && picture.h == to.h) {
        w = to.w;
        h = to.h;
    } else if (picture.w * h < picture.h * w) {
        h = w * picture.h / picture.w;
    } else {
        w = h * picture.w / picture.h;
    }
    find_middle(picture.w, w, to.w, across);
    find_middle(picture.h, h, to.h, down);
    crop.left = across[0];
    crop.right = across[1];
    crop.top = down[0];
    crop.bottom = down[1];
    return crop;
}

/* ---- random ---- */

double ghp_draws_next(struct ghp_draws *d)
{
    uint64_t stream = ((uint64_t)d->stream << 32) ^ (uint64_t)d->key.epoch,
             index = (uint64_t)d->key.sample * (uint64_t)d->most + (uint64_t)d->n++;

    return ghp_random_unit(d->key.seed, stream, index);
}

static struct ghp_crop crop_at(struct ghp_rectangle part, bool mirrored)
{
    return (struct ghp_crop){.left = (double)part.first_x,
                             .top = (double)part.first_y,
                             .right = (double)part.end_x,
                             .bottom = (double)part.end_y,
                             .seen = part,
                             .mirrored = mirrored};
}

struct ghp_crop ghp_crop_random(struct ghp_image_size picture, const struct ghp_crop_ranges *ranges,
                                struct ghp_crop_key key)
{
    struct ghp_draws d = {.key = key, .stream = STREAM_CROP, .most = DRAWS_OF_A_SAMPLE};
    bool mirrored = ghp_draws_next(&d) < ranges->flip;
    const double *areas = ranges->area, *aspects = ranges->aspect;
    double area = (double)picture.w * (double)picture.h, aspect, logs = log(aspects[1]);
    int64_t w, h, x, y;

    for (int i = 0; i < TRIES; i++) {
        double part = area * (areas[0] + (areas[1] - areas[0]) * ghp_draws_next(&d));

        aspect = exp(log(aspects[0]) + (logs - log(aspects[0])) * ghp_draws_next(&d));
        w = llround(sqrt(part * aspect));
        h = llround(sqrt(part / aspect));
        if (w < 1 || h < 1 || w > picture.w || h > picture.h) continue;
        x = (int64_t)(ghp_draws_next(&d) * (double)(picture.w - w + 1));
        y = (int64_t)(ghp_draws_next(&d) * (double)(picture.h - h + 1));
        return crop_at((struct ghp_rectangle){x, y, x + w, y + h}, mirrored);
    }
    aspect = at_most(at_least((double)picture.w / (double)picture.h, aspects[0]), aspects[1]);
    w = (int64_t)at_most((double)picture.w, nearbyint((double)picture.h * aspect));
    h = (int64_t)at_most((double)picture.h, nearbyint((double)picture.w / aspect));
    w = w < 1 ? 1 : w;
    h = h < 1 ? 1 : h;
    x = (picture.w - w) / 2;
    y = (picture.h - h) / 2;
    return crop_at((struct ghp_rectangle){x, y, x + w, y + h}, mirrored);
}

/* ---- what decoding it takes ---- */

/* Resizing looks at one pixel to each side of the crop, or as many as are resized to one. */
static void reach(double ends[2], int64_t to)
{
    double more = at_least((ends[1] - ends[0]) / (double)to, 1) + 1;

    ends[0] -= more;
    ends[1] += more;
}

struct ghp_rectangle ghp_crop_needed(const struct ghp_crop *crop, struct ghp_image_size to)
{
    double across[2] = {crop->left, crop->right}, down[2] = {crop->top, crop->bottom};

    reach(across, to.w);
    reach(down, to.h);
    return (struct ghp_rectangle){
        .first_x = (int64_t)at_least(floor(across[0]), (double)crop->seen.first_x),
        .first_y = (int64_t)at_least(floor(down[0]), (double)crop->seen.first_y),
        .end_x = (int64_t)at_most(ceil(across[1]), (double)crop->seen.end_x),
        .end_y = (int64_t)at_most(ceil(down[1]), (double)crop->seen.end_y)};
}

int ghp_crop_reduction(const struct ghp_crop *crop, struct ghp_image_size to)
{
    int by = GHP_IMAGE_REDUCTION_MOST;

    while (by > 1 && (crop->right - crop->left < (double)(by * to.w) ||
                      crop->bottom - crop->top < (double)(by * to.h)))
        by /= 2;
    return by;
}
