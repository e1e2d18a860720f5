/* onnx/operator/derived.h - what a file computes of parameters alone, such as a table of numbers that a small network
 * makes of coordinates.
 *
 * Gradients flow through it. So a `parameter` layer hands the parameter to each sample, and layers on it compute. In
 * the graph it stays a constant, whose elements are those of the last of these layers (struct ghp_onnx_base: derived).
 * It is reshaped, turned and gathered from like any other, but has no values. Scores of an attention read it
 * (onnx/operator/scores.h), and sums and products with tensors of samples. Any other reader is refused.
 *
 * Tested  tests/executor/engine/test_onnx_attention.c, tests/tools/networks/modules.py: swin_v2, computed */
#ifndef GHP_ONNX_OPERATOR_DERIVED_H
#define GHP_ONNX_OPERATOR_DERIVED_H

#include "onnx/read/import.h"

bool ghp_onnx_is_derived(const struct ghp_onnx_array *x); /* x may be NULL */
/* Whether layers may compute with a constant: it is derived, or may be a parameter. */
bool ghp_onnx_may_derive(const struct ghp_onnx_array *x);

/* x itself, or if it is not derived the same elements of a `parameter` layer. */
enum ghp_status ghp_onnx_derived_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x, struct ghp_onnx_array *derived);
/* Output 0 is a function of each element of x. */
enum ghp_status ghp_onnx_derive_each(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *x, struct ghp_layer like);

/* x as a sequence's array: its last axis as channels, all others as positions. A constant that is not derived becomes a
 * `parameter` layer. If the file does not say whether it is one, rows of up to three numbers are taken as coordinates,
 * which are not trained.
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (elements of a derived constant that were looked up) */
enum ghp_status ghp_onnx_derived_rows(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *x, struct ghp_onnx_array *rows);
/* Output 0 is what a layer makes of the rows of x, with the axes of x but the last. */
enum ghp_status ghp_onnx_derive_rows(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *x, int layer);
/* Whether the last axis of x is the channels of its layer, a sequence, in order. */
bool ghp_onnx_derived_has_rows(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x);

/* Output 0, a constant of places of elements of x, becomes these elements. */
void ghp_onnx_derive_places(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            const struct ghp_onnx_array *x);

#endif
