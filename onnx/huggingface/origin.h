/* onnx/huggingface/origin.h - private to huggingface: the folder that a network was read from, for what its layers do
 * not say: token ids, generation, tokenizer, and the context beyond the positions of a sample. */
#ifndef GHP_ONNX_HUGGINGFACE_ORIGIN_H
#define GHP_ONNX_HUGGINGFACE_ORIGIN_H

#include "onnx/huggingface/place.h"

struct ghp_hf_origin {
    struct ghp_hf_place place;
    struct ghp_hf_config config;
    json_t *document; /* its config.json, owned; NULL for a known name */
};

/* Opens a path that ghp_hf_load takes.
 *
 * origin   released by the caller; zeroed on failure
 *
 * Returns   GHP_OK; what ghp_hf_load returns
 * Tested    tests/onnx/huggingface/test_save.c */
enum ghp_status ghp_hf_origin_open(const char *path, struct ghp_hf_origin *origin);
void ghp_hf_origin_release(struct ghp_hf_origin *origin); /* accepts a zeroed one */

/* Whether it has weights. */
bool ghp_hf_origin_has_weights(const struct ghp_hf_origin *origin);

/* Reads all values of one tensor of its network, over the whole context, as the file has them.
 *
 * Returns   GHP_OK; what ghp_hf_weights_open and ghp_hf_files_read return */
enum ghp_status ghp_hf_origin_read(const struct ghp_hf_origin *origin, int tensor, float *values);

/* Copies generation_config.json and the tokenizer's files, if they are there.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_hf_origin_copy(const struct ghp_hf_origin *origin, const char *folder);

#endif
