/* onnx/operator/scores.h - attention that a file has written out: queries times keys, a scale, a mask, a softmax, times
 * values.
 *
 * The product of queries and keys is an array of its own kind, *scores*, which becomes an attention layer. What the
 * nodes do to it is remembered. A node that does something that an attention does not do is refused. Nothing depends
 * on how the nodes are called or in which order scale and mask come. */
#ifndef GHP_ONNX_OPERATOR_SCORES_H
#define GHP_ONNX_OPERATOR_SCORES_H

#include "onnx/read/import.h"

/* MatMul of two computed tensors: scores of queries and keys, or the attention of weights and values. */
enum ghp_status ghp_onnx_scores_product(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node);
/* Whether input 0 or 1 is scores, and the other one a constant: then the node scales or masks. */
bool ghp_onnx_scores_with_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int *at);
/* Scores times a constant: a scale, or a mask of ones and zeros. */
enum ghp_status ghp_onnx_scores_times(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      int at);
/* Scores times a trained factor for each head, [heads][1][1], such as the temperatures of Swin v2. */
enum ghp_status ghp_onnx_scores_times_heads(struct ghp_onnx_import *im,
                                            const struct ghp_onnx_node *node, int at);
/* Scores over a constant. */
enum ghp_status ghp_onnx_scores_over(struct ghp_onnx_import *im, const struct ghp_onnx_node *node);
/* Scores and a mask that is added (sign 1) or subtracted (-1). */
enum ghp_status ghp_onnx_scores_plus(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     int at, int sign);
/* Reads the operator Where: scores if the condition says `keeps`, and elsewhere a constant that hides. */
enum ghp_status ghp_onnx_scores_where(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *condition, bool keeps);
/* Reshape of scores: windows parted from samples, or joined with them again. */
enum ghp_status ghp_onnx_scores_reshaped(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node, int n,
                                         const int64_t *dims);
/* Softmax over the keys; the input is scores. */
enum ghp_status ghp_onnx_scores_softmax(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, int axis);

/* Dropout of weights; the input is scores.
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (before the softmax); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_scores_drop(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     double ratio);

#endif
