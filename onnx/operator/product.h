/* onnx/operator/product.h - products of two computed tensors that are not an attention's: of each sample's matrices.
 *
 * ghp has no operation for them. Elements are repeated by views, multiplied, and summed by a mean over all pixels, so
 * such a product takes rows x columns x summed elements of memory, and large ones are refused. An attention is read as
 * its own layer as long as it can be (onnx/operator/scores.h).
 *
 * Tested  tests/executor/engine/test_onnx_attention.c, tests/tools/networks/modules.py: products, computed */
#ifndef GHP_ONNX_OPERATOR_PRODUCT_H
#define GHP_ONNX_OPERATOR_PRODUCT_H

#include "onnx/read/import.h"

/* The last two axes in each other's place. */
void ghp_onnx_turn_last(struct ghp_onnx_array *x);
/* Output 0 is the product of matrices in the last two axes of inputs 0 and 1; those before are broadcast. One of them
 * may be a constant; input 0 is then one row of each sample if it has two axes.
 *
 * turned    columns come before rows in input 1, as MatMul has it
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (no matrix for each sample, sizes that do not fit, too large) */
enum ghp_status ghp_onnx_multiply(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  bool turned);
/* Output 0 is the sum over the letters that `out` lacks of products of inputs 0 and 1, whose axes a and b name, as
 * Einsum does. The first of them is the batch, but for a constant that does not have it.
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (a letter twice, and as above) */
enum ghp_status ghp_onnx_sum_of_products(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node, const char *a,
                                         const char *b, const char *out);

/* Lets scores be a layer's output: what attention does not do may read them then. *done is false if they are not
 * products with a scale and a softmax alone.
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (as above) */
enum ghp_status ghp_onnx_scores_settle(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       struct ghp_onnx_array *x, bool *done);

#endif
