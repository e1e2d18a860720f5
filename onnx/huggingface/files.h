/* onnx/huggingface/files.h - private to huggingface: the tensors of a folder, in one file or in several.
 *
 * model.safetensors is read if it is there, else all files that model.safetensors.index.json lists. Other formats are
 * refused with the command that converts them. */
#ifndef GHP_ONNX_HUGGINGFACE_FILES_H
#define GHP_ONNX_HUGGINGFACE_FILES_H

#include "core/model/safetensors.h"

struct ghp_hf_files;

/* Whether a folder holds weights, in any format. */
bool ghp_hf_files_exist(const char *folder);

/* Opens all files and checks that they hold what the index lists.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT (no weights that ghp reads; a file without a tensor that
 *           the index has there); GHP_ERR_NO_MEMORY
 * Tested    tests/tools/run/test_first_weights.sh */
enum ghp_status ghp_hf_files_open(const char *folder, struct ghp_hf_files **files);
void ghp_hf_files_close(struct ghp_hf_files *files); /* accepts NULL */

/* The file, or the index of several. */
const char *ghp_hf_files_path(const struct ghp_hf_files *files);
int ghp_hf_files_count(const struct ghp_hf_files *files); /* tensors of all files */
const struct ghp_safetensor *ghp_hf_files_item(const struct ghp_hf_files *files, int i);
/* The number of a tensor, or -1. */
int ghp_hf_files_find(const struct ghp_hf_files *files, const char *name);
/* The same for a name whose prefix "a.b." the files may have whole, in part, or not at all. */
int ghp_hf_files_find_prefixed(const struct ghp_hf_files *files, const char *name, size_t prefix);
/* As ghp_safetensors_read. */
enum ghp_status ghp_hf_files_read(const struct ghp_hf_files *files, int i, int element_bytes,
                                  void *values);

#endif
