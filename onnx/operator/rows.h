/* onnx/operator/rows.h - arrays as rows of their last axis: the channels of each pixel. */
#ifndef GHP_ONNX_OPERATOR_ROWS_H
#define GHP_ONNX_OPERATOR_ROWS_H

#include "onnx/read/import.h"

/* The layer whose channels are the array's last axis, and whose pixels all other axes but the batch. */
enum ghp_status ghp_onnx_rows_in(struct ghp_onnx_import *im, const struct ghp_onnx_array *x,
                                 int *layer);
/* The output of a layer on x's rows: the axes of x, the last as long as the layer has channels. */
struct ghp_onnx_array ghp_onnx_rows_out(const struct ghp_onnx_import *im,
                                        const struct ghp_onnx_array *x, int layer);

#endif
