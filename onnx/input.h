/* onnx/input.h - the inputs of a graph that are data, as the input layer of a network. */
#ifndef GHP_ONNX_INPUT_H
#define GHP_ONNX_INPUT_H

#include "onnx/read/import.h"

/* Adds the input layer. Each wanted input that is not a constant is a part of a sample. One input becomes the input
 * layer itself; several are joined to a vector, one after another. Two axes after the batch are positions and channels
 * if the graph has an attention. Otherwise they are the channels and the columns of an image of one row.
 *
 * With token ids, 'attention_mask' is taken as ones and 'position_ids' as 0, 1, 2 and so on, since ghp trains whole
 * windows.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT, naming the input; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_input_add(struct ghp_onnx_import *im);

#endif
