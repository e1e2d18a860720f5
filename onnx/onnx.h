/* onnx/onnx.h - networks in ONNX files, opsets 7 to 24.
 *
 * onnx/network.h takes a path that ends in .onnx to ghp_onnx_load, so every tool reads ONNX where it reads models.
 * docs/reference/onnx.md lists the mapping and what is refused.
 *
 * Tested  tests/onnx/test_import.c, tests/executor/engine/test_onnx_nodes.c (ONNX's own test vectors) */
#ifndef GHP_ONNX_ONNX_H
#define GHP_ONNX_ONNX_H

#include "core/model/model.h"
#include "onnx/write/weights.h"

/* Whether the path, or NULL, ends in .onnx; "@S" after it asks for samples of S positions. */
bool ghp_onnx_names(const char *path);

/* Whether such a file is there, as `FILE.onnx` or `FILE.onnx@S`. */
bool ghp_onnx_is_there(const char *path);

/* Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT (damaged file); GHP_ERR_INPUT (an operation, attribute or shape that
 *           is not supported; the message names the node); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_load(const char *path, struct ghp_model *model);

struct ghp_onnx_weight { /* one trained tensor or running statistic */
    const char *name;    /* as ghp calls it, e.g. "conv1.weight"; owned by the tensors */
    int n_dims;
    int64_t dims[GHP_MAX_DIMS]; /* as in struct ghp_param */
    int64_t elements;
    /* the file has no values for it, one number is repeated: a network without weights */
    bool is_filled;
};

struct ghp_onnx_tensors; /* all tensors of a network that its file holds */

/* Returns   as ghp_onnx_load
 * Tested    tests/onnx/test_export.c */
enum ghp_status ghp_onnx_tensors_open(const char *path, struct ghp_onnx_tensors **tensors);
void ghp_onnx_tensors_close(struct ghp_onnx_tensors *tensors); /* accepts NULL */
int ghp_onnx_tensors_count(const struct ghp_onnx_tensors *tensors);
struct ghp_onnx_weight ghp_onnx_tensors_item(const struct ghp_onnx_tensors *tensors, int i);
/* Whether the file holds values of any weight. Returns as ghp_onnx_tensors_open. */
enum ghp_status ghp_onnx_has_weights(const char *path, bool *has);
/* All elements of tensor i in ghp's order.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_IO (values in a file next to it); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_tensors_read(const struct ghp_onnx_tensors *tensors, int i, float *values);

/* Writes a network as ONNX, opset 13 or what its operators need, batch symbolic; its output is what the loss reads.
 *
 * weights   NULL: norms' scales and variances are ones, all else zeros, and the file stays small
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a layer that ONNX cannot express; the message names it); GHP_ERR_IO;
 *           GHP_ERR_NO_MEMORY; what weights->read returned
 * Tested    tests/onnx/test_export.c */
enum ghp_status ghp_onnx_save(const char *path, const struct ghp_model *model,
                              const struct ghp_onnx_weights *weights);

#endif
