/* onnx/pattern/norm.c - norms over one axis with their weights: (x - mean) / sqrt(mean((x - mean)^2) + epsilon), and
 * x / sqrt(mean(x^2) + epsilon); and a vector over its length, x / max(sqrt(sum(x^2)), epsilon).
 *
 * The operators that take the place of the first two norm over all axes from `axis` on. A mean over one axis is
 * therefore handed on as `axes`, which onnx/operator/norm.c takes as that axis alone. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"

#include <string.h>

struct norm {
    const char *x;
    double axis, epsilon;
};

static const struct ghp_onnx_attribute *attribute_of(const struct ghp_onnx_node *node,
                                                     const char *name)
{
    for (int i = 0; i < node->n_attributes; i++)
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    return NULL;
}

/* Whether a tensor is such a reduction of another over one axis, which stays. */
static bool is_reduced(struct ghp_onnx_import *im, const char *name, const char *op,
                       const char **of, double *axis)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, op, 1);
    const struct ghp_onnx_attribute *axes, *keep;

    if (node == NULL) return false;
    axes = attribute_of(node, "axes");
    keep = attribute_of(node, "keepdims");
    if (keep != NULL && keep->integer == 0) return false;
    *of = node->inputs[0];
    if (node->n_inputs > 1) return ghp_onnx_scalar(im, node->inputs[1], axis);
    if (axes == NULL || axes->kind != GHP_ONNX_INTS || axes->n != 1) return false;
    *axis = (double)axes->ints[0];
    return true;
}

static bool is_mean(struct ghp_onnx_import *im, const char *name, const char **of, double *axis)
{
    return is_reduced(im, name, "ReduceMean", of, axis);
}

static bool is_square(struct ghp_onnx_import *im, const char *name, const char **of)
{
    const struct ghp_onnx_node *pow = ghp_onnx_made_by(im, name, "Pow", 2);
    const struct ghp_onnx_node *mul = ghp_onnx_made_by(im, name, "Mul", 2);
    const struct ghp_onnx_node *node = pow != NULL ? pow : mul;
    double exponent;

    if (node == NULL) return false;
    *of = node->inputs[0];
    if (mul != NULL) return ghp_onnx_same(im, mul->inputs[0], mul->inputs[1]);
    return ghp_onnx_scalar(im, pow->inputs[1], &exponent) && exponent == 2;
}

/* Whether a tensor is sqrt(mean(of^2) + epsilon), and of which. */
static bool is_deviation(struct ghp_onnx_import *im, const char *name, const char **of,
                         struct norm *norm)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Sqrt", 1);
    const char *rest, *square;

    if (node != NULL) node = ghp_onnx_made_by(im, node->inputs[0], "Add", 2);
    return node != NULL && ghp_onnx_with_scalar(im, node, &rest, &norm->epsilon) &&
           is_mean(im, rest, &square, &norm->axis) && is_square(im, square, of);
}

/* Whether a tensor is `of` over a deviation: by Div, or times an inverse. */
static bool is_quotient(struct ghp_onnx_import *im, const char *name, const char **of,
                        const char **by)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Div", 2);
    const struct ghp_onnx_node *inverse;
    double one;

    if (node != NULL) {
        *of = node->inputs[0];
        *by = node->inputs[1];
        return true;
    }
    node = ghp_onnx_made_by(im, name, "Mul", 2);
    for (int k = 0; node != NULL && k < 2; k++) {
        *of = node->inputs[1 - k];
        inverse = ghp_onnx_made_by(im, node->inputs[k], "Reciprocal", 1);
        if (inverse != NULL) *by = inverse->inputs[0];
        if (inverse != NULL) return true;
        inverse = ghp_onnx_made_by(im, node->inputs[k], "Div", 2);
        if (inverse == NULL || !ghp_onnx_scalar(im, inverse->inputs[0], &one) || one != 1) continue;
        *by = inverse->inputs[1];
        return true;
    }
    return false;
}

/* Whether a tensor is x less its mean. */
static bool is_centred(struct ghp_onnx_import *im, const char *name, struct norm *norm)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Sub", 2);
    const char *of;
    double axis;

    if (node == NULL || !is_mean(im, node->inputs[1], &of, &axis) || axis != norm->axis)
        return false;
    norm->x = node->inputs[0];
    return ghp_onnx_same(im, of, norm->x);
}

static bool is_layer_norm(struct ghp_onnx_import *im, const char *name, struct norm *norm)
{
    struct norm again;
    const char *of, *by, *squared;

    if (!is_quotient(im, name, &of, &by) || !is_deviation(im, by, &squared, norm)) return false;
    again = *norm;
    return is_centred(im, of, norm) && is_centred(im, squared, &again) &&
           ghp_onnx_same(im, norm->x, again.x);
}

static bool is_rms_norm(struct ghp_onnx_import *im, const char *name, struct norm *norm)
{
    const char *by, *squared;

    return is_quotient(im, name, &norm->x, &by) && is_deviation(im, by, &squared, norm) &&
           ghp_onnx_same(im, squared, norm->x);
}

static bool put_attributes(struct ghp_onnx_import *im, struct ghp_onnx_found *found,
                           const struct norm *norm)
{
    int64_t *axes = ghp_onnx_keep(im, 1, sizeof *axes);

    im->failed = im->failed || axes == NULL;
    if (axes == NULL) return false;
    *axes = (int64_t)norm->axis;
    found->n_attributes = 2;
    found->attributes[0] =
        (struct ghp_onnx_attribute){.name = "axes", .kind = GHP_ONNX_INTS, .n = 1, .ints = axes};
    found->attributes[1] = (struct ghp_onnx_attribute){
        .name = "epsilon", .kind = GHP_ONNX_REAL, .real = norm->epsilon};
    return true;
}

/* A norm times a constant. */
static bool match_weighted(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                           struct ghp_onnx_found *found,
                           bool (*is)(struct ghp_onnx_import *im, const char *name,
                                      struct norm *norm))
{
    struct norm norm;

    for (int k = 0; node->n_inputs == 2 && k < 2; k++) {
        if (!ghp_onnx_is_constant(im, node->inputs[k]) || !is(im, node->inputs[1 - k], &norm))
            continue;
        *found = (struct ghp_onnx_found){.n_inputs = 2, .inputs = {norm.x, node->inputs[k]}};
        return put_attributes(im, found, &norm);
    }
    return false;
}

static bool match_layer_norm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                             struct ghp_onnx_found *found)
{
    return match_weighted(im, node, found, is_layer_norm);
}

static bool match_rms_norm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                           struct ghp_onnx_found *found)
{
    return match_weighted(im, node, found, is_rms_norm);
}

/* Whether a tensor is the greater one of another and a number. */
static bool is_at_least(struct ghp_onnx_import *im, const char *name, const char **of,
                        double *least)
{
    const struct ghp_onnx_node *clip = ghp_onnx_made_by(im, name, "Clip", 1);
    const struct ghp_onnx_node *max = ghp_onnx_made_by(im, name, "Max", 2);
    const struct ghp_onnx_attribute *min;

    if (clip == NULL)
        return max != NULL && max->n_inputs == 2 && ghp_onnx_with_scalar(im, max, of, least);
    *of = clip->inputs[0];
    if ((clip->n_inputs > 2 && clip->inputs[2][0] != '\0') || attribute_of(clip, "max") != NULL)
        return false;
    min = attribute_of(clip, "min");
    if (min != NULL) *least = min->real;
    return min != NULL || (clip->n_inputs > 1 && clip->inputs[1][0] != '\0' &&
                           ghp_onnx_scalar(im, clip->inputs[1], least));
}

/* x over its length, as torch.nn.functional.normalize has it. */
static bool match_unit(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                       struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *wide;
    const char *by, *length, *of;
    double least, axis;

    if (node->n_inputs != 2) return false;
    wide = ghp_onnx_made_by(im, node->inputs[1], "Expand", 2);
    by = wide != NULL ? wide->inputs[0] : node->inputs[1];
    if (!is_at_least(im, by, &length, &least) || !(least > 0) ||
        !is_reduced(im, length, "ReduceL2", &of, &axis) || !ghp_onnx_same(im, of, node->inputs[0]))
        return false;
    *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {node->inputs[0]}, .n_attributes = 2};
    found->attributes[0] =
        (struct ghp_onnx_attribute){.name = "axis", .kind = GHP_ONNX_INT, .integer = (int64_t)axis};
    found->attributes[1] =
        (struct ghp_onnx_attribute){.name = "epsilon", .kind = GHP_ONNX_REAL, .real = least};
    return true;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_norm[] = {
    {"Mul", "LayerNormalization", match_layer_norm},
    {"Mul", "RMSNormalization", match_rms_norm},
    {"Div", "LpNormalization", match_unit},
    {0}};
