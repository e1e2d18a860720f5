/* onnx/pattern/lrn.c - local response norm as PyTorch writes it: x over (k + alpha m)^beta, where m is the mean of x^2
 * over neighbouring channels, by an average pool of an axis of its own that is padded before. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"
#include "onnx/read/attribute.h"

/* The input of a Squeeze of an axis of 1, even if the file first asks whether it is 1. */
static const char *squeezed_from(struct ghp_onnx_import *im, const char *name)
{
    static const char *const asks[] = {"If", "Equal", "Gather", "Shape"};
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Squeeze", 1);
    const char *of = name;

    if (node != NULL) return node->inputs[0];
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        node = ghp_onnx_made_by(im, of, asks[i], 1);
        if (node == NULL) return name;
        of = node->inputs[0];
    }
    return of;
}

/* Whether a tensor is the mean of x^2 over a number of channels, which *size receives. */
static bool is_mean(struct ghp_onnx_import *im, const char *name, const char *x, int64_t *size)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Reshape", 1);
    const struct ghp_onnx_attribute *kernel;

    if (node != NULL) name = node->inputs[0];
    node = ghp_onnx_made_by(im, squeezed_from(im, name), "AveragePool", 1);
    kernel = node != NULL ? ghp_onnx_attribute_of(node, "kernel_shape") : NULL;
    if (kernel == NULL || kernel->kind != GHP_ONNX_INTS || kernel->n != 3 || kernel->ints[1] != 1 ||
        kernel->ints[2] != 1 || ghp_onnx_int(node, "count_include_pad", 0) == 0)
        return false;
    *size = kernel->ints[0];
    node = ghp_onnx_made_by(im, node->inputs[0], "Pad", 1);
    if (node == NULL) return false;
    node = ghp_onnx_made_by(im, node->inputs[0], "Reshape", 1);
    if (node == NULL) return false;
    node = ghp_onnx_made_by(im, node->inputs[0], "Mul", 2);
    return node != NULL && ghp_onnx_same(im, node->inputs[0], x) &&
           ghp_onnx_same(im, node->inputs[1], x);
}

static bool match_lrn(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                      struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *pow =
        node->n_inputs == 2 ? ghp_onnx_made_by(im, node->inputs[1], "Pow", 2) : NULL;
    const struct ghp_onnx_node *sum =
        pow != NULL ? ghp_onnx_made_by(im, pow->inputs[0], "Add", 2) : NULL;
    const char *names[] = {"alpha", "beta", "bias"}, *scaled, *mean;
    double values[3];
    int64_t size;

    if (sum == NULL || !ghp_onnx_scalar(im, pow->inputs[1], &values[1]) ||
        !ghp_onnx_with_scalar(im, sum, &scaled, &values[2]) ||
        !ghp_onnx_scaled(im, scaled, &mean, &values[0]) ||
        !is_mean(im, mean, node->inputs[0], &size))
        return false;
    *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {node->inputs[0]}, .n_attributes = 4};
    for (int i = 0; i < 3; i++)
        found->attributes[i] = (struct ghp_onnx_attribute){
            .name = names[i], .kind = GHP_ONNX_REAL, .real = ghp_onnx_tidy(values[i])};
    found->attributes[3] =
        (struct ghp_onnx_attribute){.name = "size", .kind = GHP_ONNX_INT, .integer = size};
    return true;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_lrn[] = {{"Div", "LRN", match_lrn}, {0}};
