/* core/model/op/elementwise/gelu.c - x times the normal distribution's fraction below x, by erf or by its approximation
 * with tanh. */
#include "core/model/attributes.h"
#include "core/model/op.h"

#include <stdio.h>

static const char *const approximations[] = {
    [GHP_GELU_ERF] = "none", [GHP_GELU_TANH] = "tanh", [GHP_GELU_COUNT] = NULL};

static const struct ghp_attribute attributes[] = {{.key = "approximate",
                                                   .kind = GHP_ATTRIBUTE_CHOICE,
                                                   .usual = GHP_GELU_ERF,
                                                   .at = {offsetof(struct ghp_layer, norm.gelu)},
                                                   .choices = approximations},
                                                  {0}};

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " %s", approximations[local->norm.gelu]);
}

const struct ghp_op_facts ghp_op_facts_gelu = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DX}},
    .key = key,
    .by_position = true,
};
