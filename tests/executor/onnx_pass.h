/* tests/executor/onnx_pass.h - the forward pass of a network that was read from an ONNX graph, by the reference
 * backend in float, with the graph's own weights. */
#ifndef GHP_TESTS_EXECUTOR_ONNX_PASS_H
#define GHP_TESTS_EXECUTOR_ONNX_PASS_H

#include "onnx/graph.h"

struct onnx_pass {
    const struct ghp_onnx_import *import;
    int64_t batch;
    bool training;
    /* [batch][values of a sample], in ONNX's order, several inputs one after another */
    const float *samples;
};

/* The output layer's values, NHWC; the caller frees them. */
float *onnx_pass_run(const struct onnx_pass *pass);

#endif
