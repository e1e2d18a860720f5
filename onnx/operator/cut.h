/* onnx/operator/cut.h - some channels of a linear layer as a linear layer of its own: one product for queries, keys and
 * values becomes three, so that a split by channels never cuts across them. */
#ifndef GHP_ONNX_OPERATOR_CUT_H
#define GHP_ONNX_OPERATOR_CUT_H

#include "onnx/read/import.h"

struct ghp_onnx_channels { /* of a layer */
    int layer;
    int64_t first, n;
};

/* The layer that makes these channels and no others: itself where they are all, else a copy of the linear layer, and of
 * a bias on it, that has only their weights. What is not read any more is dropped at the end.
 *
 * part     what to add to its name, at most 8 bytes
 * layer    the layer
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (other channels than a linear layer's); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_cut(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                             struct ghp_onnx_channels channels, const char *part, int *layer);

#endif
