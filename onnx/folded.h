/* onnx/folded.h - detects batch norms that PyTorch's exporter folded into the convolutions before them.
 *
 * The folded network trains differently from the module, and the norms cannot be recovered from the file. */
#ifndef GHP_ONNX_FOLDED_H
#define GHP_ONNX_FOLDED_H

#include "core/base/status.h"

#include <stdbool.h>

struct ghp_onnx_file;

/* True: files are accepted although PyTorch's exporter folded their batch norms away. False: they are refused. A
 * tool's option sets it before anything is loaded. */
extern bool ghp_network_takes_folded_norms;

/* Refuses such a file, unless ghp_network_takes_folded_norms is set. Also refuses a file that has batch norms of both
 * modes.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT
 * Tested    tests/onnx/test_warn.c, tests/tools/networks/test_parameters.sh */
enum ghp_status ghp_onnx_check_folded(const struct ghp_onnx_file *file);

#endif
