/* onnx/read/constant.h - constants: arrays whose values a file holds or that were computed. */
#ifndef GHP_ONNX_READ_CONSTANT_H
#define GHP_ONNX_READ_CONSTANT_H

#include "onnx/read/import.h"

struct ghp_onnx_sizes {
    int n;
    const int64_t *dims;
};

/* A constant of values in order, which live as long as the import (NULL: of zeros). */
enum ghp_status ghp_onnx_of_values(struct ghp_onnx_import *im, bool whole,
                                   struct ghp_onnx_sizes sizes, const double *values,
                                   struct ghp_onnx_array *array);
/* A constant that the file holds; its values are read when they are asked for. */
enum ghp_status ghp_onnx_of_tensor(struct ghp_onnx_import *im, const struct ghp_onnx_file *file,
                                   const struct ghp_onnx_tensor *tensor,
                                   struct ghp_onnx_array *array);

/* Most elements of a folded constant (not of weights). All constants that an import computes have at most eight
 * times as many together (1 GiB). Without that limit a small file that doubles a constant again and again would take
 * all memory. */
#define GHP_ONNX_MAX_FOLDED (INT64_C(1) << 24)

/* Zeroed room for a computed constant's elements, as long as the import lives.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (more than 2^24, or than 2^27 with those before it); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_room(struct ghp_onnx_import *im, int64_t elements, double **values);

/* The values that offsets and strides of a base's arrays point into, valid as long as the import; NULL: all elements
 * are its fill.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (more than 2^24); what reading a tensor returns */
enum ghp_status ghp_onnx_base_values(struct ghp_onnx_import *im, const struct ghp_onnx_base *base,
                                     const double **values);
/* A constant's elements in order, as long as the import lives.
 *
 * Returns   what ghp_onnx_base_values and ghp_onnx_room return */
enum ghp_status ghp_onnx_values(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                const double **values);
/* The places of a derived constant's elements in order, as long as the import lives.
 *
 * Returns   what ghp_onnx_room returns */
enum ghp_status ghp_onnx_places(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                const double **places);
/* Whether all elements are one number, and which. */
enum ghp_status ghp_onnx_uniform(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                 bool *uniform, double *value);
/* A constant's elements as floats times scale, into `values`. */
enum ghp_status ghp_onnx_floats(const struct ghp_onnx_array *array, double scale, float *values);

#endif
