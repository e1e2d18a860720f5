/* executor/state/weight_blocks.c - see weight_blocks.h. */
#include "executor/state/weight_blocks.h"

#include "executor/backend/backend.h"

enum { LANES = GHP_BLOCK_CHANNELS };

struct place { /* of one number */
    int64_t plain, blocked;
};

static struct place place_of(const struct ghp_form *form, int64_t k, int64_t c, int64_t at)
{
    int64_t channels = form->dims[1], places = form->dims[2] * form->dims[3];
    int64_t block = k / LANES * (channels / LANES) + c / LANES;

    return (struct place){.plain = (k * channels + c) * places + at,
                          .blocked =
                              ((block * places + at) * LANES + c % LANES) * LANES + k % LANES};
}

static void check(const struct ghp_form *form)
{
    GHP_ASSERT_EQ(form->element_bytes, (int)sizeof(float));
    GHP_ASSERT_EQ(form->n_dims, 4);
    GHP_ASSERT_EQ(form->dims[0] % LANES, 0);
    GHP_ASSERT_EQ(form->dims[1] % LANES, 0);
}

/* Every number from one order to the other. */
static void turn(const struct ghp_form *form, const float *from, float *to, bool into_blocks)
{
    check(form);
    for (int64_t k = 0; k < form->dims[0]; k++)
        for (int64_t c = 0; c < form->dims[1]; c++)
            for (int64_t at = 0; at < form->dims[2] * form->dims[3]; at++) {
                struct place place = place_of(form, k, c, at);

                if (into_blocks)
                    to[place.blocked] = from[place.plain];
                else
                    to[place.plain] = from[place.blocked];
            }
}

void ghp_weight_blocks_put(const struct ghp_form *form, const void *plain, void *blocked)
{
    turn(form, plain, blocked, true);
}

void ghp_weight_blocks_get(const struct ghp_form *form, const void *blocked, void *plain)
{
    turn(form, blocked, plain, false);
}
