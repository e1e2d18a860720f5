/* onnx/huggingface/adapter.h - private to huggingface: a folder of the PEFT library, read.
 *
 * Its config names the folder of the network that it adapts; its tensors are A and B of core/model/lora.h. */
#ifndef GHP_ONNX_HUGGINGFACE_ADAPTER_H
#define GHP_ONNX_HUGGINGFACE_ADAPTER_H

#include "core/model/safetensors.h"
#include "onnx/huggingface/network.h"

#include <limits.h>

#define GHP_HF_WRAPPER "base_model.model." /* PEFT's prefix of the network's names */

struct ghp_hf_adapter {
    char folder[PATH_MAX];
    char
        base[PATH_MAX]; /* the network's path, for samples of as many positions as were asked for */
    int64_t rank;
    double alpha;
    struct ghp_safetensors *file;
    char (*params)[2 * GHP_HF_NAME]; /* of each of the file's tensors, as ghp calls it; owned */
};

/* adapter   released by the caller; zeroed on failure
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT (what ghp does not train with; no folder of the network);
 *           GHP_ERR_NO_MEMORY */
enum ghp_status ghp_hf_adapter_open(const char *path, struct ghp_hf_adapter *adapter);
void ghp_hf_adapter_release(struct ghp_hf_adapter *adapter); /* accepts a zeroed one */

/* Names the parameters as the network that the adapter is for has them. Returns GHP_OK; GHP_ERR_INPUT naming a
 * tensor that is not of one of its linear layers. */
enum ghp_status ghp_hf_adapter_name(struct ghp_hf_adapter *adapter,
                                    const struct ghp_hf_network *network,
                                    enum ghp_hf_family family);

#endif
