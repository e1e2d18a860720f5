/* onnx/operator/embedding.c - see embedding.h. */
#include "onnx/operator/embedding.h"

#include "core/model/attributes.h"
#include "onnx/operator/operator.h"
#include "onnx/operator/rows.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool ghp_onnx_is_ids(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    return x->base == NULL && x->scores == NULL && im->model.layers[x->layer].out.vocabulary > 0;
}

bool ghp_onnx_reads_ids(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (ghp_onnx_in(im, node, i) != NULL && ghp_onnx_is_ids(im, ghp_onnx_in(im, node, i)))
            return true;
    return false;
}

double ghp_onnx_usual_deviation(enum ghp_op op)
{
    const struct ghp_attribute *a = ghp_op_of(op)->attributes;

    while (strcmp(a->key, "deviation") != 0)
        a++;
    return a->usual;
}

/* The input is of as many tokens as the first table that looks them up has rows. */
static enum ghp_status set_vocabulary(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      int64_t rows)
{
    struct ghp_layer *input = &im->model.layers[0];

    if (rows < 1 || rows > GHP_MODEL_CHANNELS)
        return ghp_onnx_fail(im, node, "has a table of %" PRId64 " rows; use 1 to %d", rows,
                             GHP_MODEL_CHANNELS);
    if (im->model.n_layers > 1 && input->out.vocabulary != rows)
        return ghp_onnx_fail(im, node,
                             "looks the ids up in a table of %" PRId64
                             " rows, where another has %" PRId64 "; use tables of one length",
                             rows, input->out.vocabulary);
    input->out.vocabulary = input->in.vocabulary = rows;
    return GHP_OK;
}

enum ghp_status ghp_onnx_embed(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_EMBEDDING,
                             .n_inputs = 1,
                             .deviation = ghp_onnx_usual_deviation(GHP_OP_EMBEDDING)};
    struct ghp_onnx_source source = {.scale = 1};
    const struct ghp_onnx_array *ids = ghp_onnx_in(im, node, 1);
    struct ghp_onnx_array *table, made;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &table));
    if (table->n != 2 || table->base->whole || ghp_onnx_int(node, "axis", 0) != 0)
        return ghp_onnx_fail(im, node,
                             "looks token ids up in something else than the rows of a matrix of "
                             "floating-point numbers; ghp has no other lookup");
    if (ids->n != 2 || ids->joined != 0 || ids->offset != 0 || ids->strides[1] != 1 ||
        ids->dims[1] != im->model.layers[0].out.h)
        return ghp_onnx_fail(im, node,
                             "looks up a part of the token ids, or in another order; ghp looks up "
                             "all of a sample");
    GHP_TRY(set_vocabulary(im, node, table->dims[0]));
    like.out.c = table->dims[1];
    source.array = *table;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, table), &source.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, source));
    made = ghp_onnx_of_sequence(im, source.layer);
    return ghp_onnx_define(im, node, 0, &made);
}

enum ghp_status ghp_onnx_is_position_table(struct ghp_onnx_import *im,
                                           const struct ghp_onnx_array *x,
                                           const struct ghp_onnx_array *c, bool *is)
{
    int more = x->n - c->n;
    int64_t each;
    const double *values;

    *is = ghp_onnx_whole_sequence(im, x) && (more == 0 || more == 1) &&
          c->dims[c->n - 1] == x->dims[2] && c->dims[c->n - 2] == x->dims[1] && x->dims[1] > 1 &&
          c->strides[c->n - 2] != 0;
    if (!*is || more == 1 || c->dims[0] == 1) return GHP_OK;
    *is = c->dims[0] == x->dims[0];
    if (!*is || c->strides[0] == 0) return GHP_OK;
    GHP_TRY(ghp_onnx_values(im, c, &values));
    each = c->dims[1] * c->dims[2];
    for (int64_t i = 1; *is && i < c->dims[0]; i++)
        *is = memcmp(values, values + i * each, (size_t)each * sizeof *values) == 0;
    return GHP_OK;
}

enum ghp_status ghp_onnx_add_positions(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       const struct ghp_onnx_array *x,
                                       const struct ghp_onnx_array *c)
{
    struct ghp_layer like = {.op = GHP_OP_POSITION_EMBEDDING,
                             .n_inputs = 1,
                             .inputs = {x->layer},
                             .deviation = ghp_onnx_usual_deviation(GHP_OP_POSITION_EMBEDDING)};
    struct ghp_onnx_source source = {.array = *c, .scale = 1};
    struct ghp_onnx_array made;

    if (c->n == 3) source.array.dims[0] = 1;
    if (c->base->tensor != NULL) /* rows of a table are called as it */
        source.array.name = c->base->tensor->name;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, &source.array), &source.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, source));
    made = ghp_onnx_of_sequence(im, source.layer);
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- tensors of every sample ---- */

/* The layer that is the whole tensor already, or -1. */
static int parameter_of(const struct ghp_onnx_import *im, const struct ghp_onnx_base *base)
{
    for (int i = 0; i < im->n_sources; i++)
        if (im->sources[i].array.base == base &&
            im->model.layers[im->sources[i].layer].op == GHP_OP_PARAMETER)
            return im->sources[i].layer;
    return -1;
}

/* The constant's own axes if it is all of its base in order, else the tensor's of the file; of more than three axes the
 * first ones together. Slopes of [C, 1, 1] are a vector. */
static struct ghp_shape shape_of_base(const struct ghp_onnx_array *c)
{
    const struct ghp_onnx_tensor *tensor = c->base->tensor;
    int64_t dims[GHP_ONNX_MAX_DIMS] = {c->base->elements}, strides[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array own = *c;
    struct ghp_shape s = {.h = 1, .w = 1};
    int n = 1;

    if (own.n > 0 && own.strides[0] == 0) own.dims[0] = 1; /* the samples */
    if (tensor != NULL) {
        n = tensor->n_dims;
        memcpy(dims, tensor->dims, (size_t)n * sizeof *dims);
    } else if (ghp_onnx_elements(&own) == c->base->elements && own.offset == 0 &&
               ghp_onnx_merged(&own, dims, strides) == 1 && strides[0] == 1) {
        n = own.n;
        memcpy(dims, own.dims, sizeof dims);
    }
    while (n > 1 && dims[n - 1] == 1)
        n--;
    if (n > 2) s.w = dims[n - 1];
    if (n > 1) s.h = dims[n > 2 ? n - 2 : 1];
    if (n == 2 && dims[0] == 1) s.h = 1;
    s.c = c->base->elements / (s.h * s.w);
    return s;
}

/* Numbers that nobody trains, of which some are minus infinity, as masks that are added have them: -1e30 in its place,
 * since weights of a file are finite. */
static enum ghp_status make_finite(struct ghp_onnx_import *im, struct ghp_onnx_array *numbers)
{
    const struct ghp_onnx_array from = *numbers;
    int64_t n = ghp_onnx_elements(&from), infinite = 0;
    const double *values;
    double *finite;

    if (!ghp_onnx_role_is_number(&from)) return GHP_OK;
    GHP_TRY(ghp_onnx_values(im, &from, &values));
    for (int64_t i = 0; i < n; i++)
        infinite += isinf(values[i]) && values[i] < 0;
    if (infinite == 0) return GHP_OK;
    GHP_TRY(ghp_onnx_room(im, n, &finite));
    for (int64_t i = 0; i < n; i++)
        finite[i] = isinf(values[i]) && values[i] < 0 ? -1e30 : values[i];
    GHP_TRY(ghp_onnx_of_values(im, false, (struct ghp_onnx_sizes){1, &n}, finite, numbers));
    numbers->name = from.name;
    ghp_onnx_role_hand_on(&from, numbers);
    return GHP_OK;
}

static enum ghp_status emit_parameter(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *c, int *layer)
{
    const struct ghp_onnx_base *base = c->base;
    struct ghp_layer like = {.op = GHP_OP_PARAMETER,
                             .n_inputs = 1,
                             .out = shape_of_base(c),
                             .deviation = ghp_onnx_usual_deviation(GHP_OP_PARAMETER)};
    struct ghp_onnx_source source = {
        .array = {.base = base, .name = c->name, .n = 1, .dims = {base->elements}, .strides = {1}},
        .scale = 1};

    if (base->of != NULL) source.array.name = base->of;
    if (base->tensor != NULL) source.array.name = base->tensor->name;
    if (like.out.c > GHP_MODEL_CHANNELS || like.out.h > GHP_MODEL_SIZE ||
        like.out.w > GHP_MODEL_SIZE)
        return ghp_onnx_fail(im, node, "has a constant of %" PRId64 " elements; use fewer",
                             base->elements);
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, &source.array), &source.layer));
    GHP_TRY(make_finite(im, &source.array));
    GHP_TRY(ghp_onnx_weight_from(im, node, source));
    *layer = source.layer;
    return GHP_OK;
}

enum ghp_status ghp_onnx_parameter(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *c, int rank,
                                   struct ghp_onnx_array *array)
{
    int has_batch = c->n == rank;

    if (c->n > rank || (has_batch && c->dims[0] != 1 && c->strides[0] != 0))
        return ghp_onnx_fail(im, node,
                             "combines with a constant that has more axes, or differs between "
                             "samples; give it the shape of one sample");
    if (c->base->places != NULL)
        return ghp_onnx_fail(im, node,
                             "computes with rows that were looked up in what is computed of "
                             "parameters; look them up at the end");
    *array = (struct ghp_onnx_array){.name = c->name, .n = rank, .offset = c->offset};
    array->layer = c->base->derived > 0 ? c->base->derived - 1 : parameter_of(im, c->base);
    if (array->layer < 0) GHP_TRY(emit_parameter(im, node, c, &array->layer));
    array->dims[0] = im->batch;
    for (int i = 1; i < rank; i++) {
        int from = i - (rank - c->n);

        array->dims[i] = from >= has_batch ? c->dims[from] : 1;
        array->strides[i] = from >= has_batch ? c->strides[from] : 0;
    }
    return GHP_OK;
}

/* ---- writing ---- */

static enum ghp_status write_embedding(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ghp_export_owner(ex, l)->params[0].name, ex->names[l->inputs[0]],
                                  NULL};

    GHP_TRY(ghp_export_param_of(ex, l, 0, 0));
    ghp_export_node(ex, "Gather", l->name, inputs);
    ex->ranks[i] = 3;
    return GHP_OK;
}

static enum ghp_status write_positions(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]], ghp_export_owner(ex, l)->params[0].name,
                                  NULL};

    GHP_TRY(ghp_export_param_of(ex, l, 0, 0));
    ghp_export_node(ex, "Add", l->name, inputs);
    return GHP_OK;
}

/* The tensor spread over the samples. */
static enum ghp_status write_parameter(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    int n = l->params[0].n_dims;
    const char *all = ghp_export_text(ex, l->name, ".all");
    const char *const sizes[] = {
        ghp_export_samples(ex, ghp_export_text(ex, l->name, ".samples"), ex->names[0]),
        ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".sizes"), l->params[0].dims, n), NULL};
    const char *const wide[] = {ghp_export_owner(ex, l)->params[0].name, all, NULL};

    ghp_export_int(ex, ghp_export_node(ex, "Concat", all, sizes), "axis", 0);
    GHP_TRY(ghp_export_param_of(ex, l, 0, 0));
    ghp_export_node(ex, "Expand", l->name, wide);
    ex->ranks[i] = n + 1;
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_embedding[] = {
    {.name = "Expand", .since = 8, .op = GHP_OP_PARAMETER, .write = write_parameter},
    {.name = "Gather", .since = 1, .op = GHP_OP_EMBEDDING, .write = write_embedding},
    {.name = "Add", .since = 1, .op = GHP_OP_POSITION_EMBEDDING, .write = write_positions},
    {0}};
