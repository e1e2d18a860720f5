/* onnx/pattern/question.c - what made a tensor. */
#include "onnx/pattern/question.h"

#include "onnx/read/attribute.h"

#include <math.h>
#include <string.h>

enum { MOST_DEEP = 4 };

static bool is_op(const struct ghp_onnx_node *node, const char *op, int least)
{
    return node != NULL && node->n_inputs >= least && strcmp(node->op, op) == 0;
}

static bool casts_to_float(const struct ghp_onnx_node *node)
{
    return is_op(node, "Cast", 1) && node->n_attributes > 0 &&
           ghp_onnx_type_real((int)node->attributes[0].integer);
}

/* Whether a node hands its first input's values on: as they are, or with `axes` also under other ones. */
static bool hands_on(const struct ghp_onnx_import *im, const struct ghp_onnx_node *node, bool axes)
{
    static const char *const regroups[] = {"Reshape", "Unsqueeze", "Squeeze", "Transpose"};

    if (is_op(node, "Identity", 1)) return !ghp_onnx_detaches(im->file, node);
    if (is_op(node, "CastLike", 1) || casts_to_float(node)) return true;
    for (size_t i = 0; axes && i < sizeof regroups / sizeof regroups[0]; i++)
        if (is_op(node, regroups[i], 1)) return true;
    return false;
}

/* The tensor that such nodes hand on. */
static const char *handed_on(struct ghp_onnx_import *im, const char *name, bool axes)
{
    for (int i = 0; i < im->file->n_nodes; i++) { /* a graph may be a circle */
        const struct ghp_onnx_node *node = ghp_onnx_maker_of(im, name);

        if (!hands_on(im, node, axes)) break;
        name = node->inputs[0];
    }
    return name;
}

static const char *behind(struct ghp_onnx_import *im, const char *name)
{
    return handed_on(im, name, false);
}

const struct ghp_onnx_node *ghp_onnx_made_by(struct ghp_onnx_import *im, const char *name,
                                             const char *op, int least)
{
    const struct ghp_onnx_node *node = ghp_onnx_maker_of(im, behind(im, name));

    return is_op(node, op, least) ? node : NULL;
}

bool ghp_onnx_same(struct ghp_onnx_import *im, const char *a, const char *b)
{
    return strcmp(behind(im, a), behind(im, b)) == 0;
}

bool ghp_onnx_is_constant(struct ghp_onnx_import *im, const char *name)
{
    name = handed_on(im, name, true);
    return ghp_onnx_named(im, name)->base != NULL ||
           ghp_onnx_made_by(im, name, "Constant", 0) != NULL;
}

/* ---- numbers ---- */

static bool value_of(struct ghp_onnx_import *im, const struct ghp_onnx_file *file,
                     const struct ghp_onnx_tensor *tensor, double *value)
{
    enum ghp_status status;
    int64_t whole = 0;
    float real = 0;

    if (tensor->elements != 1) return false;
    if (ghp_onnx_type_whole(tensor->type))
        status = ghp_onnx_tensor_ints(file, tensor, &whole);
    else
        status = ghp_onnx_tensor_floats(file, tensor, &real);
    im->failed = im->failed || status == GHP_ERR_NO_MEMORY;
    *value = ghp_onnx_type_whole(tensor->type) ? (double)whole : (double)real;
    return status == GHP_OK;
}

bool ghp_onnx_scalar(struct ghp_onnx_import *im, const char *name, double *value)
{
    const char *constant = handed_on(im, name, true);
    const struct ghp_onnx_base *base = ghp_onnx_named(im, constant)->base;
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, constant, "Constant", 0);
    const struct ghp_onnx_attribute *a =
        node != NULL && node->n_attributes > 0 ? node->attributes : NULL;

    if (base != NULL) return value_of(im, base->file, base->tensor, value);
    if (a == NULL) return false;
    if (a->kind == GHP_ONNX_TENSOR) return value_of(im, im->file, a->tensor, value);
    if (a->kind == GHP_ONNX_INTS && a->n == 1)
        *value = (double)a->ints[0];
    else
        *value = a->kind == GHP_ONNX_INT ? (double)a->integer : a->real;
    return a->kind == GHP_ONNX_INT || a->kind == GHP_ONNX_REAL ||
           (a->kind == GHP_ONNX_INTS && a->n == 1);
}

bool ghp_onnx_near(double value, double wanted)
{
    return fabs(value - wanted) <= 1e-4 * fabs(wanted);
}

bool ghp_onnx_with_scalar(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                          const char **rest, double *value)
{
    for (int k = 0; node->n_inputs == 2 && k < 2; k++) {
        *rest = node->inputs[1 - k];
        if (ghp_onnx_scalar(im, node->inputs[k], value)) return true;
    }
    return false;
}

bool ghp_onnx_scaled(struct ghp_onnx_import *im, const char *name, const char **of, double *by)
{
    const struct ghp_onnx_node *mul = ghp_onnx_made_by(im, name, "Mul", 2);
    const struct ghp_onnx_node *div = ghp_onnx_made_by(im, name, "Div", 2);

    if (mul != NULL) return ghp_onnx_with_scalar(im, mul, of, by);
    if (div == NULL || !ghp_onnx_scalar(im, div->inputs[1], by)) return false;
    *of = div->inputs[0];
    *by = 1 / *by;
    return true;
}

/* ---- products ---- */

static void take_apart(struct ghp_onnx_import *im, const char *name, const char *whole, int depth,
                       struct ghp_onnx_product *product)
{
    const int most = sizeof product->factors / sizeof product->factors[0];
    const struct ghp_onnx_node *mul = ghp_onnx_made_by(im, name, "Mul", 2);
    const char *of;
    double by;

    if ((whole == NULL || !ghp_onnx_same(im, name, whole)) && depth < MOST_DEEP) {
        if (ghp_onnx_scaled(im, name, &of, &by)) {
            product->scale *= by;
            take_apart(im, of, whole, depth + 1, product);
            return;
        }
        if (mul != NULL) {
            take_apart(im, mul->inputs[0], whole, depth + 1, product);
            take_apart(im, mul->inputs[1], whole, depth + 1, product);
            return;
        }
    }
    if (product->n == most) product->scale = NAN;
    if (product->n < most) product->factors[product->n++] = name;
}

struct ghp_onnx_product ghp_onnx_product_of(struct ghp_onnx_import *im, const char *name,
                                            const char *whole)
{
    struct ghp_onnx_product product = {.scale = 1};

    take_apart(im, name, whole, 0, &product);
    return product;
}
