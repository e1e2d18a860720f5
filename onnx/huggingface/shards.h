/* onnx/huggingface/shards.h - private to huggingface: tensors written into one file, or into several with their index.
 *
 * Several files are named and listed as transformers does it: model-00001-of-00003.safetensors, and
 * model.safetensors.index.json, which says where each tensor is. */
#ifndef GHP_ONNX_HUGGINGFACE_SHARDS_H
#define GHP_ONNX_HUGGINGFACE_SHARDS_H

#include "core/model/safetensors.h"

struct ghp_hf_shards {
    int n;
    struct ghp_safetensor *tensors; /* in float, in the order in which they are written */
    int64_t max_bytes; /* of the tensors of one file, unless it has one tensor alone; 0: one file */
    /* Gives the values of tensor i, borrowed until the next call. */
    enum ghp_status (*read)(void *context, int i, const float **values);
    void *context;
};

/* Writes all tensors, then removes the files of weights by which the folder held a network before.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY; what `read` returned
 * Tested    tests/onnx/huggingface/test_save.c, tests/tools/networks/test_huggingface.sh */
enum ghp_status ghp_hf_shards_write(const char *folder, const struct ghp_hf_shards *shards);

#endif
