/* onnx/network.h - a network from a file, whichever format it is in: ghp's own description or ONNX.
 *
 * core/model reads descriptions and does not know ONNX; every tool opens networks here.
 *
 * Tested  tests/onnx/test_export.c, tests/tools/together/test_onnx.sh */
#ifndef GHP_ONNX_NETWORK_H
#define GHP_ONNX_NETWORK_H

#include "core/model/model.h"

/* Reads a path that ends in .onnx by ghp_onnx_load, any other by ghp_model_load.
 *
 * Returns   as the two
 * Local */
enum ghp_status ghp_network_load(const char *path, struct ghp_model *model);

#endif
