/* onnx/huggingface/network.h - private to huggingface: a network of a family as ghp's layers, and the tensors of its
 * file.
 *
 * Both come from one table a family, so that a layer and what the file calls its weights stand side by side. Layers are
 * called as the file's modules if there is one; a tensor that a file fuses (the queries, keys and values of gpt2) is
 * cut into the parameters of several layers. */
#ifndef GHP_ONNX_HUGGINGFACE_NETWORK_H
#define GHP_ONNX_HUGGINGFACE_NETWORK_H

#include "onnx/huggingface/config.h"

enum { GHP_HF_NAME = 96, GHP_HF_PARTS = 3 };

struct ghp_hf_tensor {      /* one tensor of the file */
    char name[GHP_HF_NAME]; /* without the prefix */
    bool prefixed;          /* the file may put the family's prefix in front */
    int n_dims;
    int64_t dims[2]; /* in the file, but for axes of 1 and of windows: see ghp_hf_tensor_shape */
    int64_t window;  /* rows and columns of a convolution's; 0: it is not a convolution */
    bool one_first;  /* an axis of 1 stands before the others in the file */
    bool one_row;    /* its parameter is its first row */
    bool transposed; /* the file has [in][out], parameters have [out][in] */
    int n_parts;
    struct ghp_hf_part { /* parameters that it holds: each a range of its outputs */
        char param[GHP_HF_NAME];
        /* Row r is row first + r of the tensor; of parts that take turns, `run` rows each, see ghp_hf_row_at. */
        int64_t first, rows, run, step;
    } parts[GHP_HF_PARTS];
};

/* The tensor's row, or if it is transposed column, that row r of a part is. */
static inline int64_t ghp_hf_row_at(const struct ghp_hf_part *part, int64_t r)
{
    return part->first + r / part->run * part->step + r % part->run;
}

/* The tensor's axes in the file; returns how many. */
int ghp_hf_tensor_shape(const struct ghp_hf_tensor *t, int64_t shape[GHP_MAX_DIMS]);

struct ghp_hf_network {
    json_t *model; /* the description, as models/NAME.json; owned */
    int n_tensors;
    struct ghp_hf_tensor *tensors; /* owned */
};

struct ghp_hf_named {  /* a network that a path names */
    const char *name;  /* of the model; borrowed */
    int64_t positions; /* of a sample */
};

/* network   released by the caller; zeroed on failure
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/onnx/huggingface/test_weights.c */
enum ghp_status ghp_hf_network_make(const struct ghp_hf_config *config,
                                    const struct ghp_hf_named *named,
                                    struct ghp_hf_network *network);
void ghp_hf_network_release(struct ghp_hf_network *network); /* accepts a zeroed one */

#endif
