/* onnx/read/settle.h - arrays made real: the layer whose output an array is, through a view if there is none. */
#ifndef GHP_ONNX_READ_SETTLE_H
#define GHP_ONNX_READ_SETTLE_H

#include "onnx/read/import.h"

/* The layer whose output is the array, element by element, with the shape given (its dimensions regrouped); makes
 * flatten or view layers if there is none yet, and then lets the array stand for the new one. */
enum ghp_status ghp_onnx_settle(struct ghp_onnx_import *im, struct ghp_onnx_array *array,
                                struct ghp_shape shape, int *layer);
/* The array's dimensions as a view's, cut at the bounds of channels, rows and columns. */
enum ghp_status ghp_onnx_view_of(const struct ghp_onnx_array *array, struct ghp_shape shape,
                                 struct ghp_view *view);
/* Whether the array is its layer's whole output, in order. */
bool ghp_onnx_whole(const struct ghp_onnx_import *im, const struct ghp_onnx_array *array);
/* Other dimensions of the same elements in the same order. */
enum ghp_status ghp_onnx_reshape(struct ghp_onnx_import *im, struct ghp_onnx_array *array, int n,
                                 const int64_t *dims);
/* Lets a layer's array have axes that strides say, the batch in front: joined ones become one. GHP_ERR_INPUT where
 * the batch is joined with another. */
enum ghp_status ghp_onnx_part_axes(struct ghp_onnx_import *im, struct ghp_onnx_array *array);

#endif
