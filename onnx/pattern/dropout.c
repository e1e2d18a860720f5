/* onnx/pattern/dropout.c - dropout as PyTorch's exporter writes one that works in place: x times a mask over the share
 * that is kept. The mask is 1 where a uniform random number of x's shape is less than that share. */
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
           ghp_onnx_attribute(shape, "end") == NULL && ghp_onnx_same(im, shape->inputs[0], x);
}

/* Whether a tensor is 1 for each element of x with a probability, and which. */
static bool is_mask(struct ghp_onnx_import *im, const char *name, const char *x, double *kept)
{
    const struct ghp_onnx_node *less = ghp_onnx_made_by(im, name, "Less", 2);
    const struct ghp_onnx_node *drawn =
        less != NULL ? ghp_onnx_made_by(im, less->inputs[0], "RandomUniformLike", 1) : NULL;

    return drawn != NULL && ghp_onnx_real(drawn, "low", 0) == 0 &&
           ghp_onnx_real(drawn, "high", 1) == 1 && ghp_onnx_scalar(im, less->inputs[1], kept) &&
           has_shape_of(im, drawn->inputs[0], x);
}

static bool match_dropout(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                          struct ghp_onnx_found *found)
{
    for (int k = 0; node->n_inputs == 2 && k < 2; k++) {
        const char *x = node->inputs[1 - k], *mask;
        double by, kept;

        if (!ghp_onnx_scaled(im, node->inputs[k], &mask, &by) || !is_mask(im, mask, x, &kept) ||
            !ghp_onnx_near(by * kept, 1))
            continue;
        *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {x}, .n_attributes = 1};
        found->attributes[0] = (struct ghp_onnx_attribute){
            .name = "ratio", .kind = GHP_ONNX_REAL, .real = 1 - ghp_onnx_tidy(kept)};
        return true;
    }
    return false;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_dropout[] = {{"Mul", "Dropout", match_dropout}, {0}};
