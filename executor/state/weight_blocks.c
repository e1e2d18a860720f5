/* executor/state/weight_blocks.c - see weight_blocks.h. */
#include "executor/state/weight_blocks.h"

#include "executor/backend/backend.h"

enum { LANES = GHP_BLOCK_CHANNELS };

static void check(const struct ghp_param_descriptor *descriptor)
{
    GHP_ASSERT_EQ(descriptor->element_bytes, (int)sizeof(float));
    GHP_ASSERT_EQ(descriptor->n_dims, 4);
    GHP_ASSERT_EQ(descriptor->dims[0] % LANES, 0);
    GHP_ASSERT_EQ(descriptor->dims[1] % LANES, 0);
}

/* One block of LANES x LANES channels at one place: `nchw16c` is its first number, `plain` the same one's. */
static void turn_block(float *plain, int64_t k_apart, int64_t c_apart, float *nchw16c,
                       bool into_blocks)
{
    for (int64_t c = 0; c < LANES; c++)
        for (int64_t k = 0; k < LANES; k++) {
            float *there = plain + k * k_apart + c * c_apart, *here = nchw16c + c * LANES + k;

            if (into_blocks)
                *here = *there;
            else
                *there = *here;
        }
}

/* Every number from one order to the other. */
static void turn(const struct ghp_param_descriptor *descriptor, float *plain, float *nchw16c,
                 bool into_blocks)
{
    int64_t channels = descriptor->dims[1], places = descriptor->dims[2] * descriptor->dims[3];

    check(descriptor);
    for (int64_t k = 0; k < descriptor->dims[0]; k += LANES)
        for (int64_t c = 0; c < channels; c += LANES)
            for (int64_t at = 0; at < places; at++) {
                turn_block(plain + (k * channels + c) * places + at, channels * places, places,
                           nchw16c, into_blocks);
                nchw16c += LANES * LANES;
            }
}

void ghp_weight_blocks_put(const struct ghp_param_descriptor *descriptor, const void *plain,
                           void *nchw16c)
{
    turn(descriptor, (float *)(uintptr_t)plain, nchw16c, true);
}

void ghp_weight_blocks_get(const struct ghp_param_descriptor *descriptor, const void *nchw16c,
                           void *plain)
{
    turn(descriptor, plain, (float *)(uintptr_t)nchw16c, false);
}
