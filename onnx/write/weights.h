/* onnx/write/weights.h - where an exported file gets its weights. */
#ifndef GHP_ONNX_WRITE_WEIGHTS_H
#define GHP_ONNX_WRITE_WEIGHTS_H

#include "core/model/model.h"

/* Fills `values` (param->elements floats) with one tensor. */
struct ghp_onnx_weights {
    enum ghp_status (*read)(void *context, const struct ghp_param *param, float *values);
    void *context;
};

#endif
