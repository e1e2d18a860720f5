/* onnx/operator/window.h - windows over pixels, as convolutions and pools have them. */
#ifndef GHP_ONNX_OPERATOR_WINDOW_H
#define GHP_ONNX_OPERATOR_WINDOW_H

#include "onnx/operator/operator.h"

/* One or two axes of pixels; one axis is the columns of a single row. */
struct ghp_onnx_pixels {
    int axes;
    int64_t size[2], kernel[2], stride[2], dilation[2], before[2], after[2];
};

/* Everything but the kernel's default, which is given in p->kernel. */
enum ghp_status ghp_onnx_window_read(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *x, struct ghp_onnx_pixels *p);
struct ghp_window ghp_onnx_window_of(const struct ghp_onnx_pixels *p);
/* If a pad of zeros made x, moves that padding into the window and reads what was padded. */
void ghp_onnx_window_pad(const struct ghp_onnx_import *im, struct ghp_onnx_pixels *p, int *layer);
/* The output of a window's layer, with the n axes of its input. */
enum ghp_status ghp_onnx_window_define(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       int layer, int n);

/* kernel_shape, strides, pads, and dilations if there are any. */
void ghp_export_window(struct ghp_onnx_export *ex, struct ghp_onnx_node *node,
                       const struct ghp_layer *layer);

#endif
