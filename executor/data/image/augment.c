/* executor/data/image/augment.c - see augment.h. */
#include "executor/data/image/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAM_AUGMENT = 0x61756721,
    DRAWS_OF_A_SAMPLE = 128, /* numbers that may be drawn for a sample, at most */
    TRIES = 10
};

static const double erased_area[2] = {0.02, 0.33}, erased_aspect[2] = {0.3, 3.3};
static const float luma[3] = {0.2989f, 0.587f, 0.114f}; /* of red, green and blue in gray */

const struct ghp_augmentation ghp_augment_usual = {
    .crop = {.area = {0.08, 1}, .aspect = {3.0 / 4, 4.0 / 3}, .flip = 0.5}};

/* ---- as text ---- */

struct key {
    const char *name;
    double *value;
    int n; /* numbers; of two the least and the most, but for randaugment's */
    double least, most;
};

static bool is_range(const struct key *key)
{
    return key->n == 2 && strcmp(key->name, "randaugment") != 0;
}

static enum ghp_status fail_key(const struct key *key, const char *text)
{
    if (!is_range(key) && key->n == 2)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--augment randaugment takes a whole number of operations, 1 to %d, and "
                        "their magnitude, 0 to %d, as in randaugment=2:9; '%s' is not that",
                        GHP_RAND_OPS_MOST, GHP_RAND_MAGNITUDE_MOST, text);
    if (key->n == 2)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--augment %s takes two numbers of %g to %g, the least and the most, as in "
                        "%s=0.5:1; '%s' is not that",
                        key->name, key->least, key->most, key->name, text);
    return GHP_FAIL(GHP_ERR_USAGE, "--augment %s takes a number of %g to %g; '%s' is not one",
                    key->name, key->least, key->most, text);
}

/* The key's numbers from "VALUE" or "LEAST:MOST". */
static enum ghp_status read_value(const struct key *key, const char *text)
{
    const char *at = text;

    for (int i = 0; i < key->n; i++) {
        char *end;

        key->value[i] = strtod(at, &end);
        if (end == at || *end != (i + 1 < key->n ? ':' : '\0') ||
            !(key->value[i] >= key->least && key->value[i] <= key->most) ||
            (is_range(key) && i > 0 && key->value[i] < key->value[i - 1]))
            return fail_key(key, text);
        at = end + 1;
    }
    if (key->n == 1 || is_range(key)) return GHP_OK;
    return key->value[0] >= 1 && key->value[0] <= GHP_RAND_OPS_MOST &&
                   key->value[0] == floor(key->value[0])
               ? GHP_OK
               : fail_key(key, text);
}

static enum ghp_status read_keys(char *text, const struct key *keys)
{
    char *rest = text, *word;

    while ((word = strsep(&rest, ",")) != NULL) {
        char *value = strchr(word, '=');
        const struct key *key = keys;

        if (value != NULL) *value++ = '\0';
        while (value != NULL && key->name != NULL && strcmp(key->name, word) != 0)
            key++;
        if (value == NULL || key->name == NULL)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "--augment takes auto, none, crop-flip, or KEY=VALUE,... with the keys "
                            "area, aspect, flip, vflip, brightness, contrast, saturation, hue, "
                            "gray, erase, randaugment, mixup and cutmix; '%s' is not one of them",
                            word);
        GHP_TRY(read_value(key, value));
    }
    return GHP_OK;
}

enum ghp_status ghp_augment_parse(const char *text, struct ghp_augmentation *augmentation)
{
    struct ghp_augmentation a = ghp_augment_usual;
    const struct key keys[] = {{"area", a.crop.area, 2, 0.001, 1},
                               {"aspect", a.crop.aspect, 2, 0.01, 100},
                               {"flip", &a.crop.flip, 1, 0, 1},
                               {"vflip", &a.vflip, 1, 0, 1},
                               {"brightness", &a.colour[GHP_COLOUR_BRIGHTNESS], 1, 0, 10},
                               {"contrast", &a.colour[GHP_COLOUR_CONTRAST], 1, 0, 10},
                               {"saturation", &a.colour[GHP_COLOUR_SATURATION], 1, 0, 10},
                               {"hue", &a.colour[GHP_COLOUR_HUE], 1, 0, 0.5},
                               {"gray", &a.gray, 1, 0, 1},
                               {"erase", &a.erase, 1, 0, 1},
                               {"randaugment", a.rand, 2, 0, GHP_RAND_MAGNITUDE_MOST},
                               {"mixup", &a.blending.mixup, 1, 0, 1},
                               {"cutmix", &a.blending.cutmix, 1, 0, 1},
                               {NULL, NULL, 0, 0, 0}};
    enum ghp_status status = GHP_OK;
    char *copy;

    if (strcmp(text, "crop-flip") != 0 && strcmp(text, "auto") != 0) {
        copy = strdup(text);
        if (copy == NULL) return GHP_NO_MEMORY();
        status = read_keys(copy, keys);
        free(copy);
    }
    *augmentation = a;
    return status;
}

bool ghp_augment_only_blends(const char *text)
{
    const char *at = text;

    do {
        at += *at == ',';
        if (strncmp(at, "mixup=", 6) != 0 && strncmp(at, "cutmix=", 7) != 0) return false;
        at = strchr(at, ',');
    } while (at != NULL);
    return true;
}

/* ---- drawing ---- */

static double draw(struct ghp_draws *d, double least, double most)
{
    return least + (most - least) * ghp_draws_next(d);
}

static struct ghp_rectangle draw_erased(struct ghp_draws *d, struct ghp_image_size to)
{
    for (int i = 0; i < TRIES; i++) {
        double area = (double)(to.w * to.h) * draw(d, erased_area[0], erased_area[1]),
               aspect = exp(draw(d, log(erased_aspect[0]), log(erased_aspect[1])));
        int64_t h = llround(sqrt(area * aspect)), w = llround(sqrt(area / aspect)), x, y;

        if (h < 1 || w < 1 || h >= to.h || w >= to.w) continue;
        y = (int64_t)draw(d, 0, (double)(to.h - h + 1));
        x = (int64_t)draw(d, 0, (double)(to.w - w + 1));
        return (struct ghp_rectangle){x, y, x + w, y + h};
    }
    return (struct ghp_rectangle){0};
}

struct ghp_augmented ghp_augment_draw(const struct ghp_augmentation *a, struct ghp_image_size to,
                                      struct ghp_crop_key key)
{
    struct ghp_draws d = {.key = key, .stream = STREAM_AUGMENT, .most = DRAWS_OF_A_SAMPLE};
    struct ghp_augmented drawn = {.vflipped = draw(&d, 0, 1) < a->vflip,
                                  .gray = draw(&d, 0, 1) < a->gray};
    bool erases = draw(&d, 0, 1) < a->erase;

    for (int i = 0; i < GHP_COLOUR_COUNT; i++) {
        double x = a->colour[i];
        int other = (int)draw(&d, 0, i + 1);

        drawn.by[i] = i == GHP_COLOUR_HUE ? draw(&d, -x, x) : draw(&d, fmax(0, 1 - x), 1 + x);
        drawn.order[i] = drawn.order[other];
        drawn.order[other] = (enum ghp_colour)i;
    }
    if (erases) drawn.erased = draw_erased(&d, to);
    drawn.rand = ghp_rand_draw((int)a->rand[0], a->rand[1], to, key);
    return drawn;
}

/* ---- colours ---- */

struct picture {   /* in float, 0 to 1 */
    float *pixels; /* [n][channels] */
    int64_t n;
    int channels;
};

static float clamped(float x)
{
    return fminf(fmaxf(x, 0), 1);
}

static float gray_of(const struct picture *p, int64_t i)
{
    const float *at = p->pixels + i * p->channels;

    return p->channels == 1 ? at[0] : luma[0] * at[0] + luma[1] * at[1] + luma[2] * at[2];
}

static void scale(const struct picture *p, double factor)
{
    for (int64_t i = 0; i < p->n * p->channels; i++)
        p->pixels[i] = clamped((float)factor * p->pixels[i]);
}

/* Away from the picture's mean gray, or towards it. */
static void change_contrast(const struct picture *p, double factor)
{
    double sum = 0;
    float mean;

    for (int64_t i = 0; i < p->n; i++)
        sum += gray_of(p, i);
    mean = (float)(sum / (double)p->n * (1 - factor));
    for (int64_t i = 0; i < p->n * p->channels; i++)
        p->pixels[i] = clamped((float)factor * p->pixels[i] + mean);
}

/* Away from each pixel's gray, or towards it: factor 0 is gray. */
static void change_saturation(const struct picture *p, double factor)
{
    for (int64_t i = 0; i < p->n; i++) {
        float gray = gray_of(p, i) * (float)(1 - factor);

        for (int c = 0; c < p->channels; c++)
            p->pixels[i * p->channels + c] =
                clamped((float)factor * p->pixels[i * p->channels + c] + gray);
    }
}

/* The hue of a colour, in turns from red, of which `most` and `range` are the greatest number and how much less the
 * least one is. */
static float hue_of(const float *at, float most, float range)
{
    float from_red = at[0] == most   ? (at[1] - at[2]) / range
                     : at[1] == most ? 2 + (at[2] - at[0]) / range
                                     : 4 + (at[0] - at[1]) / range;

    return from_red / 6;
}

static void turn_hue(const struct picture *p, double turns)
{
    for (int64_t i = 0; i < p->n; i++) {
        float *at = p->pixels + 3 * i, most = fmaxf(at[0], fmaxf(at[1], at[2])),
              range = most - fminf(at[0], fminf(at[1], at[2])), hue;

        if (range <= 0) continue;
        hue = 6 * (hue_of(at, most, range) + (float)turns);
        for (int c = 0; c < 3; c++) { /* red is at 0, green at 2, blue at 4 of six */
            float away = fabsf(hue - 2 * (float)c - 6 * roundf((hue - 2 * (float)c) / 6));

            at[c] = most - range * fminf(fmaxf(away - 1, 0), 1);
        }
    }
}

static void change(const struct picture *p, enum ghp_colour colour, double by)
{
    if (colour == GHP_COLOUR_BRIGHTNESS)
        scale(p, by);
    else if (colour == GHP_COLOUR_CONTRAST)
        change_contrast(p, by);
    else if (p->channels == 3 && colour == GHP_COLOUR_SATURATION)
        change_saturation(p, by);
    else if (p->channels == 3)
        turn_hue(p, by);
}

/* Whether the colour's number changes anything. */
static bool changes(const struct ghp_augmented *drawn, enum ghp_colour colour)
{
    double nothing = colour == GHP_COLOUR_HUE ? 0 : 1;

    return drawn->by[colour] < nothing || drawn->by[colour] > nothing;
}

static bool has_colours(const struct ghp_augmented *drawn)
{
    bool any = drawn->gray;

    for (int i = 0; i < GHP_COLOUR_COUNT; i++)
        any = any || changes(drawn, (enum ghp_colour)i);
    return any;
}

static enum ghp_status recolour(const struct ghp_augmented *drawn, int64_t n, int channels,
                                unsigned char *pixels)
{
    struct picture p = {ghp_alloc((size_t)(n * channels), sizeof *p.pixels), n, channels};

    if (p.pixels == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n * channels; i++)
        p.pixels[i] = (float)pixels[i] / 255;
    for (int i = 0; i < GHP_COLOUR_COUNT; i++)
        if (changes(drawn, drawn->order[i]))
            change(&p, drawn->order[i], drawn->by[drawn->order[i]]);
    if (drawn->gray && channels == 3) change_saturation(&p, 0);
    for (int64_t i = 0; i < n * channels; i++)
        pixels[i] = (unsigned char)lrintf(255 * p.pixels[i]);
    free(p.pixels);
    return GHP_OK;
}

/* ---- places ---- */

static void flip_rows(struct ghp_image_size to, int channels, unsigned char *pixels)
{
    int64_t row = to.w * channels;

    for (int64_t y = 0; y < to.h / 2; y++)
        for (int64_t i = 0; i < row; i++) {
            unsigned char *above = pixels + y * row + i, *below = pixels + (to.h - 1 - y) * row + i;
            unsigned char kept = *above;

            *above = *below;
            *below = kept;
        }
}

enum ghp_status ghp_augment_apply(const struct ghp_augmented *drawn, struct ghp_image_size to,
                                  int channels, const unsigned char *fill, unsigned char *pixels)
{
    if (drawn->vflipped) flip_rows(to, channels, pixels);
    if (drawn->rand.n > 0) GHP_TRY(ghp_rand_apply(&drawn->rand, to, channels, pixels));
    if (has_colours(drawn)) GHP_TRY(recolour(drawn, to.w * to.h, channels, pixels));
    for (int64_t y = drawn->erased.first_y; y < drawn->erased.end_y; y++)
        for (int64_t x = drawn->erased.first_x; x < drawn->erased.end_x; x++)
            memcpy(pixels + (y * to.w + x) * channels, fill, (size_t)channels);
    return GHP_OK;
}
