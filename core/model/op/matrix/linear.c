/* core/model/op/matrix/linear.c - a matrix product with a vector of features, or with the vector at each position. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const first[] = {"normal", "zeros", "uniform", NULL};

static const struct ghp_attribute attributes[] = {GHP_ATTRIBUTE_CHANNELS("features"),
                                                  {.key = "deviation",
                                                   .kind = GHP_ATTRIBUTE_REAL,
                                                   .most = 1e3,
                                                   .at = {offsetof(struct ghp_layer, deviation)}},
                                                  {.key = "first_weights",
                                                   .kind = GHP_ATTRIBUTE_CHOICE,
                                                   .at = {offsetof(struct ghp_layer, first)},
                                                   .choices = first},
                                                  {.key = "transposed",
                                                   .kind = GHP_ATTRIBUTE_BOOL,
                                                   .at = {offsetof(struct ghp_layer, transposed)}},
                                                  GHP_ATTRIBUTE_FIXED,
                                                  {0}};

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " k%" PRId64, local->k);
}

const struct ghp_op_facts ghp_op_facts_linear = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_ROWS,
    .shape = ghp_shape_features,
    .params = {{"weight", GHP_INIT_KAIMING, {GHP_DIM_OUT, GHP_DIM_CHANNEL}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY | GHP_AT_W, GHP_AT_DX},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DW}},
    .flops = ghp_product_flops,
    .divides = ghp_divides_matrix,
    .pads = 1u << GHP_SPLIT_OUT,
    .key = key,
    .is_weighted = true,
    .may_tie = true,
    .has_bias = true,
    .fuses = GHP_FUSES_BIAS | GHP_FUSES_RELU | GHP_FUSES_SUM,
};
