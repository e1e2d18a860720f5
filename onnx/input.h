/* onnx/input.h - the inputs of a graph that are data, as the input layer of a network. */
#ifndef GHP_ONNX_INPUT_H
#define GHP_ONNX_INPUT_H

#include "onnx/read/import.h"

/* Each wanted input that is no constant is a part of a sample. One is the input layer itself; several lie one behind
 * another in a vector. Two axes behind the batch are positions and channels where the graph attends, else the channels
 * and the columns of an image of one row.
 *
 * Beside token ids, 'attention_mask' is ones and 'position_ids' counts from 0, for ghp trains whole windows.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT, naming the input; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_input_add(struct ghp_onnx_import *im);

#endif
