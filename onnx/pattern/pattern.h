/* onnx/pattern/pattern.h - operators that a file has written out in smaller ones.
 *
 * Exporters of older opsets write Gelu, LayerNormalization and their like as several nodes. Before a graph is walked,
 * the last node of such a pattern becomes the one operator that is meant. Nodes that only this pattern needed are then
 * not wanted any more. A file of patterns ends with its rows, `const struct ghp_onnx_pattern ghp_onnx_pattern_NAME[]`,
 * and the build finds it (cmake/GhpTables.cmake).
 *
 * Tested  tests/executor/engine/test_onnx_patterns.c */
#ifndef GHP_ONNX_PATTERN_PATTERN_H
#define GHP_ONNX_PATTERN_PATTERN_H

#include "onnx/read/import.h"

struct ghp_onnx_found { /* what takes the last node's place */
    int n_inputs;
    const char *inputs[5];
    int n_attributes;
    struct ghp_onnx_attribute attributes[4];
};

struct ghp_onnx_pattern {
    const char *last;    /* the operator of the last node; NULL ends a table */
    const char *becomes; /* the operator that takes its place */
    /* Whether the node ends the pattern; `found` is zeroed. */
    bool (*match)(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                  struct ghp_onnx_found *found);
};

/* All rows, in tables that end with a row without an operator; NULL ends the tables. */
extern const struct ghp_onnx_pattern *const ghp_onnx_patterns[];

/* Replaces nodes of im->nodes. The file's tensors must be constants of the import already.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_pattern_apply(struct ghp_onnx_import *im);

#endif
