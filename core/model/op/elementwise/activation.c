/* core/model/op/elementwise/activation.c - a function of each element whose derivative its output tells. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <stdio.h>

#define LARGEST 1e30
#define ALPHA                                                                                      \
    .key = "alpha", .kind = GHP_ATTRIBUTE_REAL, .most = LARGEST,                                   \
    .at = {offsetof(struct ghp_layer, activation.alpha)}
#define BETA                                                                                       \
    .key = "beta", .kind = GHP_ATTRIBUTE_REAL, .least = -LARGEST, .most = LARGEST,                 \
    .at = {offsetof(struct ghp_layer, activation.beta)}

static const char *const functions[] = {
#define FUNCTION_NAME(id, text) text,
    GHP_FUNCTION_LIST(FUNCTION_NAME)
#undef FUNCTION_NAME
        NULL};

static const struct ghp_attribute leaky[] = {{ALPHA, .usual = 0.01}, {0}};
static const struct ghp_attribute elu[] = {{ALPHA, .usual = 1}, {0}};
static const struct ghp_attribute clip[] = {
    {ALPHA, .required = true, .least = -LARGEST}, {BETA, .required = true}, {0}};
static const struct ghp_attribute affine[] = {{ALPHA, .usual = 1, .least = -LARGEST}, {BETA}, {0}};
static const struct ghp_attribute *const brings[GHP_FUNCTION_COUNT] = {
    [GHP_FUNCTION_LEAKY_RELU] = leaky,
    [GHP_FUNCTION_ELU] = elu,
    [GHP_FUNCTION_CLIP] = clip,
    [GHP_FUNCTION_AFFINE] = affine};

static const struct ghp_attribute attributes[] = {
    {.key = "function",
     .kind = GHP_ATTRIBUTE_CHOICE,
     .required = true,
     .at = {offsetof(struct ghp_layer, activation.function)},
     .choices = functions,
     .brings = brings},
    {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    const struct ghp_activation *a = &layer->activation;

    (void)model;
    layer->out = layer->in;
    if ((a->function == GHP_FUNCTION_LEAKY_RELU || a->function == GHP_FUNCTION_ELU) &&
        !(a->alpha >= 0))
        return ghp_model_fail(layer,
                              "has a negative alpha, so that its output does not tell the sign "
                              "of its input; use 0 or more");
    if (a->function == GHP_FUNCTION_CLIP && !(a->alpha < a->beta))
        return ghp_model_fail(layer,
                              "has no values between alpha and beta; make beta the larger one");
    return GHP_OK;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " %s", ghp_function_name(local->activation.function));
}

const struct ghp_op_facts ghp_op_facts_activation = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_DY, GHP_AT_DX}},
    .in_place = ghp_in_place_always,
    .key = key,
    .by_position = true,
};
