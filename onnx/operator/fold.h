/* onnx/operator/fold.h - functions of constants, element by element: what masks, positions and sizes are made of. */
#ifndef GHP_ONNX_OPERATOR_FOLD_H
#define GHP_ONNX_OPERATOR_FOLD_H

#include "onnx/read/constant.h"

/* One element of each of n inputs. */
typedef double ghp_onnx_function(const double *x, int n);

/* Dimensions that two shapes broadcast to; false if they do not. */
bool ghp_onnx_joint_dims(const struct ghp_onnx_array *a, const struct ghp_onnx_array *b, int *n,
                         int64_t *dims);

/* Output 0 is the function of the inputs, which are constants; axes along which all repeat are computed once.
 *
 * whole    the results are whole numbers
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (an input that is not constant, shapes that do not fit); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_fold(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              ghp_onnx_function *function, bool whole);
/* The same by the node's own operator, one of functions of numbers. */
enum ghp_status ghp_onnx_fold_function(struct ghp_onnx_import *im,
                                       const struct ghp_onnx_node *node);
/* Output 0 is a constant of these values, which are freed. If all samples have the same values, one copy is kept. */
enum ghp_status ghp_onnx_folded(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                bool whole, struct ghp_onnx_sizes sizes, double *values);

#endif
