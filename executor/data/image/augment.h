/* executor/data/image/augment.h - what random changes a training picture goes through: its part (crop.h), a flip,
 * RandAugment (rand_augment.h), its colours, a rectangle that is erased; and whether it is blended with another one
 * (blend.h), which the source does with numbers.
 *
 * All that is drawn depends on seed, epoch and sample alone. Colours are changed in float and rounded once, to whole
 * levels of 0 to 255; each change keeps numbers between black and white, as torchvision does.
 *
 * Source   the formulas of torchvision's ColorJitter, RandomGrayscale and RandomErasing, on pictures in float */
#ifndef GHP_EXECUTOR_DATA_IMAGE_AUGMENT_H
#define GHP_EXECUTOR_DATA_IMAGE_AUGMENT_H

#include "executor/data/image/blend.h"
#include "executor/data/image/rand_augment.h"

enum ghp_colour { /* what of a picture's colours changes */
                  GHP_COLOUR_BRIGHTNESS,
                  GHP_COLOUR_CONTRAST,
                  GHP_COLOUR_SATURATION,
                  GHP_COLOUR_HUE,
                  GHP_COLOUR_COUNT
};

struct ghp_augmentation {
    struct ghp_crop_ranges crop;
    double vflip;                    /* probability that top and bottom change places */
    double colour[GHP_COLOUR_COUNT]; /* x: a factor of 1 - x (>= 0) to 1 + x; hue: -x to x turns */
    double gray, erase;              /* probabilities */
    double rand[2];                  /* RandAugment: operations, 0: none; their magnitude */
    struct ghp_blending blending;
};

struct ghp_augmented { /* what was drawn for one sample, other than its part */
    bool vflipped, gray;
    struct ghp_rand_drawn rand;
    enum ghp_colour order[GHP_COLOUR_COUNT];
    double by[GHP_COLOUR_COUNT]; /* factors; of hue turns */
    struct ghp_rectangle erased; /* of the sample; empty: nothing */
};

/* What is done unless more is asked for: a part of 8 to 100 % of the area and an aspect of 3/4 to 4/3, mirrored half of
 * the time. */
extern const struct ghp_augmentation ghp_augment_usual;

/* Reads "crop-flip" or "auto", or KEY=VALUE,... for what differs from it: area=LEAST:MOST and aspect=LEAST:MOST of the
 * part, the numbers flip, vflip, brightness, contrast, saturation, hue, gray, erase, mixup and cutmix, and
 * randaugment=OPERATIONS:MAGNITUDE.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE naming the key and what it takes
 * Local
 * Tested    tests/executor/data/image/test_augment.c */
enum ghp_status ghp_augment_parse(const char *text, struct ghp_augmentation *augmentation);

/* Whether the text asks for mixup or cutmix and nothing else, which every source of numbers can do. */
bool ghp_augment_only_blends(const char *text);

/* Draws for a sample of the size `to`. An erased rectangle has 2 to 33 % of its area and an aspect of 0.3 to 3.3,
 * unless ten draws do not fit. */
struct ghp_augmented ghp_augment_draw(const struct ghp_augmentation *augmentation,
                                      struct ghp_image_size to, struct ghp_crop_key key);

/* Changes a sample's pixels, [to.h][to.w][channels].
 *
 * channels   1 or 3; of one, saturation, hue and gray change nothing
 * fill       [channels], of what is erased
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/executor/data/image/test_augment.c (compared with torchvision) */
enum ghp_status ghp_augment_apply(const struct ghp_augmented *drawn, struct ghp_image_size to,
                                  int channels, const unsigned char *fill, unsigned char *pixels);

#endif
