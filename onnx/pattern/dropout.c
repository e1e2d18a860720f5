/* onnx/pattern/dropout.c - dropout as PyTorch's exporter writes one that works in place: x times a mask over the
 * fraction that is kept. The mask is 1 if a uniform random number of x's shape is less than it. Stochastic depth has
 * one random number a sample: its shape is the batch and ones. Dropout of channels has one a channel of a sample.
 * Transformers divides x by the fraction in place of the mask. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"
#include "onnx/read/attribute.h"

/* Whether a tensor has the shape of x, as Expand to x's Shape or as x itself. Masks of whole channels have another. */
static bool has_shape_of(struct ghp_onnx_import *im, const char *name, const char *x)
{
    const struct ghp_onnx_node *expand = ghp_onnx_made_by(im, name, "Expand", 2);
    const struct ghp_onnx_node *shape =
        expand != NULL ? ghp_onnx_made_by(im, expand->inputs[1], "Shape", 1) : NULL;

    if (ghp_onnx_same(im, name, x)) return true;
    return shape != NULL && ghp_onnx_int(shape, "start", 0) == 0 &&
           ghp_onnx_attribute_of(shape, "end") == NULL && ghp_onnx_same(im, shape->inputs[0], x);
}

/* The axis of which each place has a number of its own, and its size; axis 0: each sample has one. */
struct along {
    int axis;
    double size;
};

/* Whether a list of sizes is the batch and ones, but for one axis at most, and there are more than one. */
static bool is_one_a_sample(struct ghp_onnx_import *im, const char *sizes, struct along *one)
{
    const struct ghp_onnx_node *parts = ghp_onnx_made_by(im, sizes, "Concat", 2);
    double value;

    *one = (struct along){.size = 1};
    if (parts == NULL || ghp_onnx_is_constant(im, parts->inputs[0])) return false;
    for (int i = 1; i < parts->n_inputs; i++) {
        if (!ghp_onnx_scalar(im, parts->inputs[i], &value) || (value != 1 && one->axis > 0))
            return false;
        if (value != 1) *one = (struct along){i, value};
    }
    return true;
}

/* Whether a tensor has one element a sample, or one for each place of an axis, spread over all other axes: of random
 * numbers, what it holds is nothing. */
static bool is_by_sample(struct ghp_onnx_import *im, const char *name, struct along *one)
{
    const struct ghp_onnx_node *expand = ghp_onnx_made_by(im, name, "Expand", 2);
    const struct ghp_onnx_node *filled = ghp_onnx_made_by(im, name, "ConstantOfShape", 1);

    return (expand != NULL && is_one_a_sample(im, expand->inputs[1], one)) ||
           (filled != NULL && is_one_a_sample(im, filled->inputs[0], one));
}

/* Whether a tensor is a random number from 0 to 1 for each element of x, or for each of its samples or channels. */
static bool is_drawn(struct ghp_onnx_import *im, const char *name, const char *x, bool *samples,
                     struct along *one)
{
    const struct ghp_onnx_node *drawn = ghp_onnx_made_by(im, name, "RandomUniformLike", 1);

    *samples = drawn != NULL && is_by_sample(im, drawn->inputs[0], one);
    return drawn != NULL && ghp_onnx_real(drawn, "low", 0) == 0 &&
           ghp_onnx_real(drawn, "high", 1) == 1 &&
           (*samples || has_shape_of(im, drawn->inputs[0], x));
}

/* Whether a tensor is 1 for each of these with a probability: if the number is less than that, or floor(number +
 * probability). */
static bool is_mask(struct ghp_onnx_import *im, const char *name, const char *x, double *kept,
                    bool *samples, struct along *one)
{
    const struct ghp_onnx_node *less = ghp_onnx_made_by(im, name, "Less", 2);
    const struct ghp_onnx_node *floor = ghp_onnx_made_by(im, name, "Floor", 1);
    const struct ghp_onnx_node *add =
        floor != NULL ? ghp_onnx_made_by(im, floor->inputs[0], "Add", 2) : NULL;
    const char *number;

    if (add != NULL)
        return ghp_onnx_with_scalar(im, add, &number, kept) &&
               is_drawn(im, number, x, samples, one);
    return less != NULL && ghp_onnx_scalar(im, less->inputs[1], kept) &&
           is_drawn(im, less->inputs[0], x, samples, one);
}

/* As ghp writes it: a dropout of ones, one a sample. */
static bool is_dropped_one(struct ghp_onnx_import *im, const char *name, double *kept,
                           struct along *one)
{
    const struct ghp_onnx_node *drop = ghp_onnx_made_by(im, name, "Dropout", 2);
    const struct ghp_onnx_node *ones =
        drop != NULL ? ghp_onnx_made_by(im, drop->inputs[0], "Expand", 2) : NULL;
    double ratio, value;

    if (ones == NULL || !ghp_onnx_scalar(im, drop->inputs[1], &ratio) ||
        !ghp_onnx_scalar(im, ones->inputs[0], &value) || value != 1)
        return false;
    *kept = 1 - ratio;
    return is_one_a_sample(im, ones->inputs[1], one);
}

static bool match_dropout(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                          struct ghp_onnx_found *found)
{
    for (int k = 0; node->n_inputs == 2 && k < 2; k++) {
        const char *x = node->inputs[1 - k], *mask = node->inputs[k], **scaled = &mask;
        double by, kept;
        struct along one = {.axis = 0};
        bool samples = is_dropped_one(im, mask, &kept, &one);

        if (!samples && !ghp_onnx_scaled(im, mask, scaled, &by)) scaled = &x;
        if (!samples && scaled == &x && !ghp_onnx_scaled(im, x, scaled, &by)) continue;
        if (!samples &&
            (!is_mask(im, mask, x, &kept, &samples, &one) || !ghp_onnx_near(by * kept, 1)))
            continue;
        *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {x}, .n_attributes = 4};
        found->attributes[0] = (struct ghp_onnx_attribute){
            .name = "ratio", .kind = GHP_ONNX_REAL, .real = 1 - ghp_onnx_tidy(kept)};
        found->attributes[1] = (struct ghp_onnx_attribute){
            .name = "samples", .kind = GHP_ONNX_INT, .integer = samples && one.axis == 0};
        found->attributes[2] = (struct ghp_onnx_attribute){
            .name = "axis", .kind = GHP_ONNX_INT, .integer = samples ? one.axis : 0};
        found->attributes[3] = (struct ghp_onnx_attribute){
            .name = "size", .kind = GHP_ONNX_INT, .integer = (int64_t)one.size};
        return true;
    }
    return false;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_dropout[] = {{"Mul", "Dropout", match_dropout}, {0}};
