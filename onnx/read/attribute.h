/* onnx/read/attribute.h - reads a node's attributes, lists and axes, and of which kind its inputs are. */
#ifndef GHP_ONNX_READ_ATTRIBUTE_H
#define GHP_ONNX_READ_ATTRIBUTE_H

#include "onnx/read/import.h"

const struct ghp_onnx_attribute *ghp_onnx_attribute_of(const struct ghp_onnx_node *node,
                                                       const char *name);
int64_t ghp_onnx_int(const struct ghp_onnx_node *node, const char *name, int64_t usual);
double ghp_onnx_real(const struct ghp_onnx_node *node, const char *name, double usual);
const char *ghp_onnx_text(const struct ghp_onnx_node *node, const char *name, const char *usual);

struct ghp_onnx_place { /* of a list: an input (-1: none), and the attribute of older opsets */
    int input;
    const char *attribute;
};

/* Whole numbers from an input or, if the node does not have it, from an attribute; *n is -1 if there is neither. */
enum ghp_status ghp_onnx_list(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_onnx_place place, int64_t out[GHP_ONNX_MAX_DIMS * 2],
                              int *n);
/* 0 to dims - 1 from an axis that may be negative. */
enum ghp_status ghp_onnx_axis(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              int64_t axis, int dims, int *out);
/* The shortest decimal number that is this float. */
double ghp_onnx_tidy(double value);

/* Input i as a layer's output or as a constant; GHP_ERR_INPUT if it is not one. */
enum ghp_status ghp_onnx_layer_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  int i, struct ghp_onnx_array **array);
/* The first with axes that may be joined. */
enum ghp_status ghp_onnx_joined_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int i, struct ghp_onnx_array **array);
/* Refuses scores of an attention. */
enum ghp_status ghp_onnx_check_plain(const struct ghp_onnx_import *im,
                                     const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *array);
enum ghp_onnx_mode { GHP_ONNX_NO_MODE, GHP_ONNX_TRAINING, GHP_ONNX_EVALUATION };
/* Whether a batch norm is in training mode; files before opset 14 do not say it. */
enum ghp_onnx_mode ghp_onnx_mode(const struct ghp_onnx_file *file,
                                 const struct ghp_onnx_node *node);
/* Whether a batch norm's scale is not a weight of the module (affine=False). The name that PyTorch's exporters give
 * tells. */
bool ghp_onnx_has_fixed_scale(const struct ghp_onnx_file *file, const struct ghp_onnx_node *node);
/* Whether an Identity is a detach() of the module: PyTorch's exporter keeps only its name. */
bool ghp_onnx_detaches(const struct ghp_onnx_file *file, const struct ghp_onnx_node *node);
enum ghp_status ghp_onnx_constant_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     int i, struct ghp_onnx_array **array);

#endif
