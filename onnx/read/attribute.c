/* onnx/read/attribute.c - what a node says in addition to its tensors, and of which kind those are. */
#include "onnx/read/attribute.h"

#include "onnx/read/constant.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct ghp_onnx_attribute *ghp_onnx_attribute_of(const struct ghp_onnx_node *node,
                                                       const char *name)
{
    for (int i = 0; i < node->n_attributes; i++)
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    return NULL;
}

/* Zero is often left unwritten, so an attribute without a value is 0. */
int64_t ghp_onnx_int(const struct ghp_onnx_node *node, const char *name, int64_t usual)
{
    const struct ghp_onnx_attribute *a = ghp_onnx_attribute_of(node, name);

    return a != NULL ? a->integer : usual;
}

double ghp_onnx_real(const struct ghp_onnx_node *node, const char *name, double usual)
{
    const struct ghp_onnx_attribute *a = ghp_onnx_attribute_of(node, name);

    return a != NULL ? ghp_onnx_tidy(a->real) : usual;
}

const char *ghp_onnx_text(const struct ghp_onnx_node *node, const char *name, const char *usual)
{
    const struct ghp_onnx_attribute *a = ghp_onnx_attribute_of(node, name);

    return a != NULL && a->kind == GHP_ONNX_TEXT ? a->text : usual;
}

double ghp_onnx_tidy(double value)
{
    float single = (float)value;
    char text[40];

    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)single);
        if (strtof(text, NULL) == single) break;
    }
    return strtod(text, NULL);
}

static int64_t whole_number(double value)
{
    if (value >= 0x1p62) return INT64_MAX;
    if (value <= -0x1p62) return INT64_MIN;
    return (int64_t)value;
}

enum ghp_status ghp_onnx_list(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_onnx_place place, int64_t out[GHP_ONNX_MAX_DIMS * 2],
                              int *n)
{
    const struct ghp_onnx_attribute *a = ghp_onnx_attribute_of(node, place.attribute);
    struct ghp_onnx_array *array = place.input >= 0 ? ghp_onnx_in(im, node, place.input) : NULL;
    const double *values;
    int64_t elements = a != NULL ? a->n : -1;

    *n = -1;
    if (array != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, place.input, &array));
        elements = ghp_onnx_elements(array);
    } else if (a != NULL && a->kind != GHP_ONNX_INTS && a->kind != GHP_ONNX_NONE) {
        return ghp_onnx_fail(im, node, "has no whole numbers as '%s'; give a list",
                             place.attribute);
    }
    if (elements > GHP_ONNX_MAX_DIMS * 2)
        return ghp_onnx_fail(im, node, "has %" PRId64 " numbers as '%s'; give at most %d", elements,
                             place.attribute, GHP_ONNX_MAX_DIMS * 2);
    *n = (int)elements;
    if (array == NULL) {
        for (int k = 0; k < *n; k++)
            out[k] = a->ints[k];
        return GHP_OK;
    }
    GHP_TRY(ghp_onnx_values(im, array, &values));
    for (int k = 0; k < *n; k++) {
        if (!(rint(values[k]) == values[k])) /* nor a NaN */
            return ghp_onnx_fail(im, node, "has %g among whole numbers; repair the file",
                                 values[k]);
        out[k] = whole_number(values[k]);
    }
    return GHP_OK;
}

enum ghp_status ghp_onnx_axis(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              int64_t axis, int dims, int *out)
{
    if (axis < -dims || axis >= dims)
        return ghp_onnx_fail(im, node, "names axis %" PRId64 " of %d; use one of %d to %d", axis,
                             dims, -dims, dims - 1);
    *out = (int)(axis < 0 ? axis + dims : axis);
    return GHP_OK;
}

enum ghp_status ghp_onnx_check_plain(const struct ghp_onnx_import *im,
                                     const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *array)
{
    if (array->scores != NULL)
        return ghp_onnx_fail(im, node,
                             "reads scores of an attention; ghp scales and masks them, takes their "
                             "softmax and multiplies values, and has no other use of them");
    return GHP_OK;
}

enum ghp_status ghp_onnx_joined_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int i, struct ghp_onnx_array **array)
{
    const struct ghp_layer *layer;

    *array = ghp_onnx_in(im, node, i);
    if (*array == NULL) return ghp_onnx_fail(im, node, "has no input %d; repair the file", i);
    if ((*array)->base != NULL && !ghp_onnx_role_is_number(*array))
        return ghp_onnx_role_fail_computed(im, node, *array);
    if ((*array)->base != NULL)
        return ghp_onnx_fail(
            im, node,
            "computes with the constant '%.96s' alone; give the network what comes "
            "of it as a parameter or a buffer",
            (*array)->name);
    GHP_TRY(ghp_onnx_check_plain(im, node, *array));
    layer = &im->model.layers[(*array)->layer];
    if (layer->op == GHP_OP_SOFTMAX_CE)
        return ghp_onnx_fail(im, node,
                             "reads what a softmax made; ghp has softmax only at the end, as the "
                             "loss: cut the file there");
    if (layer->out.vocabulary > 0)
        return ghp_onnx_fail(im, node,
                             "computes with token ids; ghp looks them up in a table (Gather) and "
                             "does nothing else with them");
    return GHP_OK;
}

enum ghp_status ghp_onnx_layer_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  int i, struct ghp_onnx_array **array)
{
    GHP_TRY(ghp_onnx_joined_in(im, node, i, array));
    return ghp_onnx_part_axes(im, *array);
}

enum ghp_status ghp_onnx_constant_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     int i, struct ghp_onnx_array **array)
{
    *array = ghp_onnx_in(im, node, i);
    if (*array == NULL) return ghp_onnx_fail(im, node, "has no input %d; repair the file", i);
    if ((*array)->base == NULL)
        return ghp_onnx_fail(im, node,
                             "has an input %d ('%.96s') that is computed from samples, where ghp "
                             "takes constants only; make it a parameter or a buffer",
                             i, (*array)->name);
    return GHP_OK;
}

enum ghp_onnx_mode ghp_onnx_mode(const struct ghp_onnx_file *file, const struct ghp_onnx_node *node)
{
    if (strcmp(node->op, "BatchNormalization") != 0 || file->opset < 14) return GHP_ONNX_NO_MODE;
    /* the exporter with dynamo leaves the attribute out, and says it by the name of PyTorch's operator */
    return ghp_onnx_int(node, "training_mode", 0) != 0 ||
                   strstr(ghp_onnx_node_name(node), "legit_functional") != NULL
               ? GHP_ONNX_TRAINING
               : GHP_ONNX_EVALUATION;
}

bool ghp_onnx_has_fixed_scale(const struct ghp_onnx_file *file, const struct ghp_onnx_node *node)
{
    static const char end[] = "weight";
    size_t n;

    if (strcmp(file->producer, "pytorch") != 0 || node->n_inputs < 2) return false;
    n = strlen(node->inputs[1]);
    return n < sizeof end - 1 || strcmp(node->inputs[1] + n - (sizeof end - 1), end) != 0;
}

bool ghp_onnx_detaches(const struct ghp_onnx_file *file, const struct ghp_onnx_node *node)
{
    return strcmp(file->producer, "pytorch") == 0 && strncmp(node->name, "node_detach", 11) == 0;
}
