/* onnx/operator/unary.h - what many operators come down to: a layer of one input, other axes, or nothing. */
#ifndef GHP_ONNX_OPERATOR_UNARY_H
#define GHP_ONNX_OPERATOR_UNARY_H

#include "onnx/read/import.h"

/* Input 0 of any kind, that has `least` axes or more; GHP_ERR_INPUT if there is none. */
enum ghp_status ghp_onnx_any_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                int least, struct ghp_onnx_array **x);
/* The same, whose axes may be joined, or scores of an attention. */
enum ghp_status ghp_onnx_seen_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_onnx_array **x);
/* Output 0 is input 0. */
enum ghp_status ghp_onnx_identity(struct ghp_onnx_import *im, const struct ghp_onnx_node *node);
/* Output 0 is x with other dimensions. */
enum ghp_status ghp_onnx_reshaped(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  struct ghp_onnx_array *x, int n, const int64_t *dims);
/* Emits `like`, an operation on each element, on input 0 and defines output 0 with input 0's dimensions. */
enum ghp_status ghp_onnx_unary(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               struct ghp_layer *like);

#endif
