/* onnx/import.h - private to the files of onnx/ and their tests: a graph on its way to being a model.
 *
 * The one noun is the *array*: a constant or a layer's output, seen through strides. Reshape, Transpose, Slice, Split,
 * Squeeze, Unsqueeze, Flatten and Expand only change the strides; a `view` layer is made when an operation wants the
 * elements in order and they are not. Constants are folded with the same strides, so shape arithmetic and transposed
 * weights cost no copy.
 *
 * The first axis of a layer's array is the batch: it may be symbolic, has no stride, and every operation must keep it.
 *
 * To add an operation: a row in the table of onnx/graph.c and its function in onnx/layers.c, onnx/windows.c,
 * onnx/joins.c or onnx/shapes.c. */
#ifndef GHP_ONNX_IMPORT_H
#define GHP_ONNX_IMPORT_H

#include "core/base/hash_table.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "onnx/file.h"

/* Stands for a symbolic batch: a prime, so that no arithmetic on shapes makes it by accident. */
enum { GHP_ONNX_BATCH = 1000003, GHP_ONNX_MAX_SIZE = 1 << 20 };

struct ghp_onnx_base { /* a constant's elements, in order */
    bool whole;        /* whole numbers */
    int64_t elements;
    const struct ghp_onnx_file *file; /* with tensor: read when asked for */
    const struct ghp_onnx_tensor *tensor;
    const double *values; /* else these, or where NULL: all are `fill` */
    double fill;
    const struct ghp_onnx_node *trained_by; /* the first node that has it as a weight, or NULL */
};

struct ghp_onnx_array {
    const char *name; /* NULL: not made yet */
    /* NULL: a layer's output, whose elements count c, h, w, the last fastest */
    const struct ghp_onnx_base *base;
    int layer;
    int n;
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS]; /* of a layer, [0] is the batch */
    int64_t offset;
};

struct ghp_onnx_source {         /* where a parameter's values come from */
    int layer, slot;             /* slot: GHP_MAX_PARAMS + i for state i */
    struct ghp_onnx_array array; /* constant, in ghp's order */
    double scale;
};

struct ghp_onnx_shared { /* tensors that are weights of more than one node */
    int n;               /* nodes beyond each tensor's first */
    const char *tensor;  /* of the first such: its name, and the two nodes */
    const struct ghp_onnx_node *nodes[2];
};

/* A graph input that is to be a constant: the tensor of its own file. */
struct ghp_onnx_binding {
    const char *input;
    const struct ghp_onnx_file *file;
};

struct ghp_onnx_options {
    int n_bindings;
    const struct ghp_onnx_binding *bindings;
    const char *output; /* NULL: the last one of two dimensions, else the first */
    /* no loss at the end: the output as a vector, and a model that is not connected */
    bool open_end;
};

struct ghp_onnx_import {
    const struct ghp_onnx_file *file;
    struct ghp_onnx_options options;
    struct ghp_model model; /* layers complete */
    int max_layers;
    const struct ghp_onnx_node **makers; /* per layer: the node that it is of, or NULL */
    const struct ghp_onnx_node *now;     /* the node being read, or NULL */
    struct ghp_hash_table names;         /* const char *, borrowed from file */
    int max_arrays;                      /* room for one a name */
    struct ghp_onnx_array *arrays;
    bool *wanted; /* the output needs it */
    int n_sources, max_sources;
    struct ghp_onnx_source *sources;
    struct ghp_onnx_shared shared;
    int64_t batch;
    struct ghp_onnx_array output; /* the array of the chosen graph output */
    struct ghp_onnx_block *blocks;
    /* names taken so far: of layers, and of their tensors */
    json_t *layer_names, *tensor_names;
    int serial; /* makes a taken name another */
};

/* Turns a file's graph into layers. import is released by the caller, also on failure; file must live as long.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT, GHP_ERR_FORMAT naming file and node; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_import(const struct ghp_onnx_file *file,
                                const struct ghp_onnx_options *options,
                                struct ghp_onnx_import *import);
void ghp_onnx_import_release(struct ghp_onnx_import *import);

bool ghp_onnx_has(const char *op); /* whether there is a function for an operation */

/* ---- for the functions of operations ---- */

typedef enum ghp_status ghp_onnx_op_fn(struct ghp_onnx_import *im,
                                       const struct ghp_onnx_node *node);

/* A failure that names file, node, operation and opset in front of its message. GHP_ERR_INPUT */
enum ghp_status ghp_onnx_fail(const struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              const char *fmt, ...) GHP_PRINTF(3, 4);

/* What a message calls a node: its name, or where it has none its first output. */
const char *ghp_onnx_node_name(const struct ghp_onnx_node *node);

/* Memory that lives as long as the import; zeroed; NULL without memory. */
void *ghp_onnx_keep(struct ghp_onnx_import *im, size_t n, size_t size);

/* Input i, or NULL where it is left out. */
struct ghp_onnx_array *ghp_onnx_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int i);
/* Input i as a layer's output or as a constant; GHP_ERR_INPUT where it is not. */
enum ghp_status ghp_onnx_layer_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  int i, struct ghp_onnx_array **array);
enum ghp_status ghp_onnx_constant_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     int i, struct ghp_onnx_array **array);
/* Makes output i. */
enum ghp_status ghp_onnx_define(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i,
                                const struct ghp_onnx_array *array);
bool ghp_onnx_wanted(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i);

const struct ghp_onnx_attribute *ghp_onnx_attribute(const struct ghp_onnx_node *node,
                                                    const char *name);
int64_t ghp_onnx_int(const struct ghp_onnx_node *node, const char *name, int64_t usual);
double ghp_onnx_real(const struct ghp_onnx_node *node, const char *name, double usual);
const char *ghp_onnx_text(const struct ghp_onnx_node *node, const char *name, const char *usual);
struct ghp_onnx_place { /* of a list: an input (-1: none), and the attribute of older opsets */
    int input;
    const char *attribute;
};

/* Whole numbers from an input, or where the node has no such input from an attribute; *n is -1 where neither is
 * there. */
enum ghp_status ghp_onnx_list(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_onnx_place place, int64_t out[GHP_ONNX_MAX_DIMS * 2],
                              int *n);
/* 0 to dims - 1 from an axis that may be negative. */
enum ghp_status ghp_onnx_axis(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              int64_t axis, int dims, int *out);
/* The shortest decimal number that is this float. */
double ghp_onnx_tidy(double value);

/* ---- arrays (onnx/array.c) ---- */

struct ghp_onnx_sizes {
    int n;
    const int64_t *dims;
};

/* Whether the sizes are sane: none negative, all together at most 2^40 elements. */
bool ghp_onnx_sized(int n, const int64_t *dims);

struct ghp_onnx_array ghp_onnx_of_layer(const struct ghp_onnx_import *im, int layer, int n,
                                        const int64_t *dims);
enum ghp_status ghp_onnx_of_values(struct ghp_onnx_import *im, bool whole,
                                   struct ghp_onnx_sizes sizes, const double *values,
                                   struct ghp_onnx_array *array);
struct ghp_shape ghp_onnx_shape(const struct ghp_onnx_array *array); /* a layer's, as c, h, w */
int64_t
ghp_onnx_elements(const struct ghp_onnx_array *array); /* of a constant; of a layer's: a sample */

/* A constant's elements in order, as long as the import lives. */
enum ghp_status ghp_onnx_values(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                const double **values);
/* The same as floats times scale, into `values`. */
enum ghp_status ghp_onnx_floats(const struct ghp_onnx_array *array, double scale, float *values);

/* The layer whose output is the array, element by element, with the shape given (its dimensions regrouped); makes
 * flatten or view layers where there is none yet, and then lets the array stand for the new one. */
enum ghp_status ghp_onnx_settle(struct ghp_onnx_import *im, struct ghp_onnx_array *array,
                                struct ghp_shape shape, int *layer);
/* Whether the array is its layer's whole output, in order. */
bool ghp_onnx_whole(const struct ghp_onnx_import *im, const struct ghp_onnx_array *array);
/* Other dimensions of the same elements in the same order. */
enum ghp_status ghp_onnx_reshape(struct ghp_onnx_import *im, struct ghp_onnx_array *array, int n,
                                 const int64_t *dims);
void ghp_onnx_permute(struct ghp_onnx_array *array, const int *order);
/* Dimensions that broadcasting gives: stride 0 where 1 becomes more, new ones in front. False where they do not fit. */
bool ghp_onnx_expand(struct ghp_onnx_array *array, int n, const int64_t *dims);

/* ---- layers (onnx/emit.c) ---- */

struct
    ghp_onnx_hint { /* what to call a layer: n bytes of text (of none: its operation), and a part of at most 8 */
    const char *text;
    size_t n;
    const char *part; /* ".copy" and the like: which of the layers that a node becomes */
};

struct ghp_onnx_hint ghp_onnx_called(const char *text); /* NULL: no hint */
struct ghp_onnx_hint ghp_onnx_part(struct ghp_onnx_hint hint, const char *part);

/* A further layer: op, inputs and attributes as in `like`, called as the hint says as far as layers can be called so. A
 * name that a layer or a tensor has already gets a number behind it. */
enum ghp_status ghp_onnx_emit(struct ghp_onnx_import *im, const struct ghp_layer *like,
                              struct ghp_onnx_hint hint, int *layer);
/* Names the source of a layer's parameter; the array's elements must be as many. */
enum ghp_status ghp_onnx_weight_from(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     struct ghp_onnx_source source);
/* What to call the layer of a node: after its weight, itself, or its output. */
struct ghp_onnx_hint ghp_onnx_hint(const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *weight);
/* Emits `like` on input 0 in its natural shape and defines output 0 with input 0's dimensions. */
enum ghp_status ghp_onnx_unary(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               struct ghp_layer *like);

/* The bias of a convolution, where it has one: *layer becomes its. */
enum ghp_status ghp_onnx_conv_bias(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int *layer);

/* ---- operations ---- */
#define GHP_ONNX_OP_FUNCTIONS(X)                                                                   \
    X(conv)                                                                                        \
    X(gemm)                                                                                        \
    X(matmul)                                                                                      \
    X(activation)                                                                                  \
    X(clip)                                                                                        \
    X(max_pool)                                                                                    \
    X(average_pool)                                                                                \
    X(global_pool)                                                                                 \
    X(batch_norm)                                                                                  \
    X(lrn)                                                                                         \
    X(dropout)                                                                                     \
    X(concat)                                                                                      \
    X(split)                                                                                       \
    X(slice)                                                                                       \
    X(add)                                                                                         \
    X(mul)                                                                                         \
    X(flatten)                                                                                     \
    X(reshape_to)                                                                                  \
    X(transpose)                                                                                   \
    X(squeeze)                                                                                     \
    X(unsqueeze)                                                                                   \
    X(pad)                                                                                         \
    X(identity)                                                                                    \
    X(constant)                                                                                    \
    X(constant_of_shape) X(shape_of) X(reduce_mean) X(softmax) X(expand_to) X(gather) X(cast)

#define GHP_ONNX_DECLARE(name) ghp_onnx_op_fn ghp_onnx_##name;
GHP_ONNX_OP_FUNCTIONS(GHP_ONNX_DECLARE)
#undef GHP_ONNX_DECLARE

#endif
