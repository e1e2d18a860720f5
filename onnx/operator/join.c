/* onnx/operator/join.c - layers of several inputs, and tensors one after another along an axis. */
#include "onnx/operator/join.h"

#include "onnx/operator/embedding.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <string.h>

/* A layer that is a copy of another: operations take no layer twice. */
static enum ghp_status copy_of(struct ghp_onnx_import *im, int from,
                               struct ghp_onnx_layer_name hint, int *layer)
{
    struct ghp_shape s = im->model.layers[from].out;
    struct ghp_layer like = {.op = GHP_OP_VIEW, .n_inputs = 1, .inputs = {from}, .out = s};
    const int64_t sizes[3] = {s.c, s.h, s.w}, strides[3] = {s.h * s.w, s.w, 1};

    for (int i = 0; i < 3; i++) {
        if (sizes[i] == 1) continue;
        like.view.sizes[like.view.n] = sizes[i];
        like.view.strides[like.view.n++] = strides[i];
    }
    return ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".copy"), layer);
}

enum ghp_status ghp_onnx_join(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_layer like, const int *layers, int *layer)
{
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, NULL);

    like.n_inputs = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        int from = layers[i];

        for (int j = 0; j < like.n_inputs; j++)
            if (like.inputs[j] == from) GHP_TRY(copy_of(im, layers[i], hint, &from));
        like.inputs[like.n_inputs++] = from;
        if (like.n_inputs < GHP_MAX_INPUTS || i == node->n_inputs - 1) continue;
        GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".part"), layer));
        like.inputs[0] = *layer;
        like.n_inputs = 1;
    }
    return ghp_onnx_emit(im, &like, hint, layer);
}

enum ghp_status ghp_onnx_count_constants(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node, int *n)
{
    *n = 0;
    if (node->n_inputs < 1) return ghp_onnx_fail(im, node, "has no inputs; repair the file");
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *array = ghp_onnx_in(im, node, i);

        if (array == NULL) return ghp_onnx_fail(im, node, "has no input %d; repair the file", i);
        if (array->base != NULL) ++*n;
    }
    return GHP_OK;
}

struct ghp_onnx_node *ghp_export_join(struct ghp_onnx_export *ex, int layer, const char *op)
{
    const struct ghp_layer *l = &ex->model->layers[layer];
    const char *inputs[GHP_MAX_INPUTS + 1] = {NULL};

    for (int k = 0; k < l->n_inputs; k++)
        inputs[k] = ghp_export_ranked(ex, l->inputs[k], ex->ranks[layer], l->name);
    return ghp_export_node(ex, op, l->name, inputs);
}

/* ---- one after another ---- */

/* In a row of constants of which some are parameters, holds the elements of the others. */
static enum ghp_status hold_others(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int axis, const struct ghp_onnx_array *made)
{
    const struct ghp_onnx_array *parameter = NULL;
    int64_t all = ghp_onnx_elements(made), row = 1, at = 0;
    bool *held, others = false;

    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);

        if (c->base->role == GHP_ONNX_COMPUTED || c->base->held != NULL) return GHP_OK;
        if (c->base->role == GHP_ONNX_PARAMETER) parameter = c;
        others = others || ghp_onnx_role_is_number(c);
    }
    if (parameter == NULL || !others || all == 0) return GHP_OK;
    held = ghp_onnx_keep(im, (size_t)all, sizeof *held);
    if (held == NULL) return GHP_NO_MEMORY();
    for (int d = axis; d < made->n; d++)
        row *= made->dims[d];
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);
        int64_t run = row / made->dims[axis] * c->dims[axis];

        for (int64_t o = at; ghp_onnx_role_is_number(c) && o + run <= all; o += row)
            memset(held + o, 1, (size_t)run * sizeof *held);
        at += run;
    }
    ghp_onnx_role_hold(parameter, made, held);
    return GHP_OK;
}

/* Values of constants in a row: shapes are put together so. */
static enum ghp_status concat_constants(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, int axis)
{
    struct ghp_onnx_array *first = ghp_onnx_in(im, node, 0), made;
    int64_t dims[GHP_ONNX_MAX_DIMS], outer = 1, inner = 1, total = 0, at = 0;
    double *out;

    memcpy(dims, first->dims, sizeof dims);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);

        if (c->n != first->n)
            return ghp_onnx_fail(im, node, "joins constants of different ranks; repair the file");
        for (int d = 0; d < c->n; d++)
            if (d != axis && c->dims[d] != first->dims[d])
                return ghp_onnx_fail(im, node, "joins constants that do not fit; repair the file");
        total += c->dims[axis];
    }
    dims[axis] = total;
    if (!ghp_onnx_sized(first->n, dims))
        return ghp_onnx_fail(im, node, "makes too large a constant; fold it in the file");
    for (int d = 0; d < axis; d++)
        outer *= dims[d];
    for (int d = axis + 1; d < first->n; d++)
        inner *= dims[d];
    GHP_TRY(ghp_onnx_room(im, outer * inner * total, &out));
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);
        int64_t run = c->dims[axis] * inner;
        const double *values;

        GHP_TRY(ghp_onnx_values(im, c, &values));
        for (int64_t o = 0; run > 0 && o < outer; o++)
            memcpy(out + o * total * inner + at, values + o * run, (size_t)run * sizeof *out);
        at += run;
    }
    GHP_TRY(ghp_onnx_of_values(im, first->base->whole, (struct ghp_onnx_sizes){first->n, dims}, out,
                               &made));
    GHP_TRY(hold_others(im, node, axis, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* Joins the channels of sequences, one after another. *done is false if the inputs are others. */
static enum ghp_status concat_sequences(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, int *layers, bool *done)
{
    const struct ghp_layer like = {.op = GHP_OP_CONCAT};
    struct ghp_onnx_array *x, made;
    int layer;

    *done = false;
    for (int i = 0; i < node->n_inputs; i++) {
        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        if (!ghp_onnx_whole_sequence(im, x)) return GHP_OK;
        layers[i] = x->layer;
    }
    *done = true;
    GHP_TRY(ghp_onnx_join(im, node, like, layers, &layer));
    made = ghp_onnx_of_sequence(im, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

/* A node's input i, which are parameters, before the positions of a sequence, the same for all samples. */
static enum ghp_status prepend_one(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int i, struct ghp_onnx_array *x)
{
    const struct ghp_onnx_array *tokens = ghp_onnx_in(im, node, i);
    struct ghp_layer like = {
        .op = GHP_OP_PREPEND, .n_inputs = 1, .deviation = ghp_onnx_usual_deviation(GHP_OP_PREPEND)};
    struct ghp_onnx_source source = {.array = *tokens, .scale = 1};

    if (x->n != 3 || x->dims[2] != tokens->dims[2] || tokens->dims[1] < 1)
        return ghp_onnx_fail(im, node, "joins tensors that do not fit; repair the file");
    GHP_TRY(ghp_onnx_as_sequence(im, x));
    like.inputs[0] = x->layer;
    like.prepended = tokens->dims[1];
    source.array.dims[0] = 1;
    if (ghp_onnx_elements(&source.array) == tokens->base->elements && tokens->base->tensor != NULL)
        source.array.name = tokens->base->tensor->name;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, &source.array), &source.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, source));
    *x = ghp_onnx_of_sequence(im, source.layer);
    return GHP_OK;
}

/* Whether parameters, the same for all samples, come before the positions of a sequence: class and register tokens. */
static bool is_prepend(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int axis)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, node->n_inputs - 1);
    bool all = axis == 1 && x->base == NULL && x->n == 3;

    for (int i = 0; i < node->n_inputs - 1 && all; i++) {
        x = ghp_onnx_in(im, node, i);
        all = x->base != NULL && x->n == 3 && (x->dims[0] == 1 || x->strides[0] == 0);
    }
    return all;
}

static enum ghp_status prepend(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int last = node->n_inputs - 1;
    struct ghp_onnx_array *x, made;

    GHP_TRY(ghp_onnx_layer_in(im, node, last, &x));
    GHP_TRY(ghp_onnx_as_sequence(im, x)); /* for its other readers too */
    made = *x;
    for (int i = last - 1; i >= 0; --i)
        GHP_TRY(prepend_one(im, node, i, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* Input i of those that are joined; a constant as a parameter of `rank` axes, the batch in front. */
static enum ghp_status part_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i,
                               int rank, struct ghp_onnx_array *parameter,
                               struct ghp_onnx_array **x)
{
    *x = ghp_onnx_in(im, node, i);
    if ((*x)->base == NULL) return ghp_onnx_layer_in(im, node, i, x);
    GHP_TRY(ghp_onnx_parameter(im, node, *x, rank, parameter));
    *x = parameter;
    return GHP_OK;
}

static enum ghp_status read_concat(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_CONCAT};
    int order[GHP_ONNX_MAX_DIMS], *layers, axis, constants, layer, first = 0;
    struct ghp_onnx_array *x, made, parameter;
    int64_t total = 0;
    bool done = false;

    GHP_TRY(ghp_onnx_count_constants(im, node, &constants));
    x = ghp_onnx_in(im, node, 0);
    while (constants < node->n_inputs && ghp_onnx_in(im, node, first)->base != NULL)
        first++;
    if (constants < node->n_inputs) GHP_TRY(ghp_onnx_layer_in(im, node, first, &x));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 1), x->n, &axis));
    if (constants == node->n_inputs) return concat_constants(im, node, axis);
    if (constants > 0 && is_prepend(im, node, axis)) return prepend(im, node);
    if (axis == 0)
        return ghp_onnx_fail(im, node, "joins along the batch; ghp keeps the batch as it is");
    if (node->n_inputs == 1) return ghp_onnx_identity(im, node);
    layers = ghp_onnx_keep(im, (size_t)node->n_inputs, sizeof *layers);
    if (layers == NULL) return GHP_NO_MEMORY();
    if (axis == 2 && constants == 0) GHP_TRY(concat_sequences(im, node, layers, &done));
    if (done) return GHP_OK;
    for (int i = 0; i < GHP_ONNX_MAX_DIMS; i++)
        order[i] = i == 1 ? axis : i == axis ? 1 : i; /* its own inverse */
    made = *x;
    for (int i = 0; i < node->n_inputs; i++) {
        struct ghp_onnx_array moved;

        GHP_TRY(part_in(im, node, i, made.n, &parameter, &x));
        for (int d = 0; d < x->n; d++)
            if (x->n != made.n || (d != axis && x->dims[d] != made.dims[d]))
                return ghp_onnx_fail(im, node, "joins tensors that do not fit; repair the file");
        total += x->dims[axis];
        moved = *x;
        ghp_onnx_permute(&moved, order);
        GHP_TRY(ghp_onnx_settle(im, &moved, ghp_onnx_shape(&moved), &layers[i]));
        if (axis == 1) *x = moved; /* settled for its other readers too */
    }
    GHP_TRY(ghp_onnx_join(im, node, like, layers, &layer));
    made.dims[axis] = total;
    ghp_onnx_permute(&made, order);
    made = ghp_onnx_of_layer(im, layer, made.n, made.dims);
    ghp_onnx_permute(&made, order);
    made.name = node->outputs[0];
    if (constants > 0 && axis == 1 && made.n == 3 && ghp_onnx_has_attention(im))
        GHP_TRY(ghp_onnx_as_sequence(im, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status write_prepend(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *batch = ghp_export_text(ex, l->name, ".batch"),
               *all = ghp_export_text(ex, l->name, ".all"), *from = ex->names[l->inputs[0]];
    const char *const shape[] = {from, NULL};
    const char *const sizes[] = {ghp_export_text(ex, l->name, ".samples"),
                                 ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".sizes"),
                                                    (const int64_t[]){l->prepended, l->out.c}, 2),
                                 NULL};
    const char *const wide[] = {ghp_export_owner(ex, l)->params[0].name, batch, NULL},
                      *const inputs[] = {all, from, NULL};
    struct ghp_onnx_node *node = ghp_export_node(ex, "Shape", sizes[0], shape);

    ghp_export_since(ex, 15); /* Shape with start and end */
    ghp_export_int(ex, node, "start", 0);
    ghp_export_int(ex, node, "end", 1);
    ghp_export_int(ex, ghp_export_node(ex, "Concat", batch, sizes), "axis", 0);
    GHP_TRY(ghp_export_param_of(ex, l, 0, 0));
    ghp_export_node(ex, "Expand", all, wide);
    ghp_export_int(ex, ghp_export_node(ex, "Concat", l->name, inputs), "axis", 1);
    return GHP_OK;
}

static enum ghp_status write_concat(struct ghp_onnx_export *ex, int i)
{
    ghp_export_int(ex, ghp_export_join(ex, i, "Concat"), "axis", ex->ranks[i] == 3 ? 2 : 1);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_concat[] = {
    {.name = "Concat",
     .since = 1,
     .attributes = "axis ",
     .read = read_concat,
     .op = GHP_OP_CONCAT,
     .write = write_concat},
    {.name = "Concat", .since = 1, .op = GHP_OP_PREPEND, .write = write_prepend},
    {0}};
