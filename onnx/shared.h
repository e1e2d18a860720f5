/* onnx/shared.h - tensors that several layers have: the output layer uses the embedding's, others get a copy each. */
#ifndef GHP_ONNX_SHARED_H
#define GHP_ONNX_SHARED_H

#include "onnx/read/import.h"

/* Ties linear layers to the embedding whose values they have. Exporters write such a tensor once, or a second time
 * transposed. Therefore values are compared, not names. The other shared tensors are listed in im->shared. Tensors that
 * are all one number are not compared, nor shared: they are equal by chance, as ones that nobody trained are.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; what reading a tensor returns
 * Tested    tests/onnx/test_sequences.c */
enum ghp_status ghp_onnx_share(struct ghp_onnx_import *im);

#endif
