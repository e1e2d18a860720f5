/* onnx/folded.h - batch norms that PyTorch's exporter folded into the convolutions before them, and so lost.
 *
 * The network that is left trains otherwise than the module, and nothing of the norms can be found again. */
#ifndef GHP_ONNX_FOLDED_H
#define GHP_ONNX_FOLDED_H

#include "core/base/status.h"

#include <stdbool.h>

struct ghp_onnx_file;

/* Whether files are taken whose batch norms PyTorch's exporter folded away; else they are refused. A tool's option sets
 * it before anything is loaded. */
extern bool ghp_network_takes_folded_norms;

/* Refuses such a file, unless ghp_network_takes_folded_norms says that it is meant; and one that has batch norms of
 * both modes.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT
 * Tested    tests/onnx/test_warn.c, tests/tools/networks/test_parameters.sh */
enum ghp_status ghp_onnx_check_folded(const struct ghp_onnx_file *file);

#endif
