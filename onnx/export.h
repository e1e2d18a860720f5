/* onnx/export.h - private to onnx/export*.c: a graph being written.
 *
 * Adding fails softly: without memory everything after does nothing, and the end reports it. */
#ifndef GHP_ONNX_EXPORT_H
#define GHP_ONNX_EXPORT_H

#include "onnx/onnx.h"
#include "onnx/file.h"

struct ghp_onnx_export {
    const struct ghp_model *model;
    const struct ghp_onnx_weights *weights;
    struct ghp_onnx_file file;
    int max_nodes, max_tensors;
    const char **names;   /* per layer: the tensor that is its output */
    int *ranks;           /* per layer: axes of that tensor, 2 or 4 */
    struct export_block { /* memory that goes with the export */
        struct export_block *next;
    } * blocks;
    bool failed; /* out of memory */
};

void *ghp_export_keep(struct ghp_onnx_export *ex, size_t n, size_t size);
const char *ghp_export_text(struct ghp_onnx_export *ex, const char *name, const char *end);

/* A node with up to GHP_MAX_INPUTS inputs (NULL ends) and one output, called as the node. */
struct ghp_onnx_node *ghp_export_node(struct ghp_onnx_export *ex, const char *op, const char *name,
                                      const char *const *inputs);
void ghp_export_int(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                    int64_t value);
void ghp_export_real(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                     double value);
void ghp_export_text_of(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                        const char *value);
void ghp_export_ints(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                     const int64_t *values, int n);
/* Constants; they return their name. */
const char *ghp_export_numbers(struct ghp_onnx_export *ex, const char *name, const int64_t *values,
                               int n);
const char *ghp_export_number(struct ghp_onnx_export *ex, const char *name, double value);

/* The nodes of a view; GHP_ERR_INPUT where ONNX's slices cannot say it. */
enum ghp_status ghp_export_view(struct ghp_onnx_export *ex, int layer);

#endif
