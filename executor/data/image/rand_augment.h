/* executor/data/image/rand_augment.h - RandAugment: some operations, drawn for each sample, all of one magnitude.
 *
 * Operations change whole levels of 0 to 255, as torchvision's do on tensors of bytes: numbers are cut, not rounded;
 * pixels move without interpolation, and where none comes from the picture it is black.
 *
 * Source   Cubuk et al., RandAugment (CVPR Workshops 2020); operations and magnitudes of torchvision's RandAugment */
#ifndef GHP_EXECUTOR_DATA_IMAGE_RAND_AUGMENT_H
#define GHP_EXECUTOR_DATA_IMAGE_RAND_AUGMENT_H

#include "executor/data/image/crop.h"

enum { GHP_RAND_OPS_MOST = 8, GHP_RAND_MAGNITUDE_MOST = 30 };

enum ghp_rand_op {
    GHP_RAND_IDENTITY,
    GHP_RAND_SHEAR_X,
    GHP_RAND_SHEAR_Y,
    GHP_RAND_TRANSLATE_X,
    GHP_RAND_TRANSLATE_Y,
    GHP_RAND_ROTATE,
    GHP_RAND_BRIGHTNESS,
    GHP_RAND_COLOR,
    GHP_RAND_CONTRAST,
    GHP_RAND_SHARPNESS,
    GHP_RAND_POSTERIZE,
    GHP_RAND_SOLARIZE,
    GHP_RAND_AUTOCONTRAST,
    GHP_RAND_EQUALIZE,
    GHP_RAND_OP_COUNT
};

struct ghp_rand_drawn { /* of one sample */
    int n;
    struct {
        enum ghp_rand_op op;
        double by; /* slope, pixels, degrees, factor, bits or level, as the operation takes it */
    } ops[GHP_RAND_OPS_MOST];
};

/* Draws n operations for a sample of the size `to`, with a magnitude of 0 to 30.
 * Local */
struct ghp_rand_drawn ghp_rand_draw(int n, double magnitude, struct ghp_image_size to,
                                    struct ghp_crop_key key);

/* Changes a sample's pixels, [to.h][to.w][channels], of 1 or 3 channels.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/executor/data/image/test_augment.c (compared with torchvision) */
enum ghp_status ghp_rand_apply(const struct ghp_rand_drawn *drawn, struct ghp_image_size to,
                               int channels, unsigned char *pixels);

#endif
