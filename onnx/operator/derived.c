/* onnx/operator/derived.c - see derived.h. */
#include "onnx/operator/derived.h"

#include "onnx/operator/embedding.h"
#include "onnx/operator/rows.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <math.h>
#include <string.h>

enum { COORDINATES = 3 };

static struct ghp_onnx_base *base_of(const struct ghp_onnx_array *x)
{
    return (struct ghp_onnx_base *)(uintptr_t)x->base;
}

bool ghp_onnx_is_derived(const struct ghp_onnx_array *x)
{
    return x != NULL && x->base != NULL && x->base->derived > 0;
}

bool ghp_onnx_may_derive(const struct ghp_onnx_array *x)
{
    return ghp_onnx_is_derived(x) ||
           (x != NULL && x->base != NULL && x->base->held == NULL && ghp_onnx_role_may_train(x));
}

/* Lets an array be of a layer's output. */
static enum ghp_status put_base(struct ghp_onnx_import *im, const struct ghp_onnx_base *from,
                                int layer, const double *places, struct ghp_onnx_array *x)
{
    struct ghp_onnx_base *base = ghp_onnx_keep(im, 1, sizeof *base);

    if (base == NULL) return GHP_NO_MEMORY();
    *base = (struct ghp_onnx_base){.elements = from->elements,
                                   .fill = NAN,
                                   .role = GHP_ONNX_COMPUTED,
                                   .of = from->of,
                                   .derived = 1 + layer,
                                   .places = places};
    x->base = base;
    x->scores = NULL;
    return GHP_OK;
}

/* x as an array of a layer, with the batch in front. */
static enum ghp_status array_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                const struct ghp_onnx_array *x, struct ghp_onnx_array *array)
{
    if (x->n + 1 > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "computes with %d axes of a parameter; use fewer", x->n);
    return ghp_onnx_parameter(im, node, x, x->n + 1, array);
}

enum ghp_status ghp_onnx_derived_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x, struct ghp_onnx_array *derived)
{
    struct ghp_onnx_array array;

    *derived = *x;
    if (ghp_onnx_is_derived(x)) return GHP_OK;
    GHP_TRY(array_of(im, node, x, &array));
    return put_base(im, x->base, array.layer, NULL, derived);
}

enum ghp_status ghp_onnx_derive_each(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *x, struct ghp_layer like)
{
    struct ghp_onnx_array made;
    int layer;

    GHP_TRY(ghp_onnx_derived_of(im, node, x, &made));
    like.n_inputs = 1;
    like.inputs[0] = made.base->derived - 1;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    GHP_TRY(put_base(im, made.base, layer, made.base->places, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

enum ghp_status ghp_onnx_derived_rows(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *x, struct ghp_onnx_array *rows)
{
    int64_t channels = x->n > 0 ? x->dims[x->n - 1] : 0;

    if (channels < 1 || ghp_onnx_elements(x) < channels)
        return ghp_onnx_fail(im, node, "multiplies a constant without rows; repair the file");
    if (x->base->role == GHP_ONNX_UNKNOWN && channels <= COORDINATES)
        base_of(x)->role = GHP_ONNX_FIXED;
    GHP_TRY(array_of(im, node, x, rows));
    GHP_TRY(ghp_onnx_reshape(im, rows, 3,
                             (int64_t[]){im->batch, ghp_onnx_elements(x) / channels, channels}));
    return ghp_onnx_as_sequence(im, rows);
}

enum ghp_status ghp_onnx_derive_rows(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *x, int layer)
{
    const struct ghp_shape out = im->model.layers[layer].out;
    struct ghp_onnx_array made = {.n = x->n};
    struct ghp_onnx_base from = {.elements = out.c * out.h, .of = x->base->of};
    int64_t stride = 1;

    memcpy(made.dims, x->dims, sizeof made.dims);
    made.dims[x->n - 1] = out.c;
    made.strides[x->n - 1] = out.h;
    for (int i = x->n - 2; i >= 0; --i) {
        made.strides[i] = stride;
        stride *= made.dims[i];
    }
    GHP_TRY(put_base(im, &from, layer, NULL, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

bool ghp_onnx_derived_has_rows(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    const struct ghp_shape out = im->model.layers[x->base->derived - 1].out;

    return out.axes == GHP_AXES_SEQUENCE && x->base->places == NULL && x->n > 0 && x->offset == 0 &&
           x->dims[x->n - 1] == out.c && x->strides[x->n - 1] == out.h &&
           ghp_onnx_elements(x) == out.c * out.h;
}

void ghp_onnx_derive_places(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            const struct ghp_onnx_array *x)
{
    struct ghp_onnx_base *base = base_of(ghp_onnx_named(im, node->outputs[0]));

    base->places = base->values;
    base->values = NULL;
    base->fill = NAN;
    base->role = GHP_ONNX_COMPUTED;
    base->of = x->base->of;
    base->derived = x->base->derived;
}
