/* onnx/pattern/gelu.c - x times a gate that rises from 0 to 1: 0.5 x (1 + erf(x / sqrt 2)), its approximation
 * 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), and x sigmoid(x) and x hard_sigmoid(x); factors in any order. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"
#include "onnx/read/attribute.h"

static const double root_half = 0.70710678118654752440, root_two_over_pi = 0.79788456080286535588;

/* Whether a tensor is 1 + op(*inner). */
static bool is_gate(struct ghp_onnx_import *im, const char *name, const char *op,
                    const char **inner)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Add", 2);
    const char *rest;
    double one;

    if (node == NULL || !ghp_onnx_with_scalar(im, node, &rest, &one) || !ghp_onnx_near(one, 1))
        return false;
    node = ghp_onnx_made_by(im, rest, op, 1);
    if (node != NULL) *inner = node->inputs[0];
    return node != NULL;
}

static bool is_gate_by_erf(struct ghp_onnx_import *im, const char *name, const char **x)
{
    const char *inner;
    double by;

    return is_gate(im, name, "Erf", &inner) && ghp_onnx_scaled(im, inner, x, &by) &&
           ghp_onnx_near(by, root_half);
}

/* Whether a tensor is 0.044715 x^3, by Pow or by products. */
static bool is_cubic(struct ghp_onnx_import *im, const char *name, const char *x)
{
    const struct ghp_onnx_product p = ghp_onnx_product_of(im, name, x);
    const struct ghp_onnx_node *pow;
    double exponent;

    if (!ghp_onnx_near(p.scale, 0.044715)) return false;
    if (p.n == 3)
        return ghp_onnx_same(im, p.factors[0], x) && ghp_onnx_same(im, p.factors[1], x) &&
               ghp_onnx_same(im, p.factors[2], x);
    pow = p.n == 1 ? ghp_onnx_made_by(im, p.factors[0], "Pow", 2) : NULL;
    return pow != NULL && ghp_onnx_same(im, pow->inputs[0], x) &&
           ghp_onnx_scalar(im, pow->inputs[1], &exponent) && exponent == 3;
}

static bool is_gate_by_tanh(struct ghp_onnx_import *im, const char *name, const char **x)
{
    const struct ghp_onnx_node *sum;
    const char *inner, *of;
    double by;

    if (!is_gate(im, name, "Tanh", &inner) || !ghp_onnx_scaled(im, inner, &of, &by) ||
        !ghp_onnx_near(by, root_two_over_pi))
        return false;
    sum = ghp_onnx_made_by(im, of, "Add", 2);
    for (int k = 0; sum != NULL && k < 2; k++) {
        *x = sum->inputs[k];
        if (is_cubic(im, sum->inputs[1 - k], *x)) return true;
    }
    return false;
}

/* Whether the product that ends here is half of x times the gate. */
static bool is_half_of(struct ghp_onnx_import *im, const char *name, const char *x,
                       const char *gate)
{
    const struct ghp_onnx_product p = ghp_onnx_product_of(im, name, x);

    for (int k = 0; p.n == 2 && ghp_onnx_near(p.scale, 0.5) && k < 2; k++)
        if (ghp_onnx_same(im, p.factors[k], x) && ghp_onnx_same(im, p.factors[1 - k], gate))
            return true;
    return false;
}

static bool match_gelu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                       struct ghp_onnx_found *found)
{
    const struct ghp_onnx_product p = ghp_onnx_product_of(im, node->outputs[0], NULL);
    const char *x;

    for (int i = 0; i < p.n; i++) {
        bool erf = is_gate_by_erf(im, p.factors[i], &x);

        if (!erf && !is_gate_by_tanh(im, p.factors[i], &x)) continue;
        if (!is_half_of(im, node->outputs[0], x, p.factors[i])) continue;
        *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {x}, .n_attributes = 1};
        found->attributes[0] = (struct ghp_onnx_attribute){
            .name = "approximate", .kind = GHP_ONNX_TEXT, .text = erf ? "none" : "tanh"};
        return true;
    }
    return false;
}

static bool match_silu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                       struct ghp_onnx_found *found)
{
    for (int k = 0; node->n_inputs == 2 && k < 2; k++) {
        const struct ghp_onnx_node *sigmoid = ghp_onnx_made_by(im, node->inputs[k], "Sigmoid", 1);

        if (sigmoid == NULL || !ghp_onnx_same(im, sigmoid->inputs[0], node->inputs[1 - k]))
            continue;
        *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {node->inputs[1 - k]}};
        return true;
    }
    return false;
}

/* With the hard sigmoid of a sixth, as opset 13 has it. */
static bool match_hard_swish(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                             struct ghp_onnx_found *found)
{
    for (int k = 0; node->n_inputs == 2 && k < 2; k++) {
        const struct ghp_onnx_node *gate = ghp_onnx_made_by(im, node->inputs[k], "HardSigmoid", 1);

        if (gate == NULL || !ghp_onnx_same(im, gate->inputs[0], node->inputs[1 - k]) ||
            !ghp_onnx_near(ghp_onnx_real(gate, "alpha", 0.2), 1.0 / 6.0) ||
            !ghp_onnx_near(ghp_onnx_real(gate, "beta", 0.5), 0.5))
            continue;
        *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {node->inputs[1 - k]}};
        return true;
    }
    return false;
}

const struct ghp_onnx_pattern ghp_onnx_pattern_gelu[] = {{"Mul", "Gelu", match_gelu},
                                                         {"Mul", "Swish", match_silu},
                                                         {"Mul", "HardSwish", match_hard_swish},
                                                         {0}};
