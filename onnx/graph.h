/* onnx/graph.h - a whole graph as layers.
 *
 * Call order: ghp_onnx_file_open -> ghp_onnx_import_graph -> read its model and sources -> ghp_onnx_import_release. */
#ifndef GHP_ONNX_GRAPH_H
#define GHP_ONNX_GRAPH_H

#include "onnx/read/import.h"

/* Turns a file's graph into layers. The caller releases `im`, also on failure; file must live as long.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT, GHP_ERR_FORMAT naming file and node; GHP_ERR_NO_MEMORY
 * Local
 * Tested    tests/onnx/test_import.c */
enum ghp_status ghp_onnx_import_graph(const struct ghp_onnx_file *file,
                                      const struct ghp_onnx_options *options,
                                      struct ghp_onnx_import *im);

#endif
