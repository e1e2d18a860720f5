/* onnx/network.c - see network.h. */
#include "onnx/network.h"

#include "onnx/onnx.h"

enum ghp_status ghp_network_load(const char *path, struct ghp_model *model)
{
    return ghp_onnx_names(path) ? ghp_onnx_load(path, model) : ghp_model_load(path, model);
}
