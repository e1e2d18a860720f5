/* onnx/shared.h - tensors that several layers have: these layers are tied. */
#ifndef GHP_ONNX_SHARED_H
#define GHP_ONNX_SHARED_H

#include "onnx/read/import.h"

/* Ties linear layers to the embedding whose values they have. Exporters write such a tensor once, or a second time
 * transposed. Therefore values are compared, not names. Tensors that are all one number are not compared: they are
 * equal by chance, as ones that nobody trained are.
 *
 * Then ties layers of one operation whose parameters are the same tensors, as those of a module that is called twice.
 * Exporters also write equal tensors of different modules once, so tensors of different modules are tied only if the
 * metadata 'ghp.shared' names them; other sharing is refused, but for tensors that are one number.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the nodes; GHP_ERR_NO_MEMORY; what reading a tensor returns
 * Tested    tests/onnx/test_sequences.c, tests/onnx/test_import.c */
enum ghp_status ghp_onnx_share(struct ghp_onnx_import *im);

#endif
