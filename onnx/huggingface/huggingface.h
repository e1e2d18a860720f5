/* onnx/huggingface/huggingface.h - networks in folders of Hugging Face's transformers: config.json and
 * model.safetensors, or the several files that model.safetensors.index.json lists.
 *
 *     FOLDER           as transformers' save_pretrained writes it, of a model type of enum ghp_hf_family
 *     gpt2-124m        known by name, without weights; also gpt2-355m, gpt2-774m, gpt2-1558m
 *     NAME@S           either, for samples of S positions in place of the whole context
 *
 * onnx/network.h takes such a path to ghp_hf_load, so every tool reads folders where it reads models.
 * docs/reference/huggingface.md lists the mapping and what is refused.
 *
 * Tested  tests/onnx/huggingface/test_weights.c, tests/onnx/huggingface/test_save.c,
 * tests/tools/networks/test_huggingface.sh */
#ifndef GHP_ONNX_HUGGINGFACE_HUGGINGFACE_H
#define GHP_ONNX_HUGGINGFACE_HUGGINGFACE_H

#include "core/model/model.h"

/* Whether the path names such a network: by a folder that has a config.json, or by a known name that no file has. */
bool ghp_hf_names(const char *path);
/* Whether the path names such a folder. False for known names, which have no files. */
bool ghp_hf_is_folder(const char *path);

/* Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT, GHP_ERR_INPUT (a family, key or value that is not supported, or more
 *           positions than the context has); GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_hf_load(const char *path, struct ghp_model *model);

/* ---- weights of a folder ---- */

struct ghp_hf_weight { /* one parameter */
    const char *name;  /* as ghp calls it; owned by the weights */
    int n_dims;
    int64_t dims[GHP_MAX_DIMS];
};

/* Whether the path is a folder that has weights, in whichever format and state. */
bool ghp_hf_has_weights(const char *path);

struct ghp_hf_weights; /* all parameters of a network, in the folder's files */

/* Returns   as ghp_hf_load; GHP_ERR_INPUT: a missing, unexpected or wrongly shaped tensor, which the message names,
 *           or a known name, which has no file */
enum ghp_status ghp_hf_weights_open(const char *path, struct ghp_hf_weights **weights);
void ghp_hf_weights_close(struct ghp_hf_weights *weights); /* accepts NULL */
int ghp_hf_weights_count(const struct ghp_hf_weights *weights);
struct ghp_hf_weight ghp_hf_weights_item(const struct ghp_hf_weights *weights, int i);
/* All values of parameter i, in ghp's order, as element_bytes (4 or 8) numbers.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_INPUT (no floating-point numbers); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_hf_weights_read(struct ghp_hf_weights *weights, int i, int element_bytes,
                                    void *values);

/* Whether the path is a folder of the PEFT library; ghp_hf_weights_open takes that too, and gives the parameters of the
 * network that its config names with those of its matrices. */
bool ghp_hf_is_adapter(const char *path);
/* Whether a network has matrices of the adapter's rank and factor. Returns GHP_OK (also without an adapter);
 * GHP_ERR_INPUT. */
enum ghp_status ghp_hf_weights_check_lora(const struct ghp_hf_weights *weights,
                                          const struct ghp_model *model);

/* All values of a tensor of the files, in their order, by its number in struct ghp_hf_network. */
enum ghp_status ghp_hf_weights_read_tensor(struct ghp_hf_weights *weights, int tensor,
                                           float *values);

/* ---- writing ---- */

/* The source of the weights of a folder that is written: fills `values` (param->elements floats) with one tensor. */
struct ghp_hf_source {
    enum ghp_status (*read)(void *context, const struct ghp_param *param, float *values);
    void *context;
    int64_t max_shard; /* bytes of tensors in one file, for several with an index; 0: one file */
};

/* Writes config.json and the weights, in float, under the names that transformers reads. The folder is made if it is
 * not there; weights that it held before are replaced, in however many files they were.
 *
 * model    the origin's, or any that is a gpt2 or llama layer by layer, also one that was read from JSON. The products
 *          of low-rank matrices (core/model/lora.h) are added to the weights
 * origin   the path that it was read from, if ghp_hf_load takes it; else NULL. What ghp does not write itself is the
 *          same as there: all other keys of config.json, the context with its positions, generation_config.json and the
 *          tokenizer's files
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a network of no family); GHP_ERR_USAGE (the folder is the origin); GHP_ERR_IO;
 *           GHP_ERR_NO_MEMORY; what ghp_hf_load returns for the origin; what source->read returned
 * Local */
enum ghp_status ghp_hf_save(const char *folder, const struct ghp_model *model, const char *origin,
                            const struct ghp_hf_source *source);

/* Writes the matrices of core/model/lora.h alone, as the folder of the PEFT library: adapter_model.safetensors and
 * adapter_config.json. A network of no family may have any; its layers are then called as PyTorch's modules.
 *
 * Returns   as ghp_hf_save; GHP_ERR_INPUT also if the network has none, if other parameters are trained, and if
 *           transformers has an adapted layer as a part of a matrix
 * Tested    tests/tools/networks/test_lora.sh */
enum ghp_status ghp_hf_save_adapter(const char *folder, const struct ghp_model *model,
                                    const char *origin, const struct ghp_hf_source *source);

#endif
