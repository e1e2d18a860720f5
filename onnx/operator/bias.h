/* onnx/operator/bias.h - the bias of a product: a layer of its own here, an input of the product's node there. */
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

/* The bias that belongs to a layer and is written in its node, or NULL. */
const struct ghp_layer *ghp_export_own_bias(const struct ghp_model *model, int layer);

#endif
