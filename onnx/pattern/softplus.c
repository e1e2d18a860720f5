/* onnx/pattern/softplus.c - PyTorch's softplus, which is x itself above a threshold, and the logarithm of a sigmoid, as
 * a softplus that keeps small numbers. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"

/* A tensor as `*of` times `*by`, which is 1 if nothing multiplies it. */
static void scaled_by(struct ghp_onnx_import *im, const char *name, const char **of, double *by)
{
    *of = name;
    *by = 1;
    if (ghp_onnx_made_by(im, name, "Mul", 2) != NULL ||
        ghp_onnx_made_by(im, name, "Div", 2) != NULL)
        if (!ghp_onnx_scaled(im, name, of, by)) *of = name;
}

/* Matches Where(beta x > threshold, x, Softplus(beta x) / beta). */
static bool match_threshold(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *greater, *plus;
    const char *smooth, *x;
    double by, beta, threshold;

    if (node->n_inputs != 3) return false;
    greater = ghp_onnx_made_by(im, node->inputs[0], "Greater", 2);
    scaled_by(im, node->inputs[2], &smooth, &by);
    plus = ghp_onnx_made_by(im, smooth, "Softplus", 1);
    if (greater == NULL || plus == NULL || !ghp_onnx_scalar(im, greater->inputs[1], &threshold) ||
        !ghp_onnx_same(im, greater->inputs[0], plus->inputs[0]))
        return false;
    x = plus->inputs[0];
    beta = 1;
    if (!ghp_onnx_same(im, x, node->inputs[1])) scaled_by(im, x, &x, &beta);
    if (!ghp_onnx_same(im, x, node->inputs[1]) || !ghp_onnx_near(by * beta, 1)) return false;
    *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {x}, .n_attributes = 2};
    found->attributes[0] =
        (struct ghp_onnx_attribute){.name = "threshold", .kind = GHP_ONNX_REAL, .real = threshold};
    found->attributes[1] =
        (struct ghp_onnx_attribute){.name = "beta", .kind = GHP_ONNX_REAL, .real = beta};
    return true;
}

static bool match_log_sigmoid(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *sigmoid =
        node->n_inputs == 1 ? ghp_onnx_made_by(im, node->inputs[0], "Sigmoid", 1) : NULL;

    if (sigmoid == NULL) return false;
    *found =
        (struct ghp_onnx_found){.n_inputs = 1, .inputs = {sigmoid->inputs[0]}, .n_attributes = 1};
    found->attributes[0] =
        (struct ghp_onnx_attribute){.name = "beta", .kind = GHP_ONNX_REAL, .real = -1};
    return true;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_softplus[] = {
    {"Where", "Softplus", match_threshold}, {"Log", "Softplus", match_log_sigmoid}, {0}};
