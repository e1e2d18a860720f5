/* onnx/operator/bias.h - parts of a product: its bias, a layer of its own here and an input of the product's node
 * there, and some of its channels. */
#ifndef GHP_ONNX_OPERATOR_BIAS_H
#define GHP_ONNX_OPERATOR_BIAS_H

#include "onnx/operator/operator.h"

/* One value a channel from a constant of as many values, or of one value for all. */
enum ghp_status ghp_onnx_channel_values(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node,
                                        const struct ghp_onnx_array *from, int64_t channels,
                                        struct ghp_onnx_array *out);
/* A bias layer on the source's: called as its tensor if that ends in .bias, else as its owner. */
enum ghp_status ghp_onnx_bias_on(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const struct ghp_onnx_source *from, int *layer);
/* The same of input i of the node, if it has one: *layer becomes the bias layer. */
enum ghp_status ghp_onnx_bias_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 int i, int *layer);

struct ghp_onnx_channels { /* of a layer */
    int layer;
    int64_t first, n;
    /* they are `runs` runs of equal length, each `step` channels after the one before; 0: they are one run */
    int64_t runs, step;
};

/* Makes some channels of a linear layer a linear layer of its own: one product for queries, keys and values becomes
 * three, so that a split by channels never cuts across them. That layer is the one itself if they are all, else a copy,
 * and one of a bias on it, that has only their weights; a bias that is held at zero has none. What is not read any more
 * is dropped at the end.
 *
 * part     what to add to its name, at most 8 bytes. If the channels are runs, its first two and the number of runs:
 *          .q4
 * layer    the layer
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (other channels than a linear layer's); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_take_channels(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       struct ghp_onnx_channels channels, const char *part,
                                       int *layer);

/* The bias that belongs to a layer and is written in its node, or NULL. */
const struct ghp_layer *ghp_export_own_bias(const struct ghp_model *model, int layer);

#endif
