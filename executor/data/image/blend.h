/* executor/data/image/blend.h - two training samples as one: mixup adds them, cutmix puts a rectangle of the one into
 * the other. The labels of both count in the loss, by their fractions.
 *
 * The other sample and its fraction depend on seed, epoch and sample alone: each sample has its own, and its
 * own other sample, drawn from the whole training set. So a blended sample is the same under every plan, batch and number
 * of workers. If both kinds are asked for, each is drawn half of the time.
 *
 * Source   Zhang et al., mixup: Beyond Empirical Risk Minimization (ICLR 2018); Yun et al., CutMix (ICCV 2019); the
 *          rectangle as torchvision's and timm's CutMix draw it */
#ifndef GHP_EXECUTOR_DATA_IMAGE_BLEND_H
#define GHP_EXECUTOR_DATA_IMAGE_BLEND_H

#include "executor/data/image/crop.h"

struct
    ghp_blending { /* a of the distribution Beta(a, a) of fractions, up to 1; 0: not of this kind */
    double mixup, cutmix;
};

struct ghp_blend {            /* of one sample */
    int64_t other;            /* sample */
    double fraction;          /* of the other, 0 to 1 */
    bool cutmix;              /* cutmix: the other's numbers are in `box` alone */
    struct ghp_rectangle box; /* `fraction` of the sample's area */
};

static inline bool ghp_blending_is_on(const struct ghp_blending *blending)
{
    return blending->mixup > 0 || blending->cutmix > 0;
}

/* Draws for a sample of the size `to`, of a training set of `samples` samples.
 * Local
 * Tested    tests/executor/data/image/test_augment.c */
struct ghp_blend ghp_blend_draw(const struct ghp_blending *blending, struct ghp_image_size to,
                                int64_t samples, struct ghp_crop_key key);

struct ghp_blended { /* numbers of both samples, [to.h][to.w][channels] */
    struct ghp_image_size to;
    int64_t channels;
    int element_bytes; /* 2, 4 or 8: core/model/precision.h */
    const void *other;
    void *image; /* becomes the blended one */
};
void ghp_blend_apply(const struct ghp_blend *blend, struct ghp_blended numbers);

#endif
