/* onnx/input.c - inputs of a graph as the input layer. */
#include "onnx/input.h"

#include "onnx/operator/rows.h"
#include "onnx/read/layer.h"

#include <string.h>

static int64_t batch_of(const struct ghp_onnx_value *value)
{
    return value->dims[0] > 0 ? value->dims[0] : GHP_ONNX_BATCH;
}

static enum ghp_status check_value(const struct ghp_onnx_import *im,
                                   const struct ghp_onnx_value *value)
{
    if (!value->shaped || value->n_dims < 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: the input '%.96s' has no shape with a batch in front; give it one",
                        im->file->path, value->name);
    if (!ghp_onnx_type_real(value->type))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: the input '%.96s' has elements of type %d; ghp's samples are "
                        "floating-point numbers",
                        im->file->path, value->name, value->type);
    for (int d = 1; d < value->n_dims; ++d)
        if (value->dims[d] < 1 || value->dims[d] > GHP_ONNX_MAX_SIZE)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "%s: dimension %d of the input '%.96s' is no number of 1 to %d; fix "
                            "all but the batch in the file",
                            im->file->path, d, value->name, GHP_ONNX_MAX_SIZE);
    if (!ghp_onnx_sized(value->n_dims - 1, value->dims + 1))
        return GHP_FAIL(GHP_ERR_INPUT, "%s: a sample of '%.96s' is too large; use smaller sizes",
                        im->file->path, value->name);
    return GHP_OK;
}

static bool attends(const struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->file->n_nodes; ++i)
        if (strcmp(im->nodes[i].op, "Attention") == 0) return true;
    return false;
}

/* The input layer of `data` inputs, of which this is the first and `all` the elements of a sample. */
static enum ghp_status put_layer(struct ghp_onnx_import *im, const struct ghp_onnx_value *first,
                                 int data, int64_t all)
{
    struct ghp_layer like = {.op = GHP_OP_INPUT, .out = {.c = all, .h = 1, .w = 1}};
    bool sequence = data == 1 && first->n_dims == 3 && attends(im);
    struct ghp_onnx_array *array = ghp_onnx_named(im, first->name);
    enum ghp_status status;
    int layer;

    if (data == 1) like.out = ghp_onnx_shape(array);
    if (sequence) like.out = ghp_shape_sequence(first->dims[2], first->dims[1]);
    status = ghp_onnx_emit(im, &like, ghp_onnx_called("input"), &layer);
    if (status == GHP_ERR_INPUT)
        ghp_status_prefix("%s: the input '%.96s'", im->file->path, first->name);
    if (status == GHP_OK && sequence) {
        *array = ghp_onnx_of_sequence(im, layer);
        array->name = first->name;
    }
    return status;
}

enum ghp_status ghp_onnx_input_add(struct ghp_onnx_import *im)
{
    const struct ghp_onnx_value *first = NULL;
    int64_t all = 0;
    int data = 0;

    im->batch = GHP_ONNX_BATCH;
    for (int i = 0; i < im->file->n_inputs; ++i) {
        const struct ghp_onnx_value *value = &im->file->inputs[i];
        struct ghp_onnx_array array;

        if (value->name[0] == '\0' || ghp_onnx_named(im, value->name)->name != NULL ||
            !*ghp_onnx_wanted_of(im, value->name))
            continue;
        GHP_TRY(check_value(im, value));
        if (data++ == 0) {
            first = value;
            im->batch = batch_of(value);
        } else if (batch_of(value) != im->batch) {
            return GHP_FAIL(GHP_ERR_INPUT,
                            "%s: the inputs '%.96s' and '%.96s' have not the same batch; make it "
                            "the first dimension of both",
                            im->file->path, first->name, value->name);
        }
        array = ghp_onnx_of_layer(im, 0, value->n_dims, value->dims);
        array.offset = all;
        all += ghp_onnx_elements(&array);
        array.name = value->name;
        *ghp_onnx_named(im, value->name) = array;
    }
    return data == 0 ? GHP_OK : put_layer(im, first, data, all);
}
