/* onnx/read/layer.h - the layers of a graph: their names, and where their weights are. */
#ifndef GHP_ONNX_READ_LAYER_H
#define GHP_ONNX_READ_LAYER_H

#include "onnx/read/import.h"

/* What to call a layer: n bytes of text (of none: its operation), and a part of at most 8. */
struct ghp_onnx_layer_name {
    const char *text;
    size_t n;
    const char *part; /* ".copy" and the like: which of the layers that a node becomes */
};

struct ghp_onnx_layer_name ghp_onnx_called(const char *text); /* NULL: no hint */
struct ghp_onnx_layer_name ghp_onnx_part(struct ghp_onnx_layer_name hint, const char *part);
/* What to call the layer of a node: after its weight (NULL: it has none), itself, or its output. */
struct ghp_onnx_layer_name ghp_onnx_hint(const struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node,
                                         const struct ghp_onnx_array *weight);

/* Whether a weight is some elements of a tensor of the file. */
bool ghp_onnx_is_part(const struct ghp_onnx_array *weight);

/* Adds a layer: op, inputs and attributes are those of `like`, and its name is that of the hint as far as it is a
 * valid name. If a layer or a tensor has that name already, a number is appended. */
enum ghp_status ghp_onnx_emit(struct ghp_onnx_import *im, const struct ghp_layer *like,
                              struct ghp_onnx_layer_name hint, int *layer);
/* Names the source of a layer's parameter; the array's elements must be as many. */
enum ghp_status ghp_onnx_weight_from(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     struct ghp_onnx_source source);
/* A layer's whole output in order, with these dimensions; the first is the batch, whatever it says. */
struct ghp_onnx_array ghp_onnx_of_layer(const struct ghp_onnx_import *im, int layer, int n,
                                        const int64_t *dims);

#endif
