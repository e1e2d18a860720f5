/* core/onnx.h - networks in ONNX files, opsets 7 to 22.
 *
 * ghp_model_load takes a path that ends in .onnx to ghp_onnx_load, so every tool reads ONNX where it reads models. What
 * is mapped to what, and what is refused and why: docs/onnx.md.
 *
 * Tested  tests/core/test_onnx.c, tests/executor/test_onnx_nodes.c (ONNX's own test vectors) */
#ifndef GHP_CORE_ONNX_H
#define GHP_CORE_ONNX_H

#include "core/model.h"

bool ghp_onnx_names(const char *path); /* whether the path ends in .onnx */

/* Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT (damaged file); GHP_ERR_INPUT (an operation, attribute or shape that ghp
 *           has not, naming the node); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_load(const char *path, struct ghp_model *model);

struct ghp_onnx_weight { /* one trained tensor or running statistic */
    const char *name;    /* as ghp calls it, e.g. "conv1.weight" */
    int n_dims;
    int64_t dims[GHP_MAX_DIMS]; /* as in struct ghp_param */
    int64_t elements;
    const float *values; /* in ghp's order, valid during the call only */
};

typedef enum ghp_status ghp_onnx_weight_fn(void *context, const struct ghp_onnx_weight *weight);

/* Calls `take` with each tensor of the network that the file holds, one after the other; stops where it fails.
 *
 * Returns   as ghp_onnx_load, or what take returned */
enum ghp_status ghp_onnx_each_tensor(const char *path, ghp_onnx_weight_fn *take, void *context);

/* Where an exported file gets its weights: fills `values` (param->elements floats) with one tensor. */
struct ghp_onnx_weights {
    enum ghp_status (*read)(void *context, const struct ghp_param *param, float *values);
    void *context;
};

/* Writes a network as ONNX, opset 13, batch symbolic; its output are the loss layer's inputs.
 *
 * weights   NULL: norms' scales and variances are ones, all else zeros, and the file stays small
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a layer that ONNX cannot say, naming it); GHP_ERR_IO; GHP_ERR_NO_MEMORY; what
 *           weights->read returned
 * Tested    tests/core/test_onnx_export.c */
enum ghp_status ghp_onnx_save(const char *path, const struct ghp_model *model,
                              const struct ghp_onnx_weights *weights);

#endif
