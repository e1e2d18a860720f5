/* onnx/read/constant.c - constants: their values, in whichever way they are held. */
#include "onnx/read/constant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum ghp_status check_elements(int64_t elements)
{
    if (elements <= GHP_ONNX_MAX_FOLDED) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "a constant of %" PRId64 " elements is computed with; fold it in the file",
                    elements);
}

enum ghp_status ghp_onnx_room(struct ghp_onnx_import *im, int64_t elements, double **values)
{
    GHP_TRY(check_elements(elements));
    im->folded += elements;
    if (im->folded > 8 * GHP_ONNX_MAX_FOLDED)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "constants of more than 2^27 elements are computed; fold them in the file");
    *values = ghp_onnx_keep(im, (size_t)elements, sizeof **values);
    return *values == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

enum ghp_status ghp_onnx_of_values(struct ghp_onnx_import *im, bool whole,
                                   struct ghp_onnx_sizes sizes, const double *values,
                                   struct ghp_onnx_array *array)
{
    struct ghp_onnx_base *base = ghp_onnx_keep(im, 1, sizeof *base);

    *array = (struct ghp_onnx_array){.n = sizes.n, .base = base};
    if (base == NULL) return GHP_NO_MEMORY();
    if (!ghp_onnx_sized(sizes.n, sizes.dims))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a constant has a negative size or more than 2^40 elements; repair it");
    if (sizes.n > 0) memcpy(array->dims, sizes.dims, (size_t)sizes.n * sizeof *sizes.dims);
    ghp_onnx_in_order(array);
    *base = (struct ghp_onnx_base){
        .whole = whole, .elements = ghp_onnx_elements(array), .values = values};
    return GHP_OK;
}

enum ghp_status ghp_onnx_of_tensor(struct ghp_onnx_import *im, const struct ghp_onnx_file *file,
                                   const struct ghp_onnx_tensor *tensor,
                                   struct ghp_onnx_array *array)
{
    struct ghp_onnx_base *base;

    GHP_TRY(ghp_onnx_of_values(im, ghp_onnx_type_whole(tensor->type),
                               (struct ghp_onnx_sizes){tensor->n_dims, tensor->dims}, NULL, array));
    base = (struct ghp_onnx_base *)(uintptr_t)array->base;
    base->file = file;
    base->tensor = tensor;
    return GHP_OK;
}

/* All values of a stored tensor, as long as the import lives. */
static enum ghp_status stored_values(struct ghp_onnx_import *im, const struct ghp_onnx_base *base,
                                     const double **stored)
{
    size_t n = (size_t)base->elements;
    double *values = ghp_onnx_keep(im, n, sizeof *values);
    int64_t *ints = base->whole ? ghp_onnx_keep(im, n, sizeof *ints) : NULL;
    float *floats = base->whole ? NULL : ghp_onnx_keep(im, n, sizeof *floats);

    if (values == NULL || (ints == NULL && floats == NULL)) return GHP_NO_MEMORY();
    GHP_TRY(base->whole ? ghp_onnx_tensor_ints(base->file, base->tensor, ints)
                        : ghp_onnx_tensor_floats(base->file, base->tensor, floats));
    for (int64_t i = 0; i < base->elements; i++)
        values[i] = base->whole ? (double)ints[i] : (double)floats[i];
    *stored = values;
    return GHP_OK;
}

/* Whether an array is all of its base, in order. */
static bool is_base(const struct ghp_onnx_array *array)
{
    int64_t stride = 1;

    for (int i = array->n - 1; i >= 0; --i) {
        if (array->dims[i] != 1 && array->strides[i] != stride) return false;
        stride *= array->dims[i];
    }
    return array->offset == 0 && stride == array->base->elements;
}

/* Refuses a constant that layers compute. */
static enum ghp_status check_values(const struct ghp_onnx_base *base)
{
    if (base->derived == 0) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "it takes what the file computes of the parameter '%.96s' as numbers; make what "
        "is computed a parameter or a buffer of the module",
        base->of != NULL ? base->of : "");
}

enum ghp_status ghp_onnx_base_values(struct ghp_onnx_import *im, const struct ghp_onnx_base *base,
                                     const double **values)
{
    GHP_TRY(check_values(base));
    if (base->tensor != NULL) GHP_TRY(check_elements(base->elements));
    if (base->values == NULL && base->tensor != NULL) {
        GHP_TRY(stored_values(im, base, values));
        ((struct ghp_onnx_base *)(uintptr_t)base)->values = *values;
    }
    *values = base->values;
    return GHP_OK;
}

enum ghp_status ghp_onnx_values(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                const double **values)
{
    int64_t n = ghp_onnx_elements(array), index[GHP_ONNX_MAX_DIMS] = {0}, at = array->offset;
    const double *from;
    double *out;

    GHP_TRY(ghp_onnx_base_values(im, array->base, &from));
    if (from != NULL && is_base(array)) {
        *values = from;
        return GHP_OK;
    }
    GHP_TRY(ghp_onnx_room(im, n, &out));
    for (int64_t i = 0; i < n; i++) {
        out[i] = from != NULL ? from[at] : array->base->fill;
        ghp_onnx_next_element(array, index, &at);
    }
    *values = out;
    return GHP_OK;
}

enum ghp_status ghp_onnx_places(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                const double **places)
{
    int64_t n = ghp_onnx_elements(array), index[GHP_ONNX_MAX_DIMS] = {0}, at = array->offset;
    const double *from = array->base->places;
    double *out;

    GHP_TRY(ghp_onnx_room(im, n, &out));
    for (int64_t i = 0; i < n; i++) {
        out[i] = from != NULL ? from[at] : (double)at;
        ghp_onnx_next_element(array, index, &at);
    }
    *places = out;
    return GHP_OK;
}

enum ghp_status ghp_onnx_uniform(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                 bool *uniform, double *value)
{
    struct ghp_onnx_array once = *array;
    const double *values;

    for (int d = 0; d < once.n; d++)
        if (once.strides[d] == 0 && once.dims[d] > 0) once.dims[d] = 1;
    GHP_TRY(ghp_onnx_values(im, &once, &values));
    *uniform = ghp_onnx_elements(&once) > 0;
    for (int64_t i = 1; i < ghp_onnx_elements(&once); i++)
        *uniform = *uniform && values[i] == values[0];
    *value = *uniform ? values[0] : 0;
    return GHP_OK;
}

enum ghp_status ghp_onnx_floats(const struct ghp_onnx_array *array, double scale, float *values)
{
    const struct ghp_onnx_base *base = array->base;
    int64_t n = ghp_onnx_elements(array), index[GHP_ONNX_MAX_DIMS] = {0}, at = array->offset;
    float *from = NULL;

    GHP_TRY(check_values(base));
    if (base->tensor != NULL) {
        from = ghp_alloc((size_t)base->elements, sizeof *from);
        if (from == NULL) return GHP_NO_MEMORY();
        enum ghp_status status = ghp_onnx_tensor_floats(base->file, base->tensor, from);

        if (status != GHP_OK) {
            free(from);
            return status;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        double value = from != NULL           ? (double)from[at]
                       : base->values != NULL ? base->values[at]
                                              : base->fill;

        values[i] = (float)(scale * value);
        ghp_onnx_next_element(array, index, &at);
    }
    free(from);
    return GHP_OK;
}
