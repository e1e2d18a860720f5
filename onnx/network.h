/* onnx/network.h - a network from a file, whichever format it is in: ghp's own description, ONNX, or a folder of
 * Hugging Face's transformers.
 *
 * core/model reads descriptions and knows neither of the others; every tool opens networks here.
 *
 * Tested  tests/onnx/test_export.c, tests/tools/together/test_onnx.sh */
#ifndef GHP_ONNX_NETWORK_H
#define GHP_ONNX_NETWORK_H

#include "core/model/model.h"

/* Reads a path that ends in .onnx by ghp_onnx_load, a folder or known name by ghp_hf_load, any other by
 * ghp_model_load.
 *
 * Returns   as the three
 * Local */
enum ghp_status ghp_network_load(const char *path, struct ghp_model *model);

/* Whether a path is a network's though it is no file of ghp's. */
bool ghp_network_names(const char *path);

#endif
