/* executor/state/weight_blocks.c - see weight_blocks.h. */
#include "executor/state/weight_blocks.h"

#include "executor/backend/backend.h"

enum { LANES = GHP_BLOCK_CHANNELS };

struct place { /* of one number */
    int64_t plain, nchw16c;
};

static struct place place_of(const struct ghp_param_descriptor *descriptor, int64_t k, int64_t c,
                             int64_t at)
{
    int64_t channels = descriptor->dims[1], places = descriptor->dims[2] * descriptor->dims[3];
    int64_t block = k / LANES * (channels / LANES) + c / LANES;

    return (struct place){.plain = (k * channels + c) * places + at,
                          .nchw16c =
                              ((block * places + at) * LANES + c % LANES) * LANES + k % LANES};
}

static void check(const struct ghp_param_descriptor *descriptor)
{
    GHP_ASSERT_EQ(descriptor->element_bytes, (int)sizeof(float));
    GHP_ASSERT_EQ(descriptor->n_dims, 4);
    GHP_ASSERT_EQ(descriptor->dims[0] % LANES, 0);
    GHP_ASSERT_EQ(descriptor->dims[1] % LANES, 0);
}

/* Every number from one order to the other. */
static void turn(const struct ghp_param_descriptor *descriptor, const float *from, float *to,
                 bool into_blocks)
{
    check(descriptor);
    for (int64_t k = 0; k < descriptor->dims[0]; k++)
        for (int64_t c = 0; c < descriptor->dims[1]; c++)
            for (int64_t at = 0; at < descriptor->dims[2] * descriptor->dims[3]; at++) {
                struct place place = place_of(descriptor, k, c, at);

                if (into_blocks)
                    to[place.nchw16c] = from[place.plain];
                else
                    to[place.plain] = from[place.nchw16c];
            }
}

void ghp_weight_blocks_put(const struct ghp_param_descriptor *descriptor, const void *plain,
                           void *nchw16c)
{
    turn(descriptor, plain, nchw16c, true);
}

void ghp_weight_blocks_get(const struct ghp_param_descriptor *descriptor, const void *nchw16c,
                           void *plain)
{
    turn(descriptor, nchw16c, plain, false);
}
