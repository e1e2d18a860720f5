/* onnx/loss.h - the loss of a network as metadata of its file, `ghp.loss`, for ONNX has none that is meant: the loss's
 * name, or if it is not plain softmax_cross_entropy its layer as a model file has it, without inputs:
 *
 *     {"name": "loss", "op": "binary_cross_entropy", "multi_label": true}
 *
 * Tested  tests/onnx/test_export.c, tests/onnx/test_import.c */
#ifndef GHP_ONNX_LOSS_H
#define GHP_ONNX_LOSS_H

#include "core/model/model.h"
#include "onnx/file/file.h"

enum { GHP_ONNX_LOSS_NAME = GHP_MAX_NAME + 1 };

/* What a file's metadata says: the layer's operation and attributes, and its name.
 *
 * layer   filled in but for its name and inputs; softmax_cross_entropy if the file says nothing
 * name    "loss" if it has none
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_INPUT (no loss, unknown keys); GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_onnx_loss_read(const struct ghp_onnx_file *file, struct ghp_layer *layer,
                                   char name[GHP_ONNX_LOSS_NAME]);

/* Whether a file's metadata says its loss. */
bool ghp_onnx_loss_is_said(const struct ghp_onnx_file *file);

/* The metadata of a loss. text: freed by the caller. Returns GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_loss_write(const struct ghp_layer *loss, char **text);

#endif
