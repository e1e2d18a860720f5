/* onnx/operator/rows.h - arrays as rows of their last axis: the channels of each position or pixel.
 *
 * A sequence's layer has [batch][position][channel] in memory, as ONNX does; its array has strides by which no view
 * is needed. For other layers the last axis is moved to the place of the channels.
 *
 * An image that is parted into windows becomes a sequence of all its pixels, window after window. Its array has these
 * joined to the batch (onnx/read/array.h), or as an axis of their own: batch, windows, positions, channels. */
#ifndef GHP_ONNX_OPERATOR_ROWS_H
#define GHP_ONNX_OPERATOR_ROWS_H

#include "onnx/read/import.h"

bool ghp_onnx_is_sequence(const struct ghp_onnx_import *im, int layer);
/* The output of a sequence's layer: batch, positions, channels. */
struct ghp_onnx_array ghp_onnx_of_sequence(const struct ghp_onnx_import *im, int layer);
/* Whether the array is that. */
bool ghp_onnx_whole_sequence(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x);

/* Whether an attention may read what is made: it reads linear layers of sequences alone. */
bool ghp_onnx_has_attention(const struct ghp_onnx_import *im);

/* Makes an array of three axes a sequence's (batch, positions, channels), through a view if it is not. */
enum ghp_status ghp_onnx_as_sequence(struct ghp_onnx_import *im, struct ghp_onnx_array *x);

/* The same, but samples and positions may be joined, or positions may come before samples. */
bool ghp_onnx_are_rows(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x);

/* The layer whose channels are the array's last axis, and whose positions or pixels all other axes but the batch. */
enum ghp_status ghp_onnx_rows_in(struct ghp_onnx_import *im, const struct ghp_onnx_array *x,
                                 int *layer);
/* The output of a layer on x's rows: the axes of x, the last as long as the layer has channels. */
struct ghp_onnx_array ghp_onnx_rows_out(const struct ghp_onnx_import *im,
                                        const struct ghp_onnx_array *x, int layer);

/* Lets an array of an image have the dimensions n, dims of windows: (samples times windows), ..., channels, or samples,
 * windows, positions, channels, by making it a sequence; *done is false if it is not one, and nothing is made then.
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (its axes cannot be regrouped) */
enum ghp_status ghp_onnx_windows_part(struct ghp_onnx_import *im, const struct ghp_onnx_array *x,
                                      int n, const int64_t *dims, struct ghp_onnx_array *made,
                                      bool *done);

/* Windows whose positions became the windows and the other way round, as a grid's: made a sequence of these, through a
 * view.
 *
 * Returns  GHP_OK; GHP_ERR_INPUT (its axes cannot be regrouped) */
enum ghp_status ghp_onnx_windows_turned(struct ghp_onnx_import *im, struct ghp_onnx_array *x);
/* Whether axes 1 and 2 of an array of four axes are windows and their positions. */
bool ghp_onnx_are_windows(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x);

/* Whether the constant has one value for each place on an axis of x, broadcast over everything else. */
bool ghp_onnx_by_axis(const struct ghp_onnx_array *x, const struct ghp_onnx_array *c, int axis);

/* Whether both arrays are all elements of their layers, turned alike, as ghp_onnx_each_in takes them. */
bool ghp_onnx_alike(const struct ghp_onnx_import *im, const struct ghp_onnx_array *a,
                    const struct ghp_onnx_array *b);
/* The layer of an operation on each element by itself: x's own if x is all elements of a sequence's layer, or those of
 * another layer with its axes turned (an image with its channels last); else one in the natural shape, which then x
 * stands for. */
enum ghp_status ghp_onnx_each_in(struct ghp_onnx_import *im, struct ghp_onnx_array *x, int *layer);
/* The output of such a layer, in x's order. */
struct ghp_onnx_array ghp_onnx_each_out(const struct ghp_onnx_array *x, int layer);

#endif
