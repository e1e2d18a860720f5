/* onnx/operator/constant.c - nodes that are constants, or become some. */
#include "onnx/operator/operator.h"

#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"

#include <math.h>

/* Whether a whole number comes of a batch that the file leaves open: a multiple of its stand-in, or a few more or
 * less. */
static bool is_of_batch(const struct ghp_onnx_import *im, double value)
{
    return im->batch == GHP_ONNX_BATCH && fabs(value) > GHP_ONNX_BATCH / 2 &&
           fabs(remainder(value, GHP_ONNX_BATCH)) <= 8;
}

static enum ghp_status cast(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            bool whole)
{
    struct ghp_onnx_array *x, made;
    const double *values;
    double *out;

    GHP_TRY(ghp_onnx_seen_in(im, node, &x));
    if (x->base == NULL && whole && im->model.layers[x->layer].out.vocabulary == 0)
        return ghp_onnx_fail(im, node, "casts samples to whole numbers; ghp computes in floats");
    if (x->base == NULL || x->base->whole == whole) return ghp_onnx_identity(im, node);
    GHP_TRY(ghp_onnx_values(im, x, &values));
    GHP_TRY(ghp_onnx_room(im, ghp_onnx_elements(x), &out));
    for (int64_t i = 0; i < ghp_onnx_elements(x); i++) {
        out[i] = whole ? trunc(values[i]) : values[i];
        if (!whole && is_of_batch(im, values[i]))
            return ghp_onnx_fail(im, node,
                                 "computes with the number of samples, which the file leaves open; "
                                 "leave that out of the module");
    }
    GHP_TRY(ghp_onnx_of_values(im, whole, (struct ghp_onnx_sizes){x->n, x->dims}, out, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_cast(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int type = (int)ghp_onnx_int(node, "to", 0);
    bool whole = ghp_onnx_type_whole(type);

    if (!whole && !ghp_onnx_type_real(type))
        return ghp_onnx_fail(im, node, "casts to type %d; ghp has whole and floating-point numbers",
                             type);
    return cast(im, node, whole);
}

/* To the type of input 1. */
static enum ghp_status read_cast_like(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *like = ghp_onnx_in(im, node, 1);

    if (like == NULL) return ghp_onnx_fail(im, node, "has no input 1; repair the file");
    if (like->base != NULL && like->base->tensor != NULL && !like->base->whole &&
        !ghp_onnx_type_real(like->base->tensor->type))
        return ghp_onnx_fail(im, node, "casts to type %d; ghp has whole and floating-point numbers",
                             like->base->tensor->type);
    return cast(im, node,
                like->base != NULL ? like->base->whole
                                   : im->model.layers[like->layer].out.vocabulary > 0);
}

static enum ghp_status of_list(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               const struct ghp_onnx_attribute *a)
{
    bool list = a->kind == GHP_ONNX_INTS || a->kind == GHP_ONNX_REALS;
    bool whole = a->kind == GHP_ONNX_INTS || a->kind == GHP_ONNX_INT;
    int64_t n = list ? a->n : 1;
    double *values = ghp_onnx_keep(im, (size_t)n, sizeof *values);
    struct ghp_onnx_array made;

    if (values == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; i++)
        values[i] = a->kind == GHP_ONNX_INTS    ? (double)a->ints[i]
                    : a->kind == GHP_ONNX_REALS ? (double)a->reals[i]
                    : a->kind == GHP_ONNX_INT   ? (double)a->integer
                                                : a->real;
    GHP_TRY(
        ghp_onnx_of_values(im, whole, (struct ghp_onnx_sizes){list ? 1 : 0, &n}, values, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_attribute *a = node->n_attributes > 0 ? node->attributes : NULL;
    struct ghp_onnx_array made;

    if (a == NULL || a->kind == GHP_ONNX_NONE || a->kind == GHP_ONNX_TEXT)
        return ghp_onnx_fail(im, node, "has no value that ghp reads; give numbers");
    if (a->kind != GHP_ONNX_TENSOR) return of_list(im, node, a);
    GHP_TRY(ghp_onnx_of_tensor(im, im->file, a->tensor, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_constant_of_shape(struct ghp_onnx_import *im,
                                              const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_attribute *a = ghp_onnx_attribute_of(node, "value");
    int64_t dims[GHP_ONNX_MAX_DIMS * 2];
    struct ghp_onnx_array value, made;
    const double *values;
    double fill = 0;
    bool whole = false;
    int n;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){0, ""}, dims, &n));
    if (n < 0 || n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "has no shape of at most %d numbers; give one",
                             GHP_ONNX_MAX_DIMS);
    if (a != NULL && a->kind == GHP_ONNX_TENSOR && a->tensor->elements == 1) {
        GHP_TRY(ghp_onnx_of_tensor(im, im->file, a->tensor, &value));
        GHP_TRY(ghp_onnx_values(im, &value, &values));
        fill = values[0];
        whole = value.base->whole;
    }
    if (!ghp_onnx_sized(n, dims))
        return ghp_onnx_fail(im, node,
                             "makes a constant of a negative size or more than 2^40 "
                             "elements; use smaller sizes");
    GHP_TRY(ghp_onnx_of_values(im, whole, (struct ghp_onnx_sizes){n, dims}, NULL, &made));
    ((struct ghp_onnx_base *)(uintptr_t)made.base)->fill = fill;
    ((struct ghp_onnx_base *)(uintptr_t)made.base)->of = node->outputs[0];
    return ghp_onnx_define(im, node, 0, &made);
}

const struct ghp_onnx_operator ghp_onnx_constant[] = {
    {.name = "Identity", .since = 1, .attributes = "", .read = ghp_onnx_identity},
    {.name = "Cast", .since = 1, .attributes = "to saturate ", .read = read_cast},
    {.name = "CastLike", .since = 15, .attributes = "saturate ", .read = read_cast_like},
    {.name = "Constant",
     .since = 1,
     .attributes = "value value_float value_floats value_int value_ints ",
     .read = read_constant},
    {.name = "ConstantOfShape", .since = 9, .attributes = "value ", .read = read_constant_of_shape},
    {0}};
