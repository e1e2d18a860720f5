/* core/model/op/elementwise/dropout.c - zeros by chance while training, of elements, of whole samples (stochastic
 * depth) or of whole channels of a sample; the mask is drawn again going backward. */
#include "core/model/attributes.h"
#include "core/model/op.h"

#include <stdio.h>

static const char *const drops[] = {[GHP_DROP_ELEMENTS] = "elements",
                                    [GHP_DROP_SAMPLES] = "samples",
                                    [GHP_DROP_CHANNELS] = "channels",
                                    NULL};

static const struct ghp_attribute attributes[] = {{.key = "ratio",
                                                   .kind = GHP_ATTRIBUTE_REAL,
                                                   .most = 0.999,
                                                   .usual = 0.5,
                                                   .at = {offsetof(struct ghp_layer, norm.ratio)}},
                                                  {.key = "of",
                                                   .kind = GHP_ATTRIBUTE_CHOICE,
                                                   .choices = drops,
                                                   .at = {offsetof(struct ghp_layer, norm.drop)}},
                                                  {0}};

static void key(const struct ghp_local *local, char *text, size_t n)
{
    if (local->norm.drop == GHP_DROP_ELEMENTS)
        text[0] = '\0';
    else
        snprintf(text, n, " %s", drops[local->norm.drop]);
}

const struct ghp_op_facts ghp_op_facts_dropout = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .key = key,
    .in_place = ghp_in_place_always,
    .by_position = true,
};
