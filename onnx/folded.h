/* onnx/folded.h - batch norms that PyTorch's exporter folded into the convolutions before them, and so lost.
 *
 * The network that is left trains otherwise than the module, and nothing of the norms can be found again. */
#ifndef GHP_ONNX_FOLDED_H
#define GHP_ONNX_FOLDED_H

#include "onnx/file/file.h"

/* Refuses such a file, unless ghp_network_takes_folded_norms (onnx/network.h) says that it is meant.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT
 * Tested    tests/onnx/test_warn.c, tests/tools/together/test_parameters.sh */
enum ghp_status ghp_onnx_check_folded(const struct ghp_onnx_file *file);

#endif
