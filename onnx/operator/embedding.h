/* onnx/operator/embedding.h - tables that tokens and positions look up. */
#ifndef GHP_ONNX_OPERATOR_EMBEDDING_H
#define GHP_ONNX_OPERATOR_EMBEDDING_H

#include "onnx/read/import.h"

/* Whether an array is the token ids that the network's input is. */
bool ghp_onnx_is_ids(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x);
/* Whether an input of a node is these. */
bool ghp_onnx_reads_ids(struct ghp_onnx_import *im, const struct ghp_onnx_node *node);

/* The deviation of first weights if a file has none. */
double ghp_onnx_usual_deviation(enum ghp_op op);

/* Gather of a constant table's rows by token ids. */
enum ghp_status ghp_onnx_embed(struct ghp_onnx_import *im, const struct ghp_onnx_node *node);

/* Whether the constant has a vector for each position of the sequence x, alike for all samples. */
enum ghp_status ghp_onnx_is_position_table(struct ghp_onnx_import *im,
                                           const struct ghp_onnx_array *x,
                                           const struct ghp_onnx_array *c, bool *is);
/* Add of such a constant. */
enum ghp_status ghp_onnx_add_positions(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       const struct ghp_onnx_array *x,
                                       const struct ghp_onnx_array *c);

/* A constant of any shape as a learned tensor of every sample: a layer of the whole tensor that it is of, the same for
 * all who read that, and *array, the constant's elements of it with `rank` axes, the batch in front. What is computed of
 * parameters (onnx/operator/derived.h) has its layer already.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT: it differs between samples, has too many axes, or is too large */
enum ghp_status ghp_onnx_parameter(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *c, int rank,
                                   struct ghp_onnx_array *array);

#endif
