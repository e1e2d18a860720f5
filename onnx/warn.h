/* onnx/warn.h - warns if what will be trained differs from what the file's author may expect. */
#ifndef GHP_ONNX_WARN_H
#define GHP_ONNX_WARN_H

#include "onnx/read/import.h"

/* Warns of shared tensors that become copies, inputs that are taken as constants, outputs that are left out, and batch
 * norms that PyTorch's exporters folded away or whose scales the module does not train.
 *
 * Tested   tests/onnx/test_warn.c */
void ghp_onnx_warn(const struct ghp_onnx_import *import);

#endif
