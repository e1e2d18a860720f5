/* executor/data/image/crop.h - which part of a picture becomes a sample: for evaluation its centre, for training one
 * drawn by meaning and never by rank.
 *
 * Source   the crops that published image networks are trained and evaluated with: a random part of the picture's area
 *          and a random aspect, mirrored half of the time (Szegedy et al., Going deeper with convolutions, section 6);
 *          the centre of a picture whose shorter side is 8/7 of the sample's (256 of 224) */
#ifndef GHP_EXECUTOR_DATA_IMAGE_CROP_H
#define GHP_EXECUTOR_DATA_IMAGE_CROP_H

#include "executor/data/image/image.h"

struct ghp_crop {
    double left, top, right, bottom; /* what is resized to the sample, in pixels */
    struct ghp_rectangle seen;       /* pixels that may be looked at */
    bool mirrored;                   /* left and right change places */
};

struct ghp_crop_ranges { /* of random crops */
    double area[2];      /* least and most, of the picture's: 0 < least <= most <= 1 */
    double aspect[2];    /* least and most width over height, > 0 */
    double flip;         /* probability of being mirrored */
};

struct ghp_crop_key { /* what a random crop depends on */
    uint64_t seed;
    int64_t epoch, sample;
};

struct ghp_draws { /* random numbers of one sample, for one use of them */
    struct ghp_crop_key key;
    uint32_t stream; /* the use's own */
    int most;        /* numbers that a sample may draw for it; the same of all samples */
    int n;           /* drawn so far */
};

/* The next number, uniform in [0, 1). */
double ghp_draws_next(struct ghp_draws *draws);

/* The centre: the picture resized so that it covers 8/7 of `to`, and cut to `to`; of a picture that is as large as
 * `to`, all of it.
 * Local. Tested tests/executor/data/image/test_image.c */
struct ghp_crop ghp_crop_centre(struct ghp_image_size picture, struct ghp_image_size to);

/* A random part. If ten draws do not fit into the picture, its centre with the nearest aspect. */
struct ghp_crop ghp_crop_random(struct ghp_image_size picture, const struct ghp_crop_ranges *ranges,
                                struct ghp_crop_key key);

/* The pixels that are needed to resize the crop to `to`, within `seen`. */
struct ghp_rectangle ghp_crop_needed(const struct ghp_crop *crop, struct ghp_image_size to);

/* How many times reduced the picture may be decoded: 8, 4 or 2 if the crop stays as large as `to`, else 1. */
int ghp_crop_reduction(const struct ghp_crop *crop, struct ghp_image_size to);

#endif
