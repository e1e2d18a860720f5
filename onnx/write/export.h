/* onnx/write/export.h - a graph being written: nodes, attributes, constants.
 *
 * If memory runs out, all later calls do nothing, and the last one reports it. */
#ifndef GHP_ONNX_WRITE_EXPORT_H
#define GHP_ONNX_WRITE_EXPORT_H

#include "onnx/file/file.h"
#include "onnx/write/weights.h"

struct ghp_onnx_export {
    const struct ghp_model *model;
    const struct ghp_onnx_weights *weights;
    struct ghp_onnx_file file;
    int max_nodes, max_tensors;
    const char **names;   /* per layer: the tensor that is its output */
    int *ranks;           /* per layer: axes of that tensor: 2, 3 of a sequence, or 4 */
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
const char *ghp_export_floats(struct ghp_onnx_export *ex, const char *name, const int64_t *dims,
                              int n, const float *values); /* borrowed */
const char *ghp_export_number(struct ghp_onnx_export *ex, const char *name, double value);

/* The layer whose parameters a layer uses; one of these parameters under its own name (GHP_MAX_PARAMS + i: state i),
 * unless its owner, which comes before, has written it: its values, or a ConstantOfShape if there are none.
 *
 * spread    axes of 1 after its own, >= 0 */
const struct ghp_layer *ghp_export_owner(const struct ghp_onnx_export *ex,
                                         const struct ghp_layer *layer);
enum ghp_status ghp_export_param_of(struct ghp_onnx_export *ex, const struct ghp_layer *layer,
                                    int slot, int spread);
/* The tensor of layer `from` with the given number of axes, as `reader` reads it; only vectors have 2 and 4. */
const char *ghp_export_ranked(struct ghp_onnx_export *ex, int from, int rank, const char *reader);

/* A tensor whose axes are those of `from` in this order, called `name`. */
const char *ghp_export_turned(struct ghp_onnx_export *ex, const char *name, const char *from,
                              const int64_t *order, int n);

/* How many samples `from` has, as a tensor of one number called `name`; returns the name. */
const char *ghp_export_samples(struct ghp_onnx_export *ex, const char *name, const char *from);

/* The file is of this opset at least. */
void ghp_export_since(struct ghp_onnx_export *ex, int opset);

#endif
