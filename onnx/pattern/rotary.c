/* onnx/pattern/rotary.c - rotary positions: x cos + turned(x) sin, where turned puts the negated second half of each
 * head's channels before the first.
 *
 * The two halves are handed on, too, so that what reads the operator sees of which elements they are. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"

/* Whether a tensor is turned, and of which halves. */
static bool is_turned(struct ghp_onnx_import *im, const char *name, const char **first,
                      const char **second)
{
    const struct ghp_onnx_node *joined = ghp_onnx_made_by(im, name, "Concat", 2), *negated;

    if (joined == NULL || joined->n_inputs != 2) return false;
    negated = ghp_onnx_made_by(im, joined->inputs[0], "Neg", 1);
    if (negated == NULL) return false;
    *second = negated->inputs[0];
    *first = joined->inputs[1];
    return true;
}

/* Whether the halves are made of x, by one Split or by two Slices. */
static bool are_of(struct ghp_onnx_import *im, const char *first, const char *second, const char *x)
{
    const char *const halves[2] = {first, second};

    for (int i = 0; i < 2; i++) {
        const struct ghp_onnx_node *node = ghp_onnx_made_by(im, halves[i], "Slice", 1);

        if (node == NULL) node = ghp_onnx_made_by(im, halves[i], "Split", 1);
        if (node == NULL || !ghp_onnx_same(im, node->inputs[0], x)) return false;
    }
    return true;
}

static bool match_rotary(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                         struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *part[2];
    const char *first, *second;

    for (int k = 0; node->n_inputs == 2 && k < 2; k++)
        part[k] = ghp_onnx_made_by(im, node->inputs[k], "Mul", 2);
    if (node->n_inputs != 2 || part[0] == NULL || part[1] == NULL) return false;
    for (int order = 0; order < 8; order++) {
        const struct ghp_onnx_node *plain = part[order & 1], *turned = part[1 - (order & 1)];
        int x = order >> 1 & 1, t = order >> 2 & 1;

        if (!is_turned(im, turned->inputs[t], &first, &second) ||
            !are_of(im, first, second, plain->inputs[x]))
            continue;
        *found = (struct ghp_onnx_found){.n_inputs = 5,
                                         .inputs = {plain->inputs[x], plain->inputs[1 - x],
                                                    turned->inputs[1 - t], first, second}};
        return true;
    }
    return false;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_rotary[] = {{"Add", "RotaryEmbedding", match_rotary},
                                                           {0}};
