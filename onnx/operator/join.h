/* onnx/operator/join.h - layers of several inputs. */
#ifndef GHP_ONNX_OPERATOR_JOIN_H
#define GHP_ONNX_OPERATOR_JOIN_H

#include "onnx/operator/operator.h"

/* add, mul or concat over settled layers, one for each input of the node, 16 at a time. */
enum ghp_status ghp_onnx_join(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_layer like, const int *layers, int *layer);
/* How many of the inputs are constants; GHP_ERR_INPUT if one is left out. */
enum ghp_status ghp_onnx_count_constants(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node, int *n);

/* A node of a layer's inputs, all with the axes of input 0. */
struct ghp_onnx_node *ghp_export_join(struct ghp_onnx_export *ex, int layer, const char *op);

#endif
