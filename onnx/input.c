/* onnx/input.c - inputs of a graph as the input layer. */
#include "onnx/input.h"

#include "onnx/operator/rows.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"

#include <inttypes.h>
#include <string.h>

/* Token ids: a sample is whole numbers, one a position. */
static bool is_ids(const struct ghp_onnx_value *value)
{
    return (value->type == GHP_ONNX_INT64 || value->type == GHP_ONNX_INT32) && value->n_dims == 2;
}

/* Whether a file says a size that is a multiple of a number: of a tensor, in a short list, or of an attribute. */
static bool has_multiple(const struct ghp_onnx_tensor *tensor, const struct ghp_onnx_file *file,
                         int64_t of)
{
    int64_t values[8];

    for (int d = 0; d < tensor->n_dims; d++)
        if (tensor->dims[d] != 0 && tensor->dims[d] % of == 0) return true;
    if (!ghp_onnx_type_whole(tensor->type) || tensor->elements > 8 ||
        ghp_onnx_tensor_ints(file, tensor, values) != GHP_OK)
        return false;
    for (int64_t i = 0; i < tensor->elements; i++)
        if (values[i] != 0 && values[i] % of == 0) return true;
    return false;
}

static bool says_multiple(const struct ghp_onnx_file *file, int64_t of)
{
    for (int i = 0; i < file->n_tensors; i++)
        if (has_multiple(&file->tensors[i], file, of)) return true;
    for (int i = 0; i < file->n_nodes; i++)
        for (int k = 0; k < file->nodes[i].n_attributes; k++) {
            const struct ghp_onnx_attribute *a = &file->nodes[i].attributes[k];

            if (a->kind == GHP_ONNX_TENSOR && has_multiple(a->tensor, file, of)) return true;
            for (int j = 0; a->kind == GHP_ONNX_INTS && j < a->n; j++)
                if (a->ints[j] != 0 && a->ints[j] % of == 0) return true;
        }
    return false;
}

/* What stands for a symbolic batch of token ids: their masks are computed for each sample, so it is the least prime
 * that divides no size in the file. */
static int64_t small_batch(const struct ghp_onnx_file *file, int64_t positions)
{
    static const int64_t primes[] = {5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47};

    for (size_t i = 0; i < sizeof primes / sizeof primes[0]; i++)
        if (positions % primes[i] != 0 && !says_multiple(file, primes[i])) return primes[i];
    return GHP_ONNX_BATCH;
}

static int64_t batch_of(const struct ghp_onnx_import *im, const struct ghp_onnx_value *value)
{
    if (value->dims[0] > 0) return value->dims[0];
    return is_ids(value) ? small_batch(im->file, value->dims[1]) : GHP_ONNX_BATCH;
}

/* The input as it will be: token ids of as many positions as are asked for. */
static enum ghp_status settle_positions(const struct ghp_onnx_import *im,
                                        struct ghp_onnx_value *value)
{
    int64_t wanted = im->options.positions;

    if (!value->shaped || !is_ids(value)) return GHP_OK;
    if (value->dims[1] < 1 && wanted == 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: the input '%.96s' leaves open how many positions a sample has; add "
                        "@ and their number to the file's name",
                        im->file->path, value->name);
    if (value->dims[1] > 0 && wanted > 0 && value->dims[1] != wanted)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: the input '%.96s' has %" PRId64 " positions, but %" PRId64
                        " are asked for; leave @%" PRId64 " out",
                        im->file->path, value->name, value->dims[1], wanted, wanted);
    if (wanted > 0) value->dims[1] = wanted;
    return GHP_OK;
}

static enum ghp_status check_value(const struct ghp_onnx_import *im,
                                   const struct ghp_onnx_value *value)
{
    if (!value->shaped || value->n_dims < 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: the input '%.96s' has no shape with a batch in front; give it one",
                        im->file->path, value->name);
    if (!ghp_onnx_type_real(value->type) && !is_ids(value))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: the input '%.96s' has elements of type %d; ghp's samples are "
                        "floating-point numbers, or token ids: whole numbers of two axes",
                        im->file->path, value->name, value->type);
    for (int d = 1; d < value->n_dims; d++)
        if (value->dims[d] < 1 || value->dims[d] > GHP_ONNX_MAX_SIZE)
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "%s: dimension %d of the input '%.96s' is not a number from 1 to %d; fix "
                "all but the batch in the file",
                im->file->path, d, value->name, GHP_ONNX_MAX_SIZE);
    if (!ghp_onnx_sized(value->n_dims - 1, value->dims + 1))
        return GHP_FAIL(GHP_ERR_INPUT, "%s: a sample of '%.96s' is too large; use smaller sizes",
                        im->file->path, value->name);
    return GHP_OK;
}

/* Whether a tensor is a softmax, guarded, dropped or cast perhaps. */
static bool is_softmax(struct ghp_onnx_import *im, const char *name)
{
    for (int depth = 0; depth < 4; depth++) {
        const struct ghp_onnx_node *node = ghp_onnx_maker_of(im, name);
        bool guard = node != NULL && strcmp(node->op, "Where") == 0 && node->n_inputs == 3;

        if (node == NULL || node->n_inputs < 1) return false;
        if (strcmp(node->op, "Softmax") == 0) return true;
        if (!guard && strcmp(node->op, "Cast") != 0 && strcmp(node->op, "Identity") != 0 &&
            strcmp(node->op, "Dropout") != 0)
            return false;
        name = node->inputs[guard ? 2 : 0];
    }
    return false;
}

/* Whether there is an attention, as one node or as the product after its softmax. */
static bool attends(struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->file->n_nodes; i++) {
        const struct ghp_onnx_node *node = &im->nodes[i];

        if (strcmp(node->op, "Attention") == 0) return true;
        if (strcmp(node->op, "MatMul") == 0 && node->n_inputs > 0 &&
            is_softmax(im, node->inputs[0]))
            return true;
    }
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
    /* the first table that looks ids up says of how many tokens they are (onnx/operator/embedding.c) */
    if (is_ids(first)) like.out = ghp_shape_tokens(first->dims[1], 1);
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

/* Whether an input is what ghp knows of token ids: that none is padding, and which position each has. */
static bool is_known(const struct ghp_onnx_value *value)
{
    return is_ids(value) &&
           (strcmp(value->name, "attention_mask") == 0 || strcmp(value->name, "position_ids") == 0);
}

/* Makes such an input, which comes with token ids, a constant: ones, or 0, 1, 2 and so on. */
static enum ghp_status put_known(struct ghp_onnx_import *im, const struct ghp_onnx_value *value)
{
    int64_t positions = im->model.layers[0].out.h;
    const int64_t once[2] = {1, positions}, all[2] = {im->batch, positions};
    bool counts = strcmp(value->name, "position_ids") == 0;
    double *values = ghp_onnx_keep(im, (size_t)positions, sizeof *values);
    struct ghp_onnx_array *array = ghp_onnx_named(im, value->name);

    if (values == NULL) return GHP_NO_MEMORY();
    if (value->dims[1] > 0 && value->dims[1] != positions)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: the input '%.96s' has %" PRId64
                        " positions, but the token ids %" PRId64 "; make them as many",
                        im->file->path, value->name, value->dims[1], positions);
    for (int64_t i = 0; i < positions; i++)
        values[i] = counts ? (double)i : 1;
    GHP_TRY(ghp_onnx_of_values(im, true, (struct ghp_onnx_sizes){2, once}, values, array));
    array->name = value->name;
    im->assumed = value->name;
    (void)ghp_onnx_expand(array, 2, all); /* of one sample to all: it fits */
    return GHP_OK;
}

/* Whether an input is data: needed, and no constant. */
static bool is_wanted(struct ghp_onnx_import *im, const struct ghp_onnx_value *value)
{
    return value->name[0] != '\0' && ghp_onnx_named(im, value->name)->name == NULL &&
           *ghp_onnx_wanted_of(im, value->name);
}

/* Whether the graph has other token ids than what is known of them. */
static bool has_ids(struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->file->n_inputs; i++) {
        const struct ghp_onnx_value *value = &im->file->inputs[i];

        if (is_wanted(im, value) && is_ids(value) && !is_known(value)) return true;
    }
    return false;
}

/* The inputs that are samples. */
static enum ghp_status add_samples(struct ghp_onnx_import *im, bool ids)
{
    const struct ghp_onnx_value *first = NULL;
    int64_t all = 0;
    int data = 0;

    for (int i = 0; i < im->file->n_inputs; i++) {
        struct ghp_onnx_value *value = &im->file->inputs[i];
        struct ghp_onnx_array array;

        if (!is_wanted(im, value) || (ids && is_known(value))) continue;
        GHP_TRY(settle_positions(im, value));
        GHP_TRY(check_value(im, value));
        if (data++ == 0) {
            first = value;
            im->batch = batch_of(im, value);
        } else if (ids) {
            return GHP_FAIL(GHP_ERR_INPUT,
                            "%s: the input '%.96s' comes with token ids; ghp reads token ids "
                            "alone: make '%.96s' a constant in the file",
                            im->file->path, is_ids(first) ? value->name : first->name,
                            is_ids(first) ? value->name : first->name);
        } else if (batch_of(im, value) != im->batch) {
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "%s: the inputs '%.96s' and '%.96s' do not have the same batch; make it "
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

enum ghp_status ghp_onnx_input_add(struct ghp_onnx_import *im)
{
    bool ids = has_ids(im);

    im->batch = GHP_ONNX_BATCH;
    GHP_TRY(add_samples(im, ids));
    for (int i = 0; ids && i < im->file->n_inputs; i++) {
        const struct ghp_onnx_value *value = &im->file->inputs[i];

        if (is_wanted(im, value) && is_known(value)) GHP_TRY(put_known(im, value));
    }
    return GHP_OK;
}
