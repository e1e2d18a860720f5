/* core/model/op/elementwise/pointwise.c - a function of each element whose derivative its input tells. */
#include "core/model/attributes.h"
#include "core/model/op.h"

#include <stdio.h>

#define LARGEST 1e30

static const char *const curves[] = {
#define CURVE_NAME(id, text) text,
    GHP_CURVE_LIST(CURVE_NAME)
#undef CURVE_NAME
        NULL};

static const struct ghp_attribute power[] = {
    {.key = "exponent",
     .kind = GHP_ATTRIBUTE_REAL,
     .required = true,
     .least = -LARGEST,
     .most = LARGEST,
     .at = {offsetof(struct ghp_layer, pointwise.exponent)}},
    {0}};
static const struct ghp_attribute softplus[] = {
    {.key = "threshold",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = 0,
     .most = LARGEST,
     .usual = LARGEST,
     .at = {offsetof(struct ghp_layer, pointwise.threshold)}},
    {0}};
static const struct ghp_attribute *const brings[GHP_CURVE_COUNT] = {
    [GHP_CURVE_POW] = power, [GHP_CURVE_SOFTPLUS] = softplus};

static const struct ghp_attribute attributes[] = {
    {.key = "function",
     .kind = GHP_ATTRIBUTE_CHOICE,
     .required = true,
     .at = {offsetof(struct ghp_layer, pointwise.curve)},
     .choices = curves,
     .brings = brings},
    {0}};

/* All digits: a square takes another time than a root, and kernels are shared by keys. */
static void key(const struct ghp_local *local, char *text, size_t n)
{
    const struct ghp_pointwise *by = &local->pointwise;

    if (by->curve == GHP_CURVE_POW)
        snprintf(text, n, " pow %.17g", by->exponent);
    else if (by->curve == GHP_CURVE_SOFTPLUS)
        snprintf(text, n, " softplus %.17g", by->threshold);
    else
        snprintf(text, n, " %s", curves[by->curve]);
}

const struct ghp_op_facts ghp_op_facts_pointwise = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DX}},
    .key = key,
    .by_position = true,
};
