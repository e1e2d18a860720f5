/* onnx/network.c - see network.h. */
#include "onnx/network.h"

#include "onnx/huggingface/huggingface.h"
#include "onnx/onnx.h"

enum ghp_status ghp_network_load(const char *path, struct ghp_model *model)
{
    if (ghp_onnx_names(path)) return ghp_onnx_load(path, model);
    return ghp_hf_names(path) ? ghp_hf_load(path, model) : ghp_model_load(path, model);
}

bool ghp_network_names(const char *path)
{
    return ghp_onnx_names(path) || ghp_hf_names(path);
}
