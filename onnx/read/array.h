/* onnx/read/array.h - the *array*: a constant or a layer's output, seen through strides.
 *
 * Reshape, Transpose, Slice, Split, Squeeze, Unsqueeze, Flatten and Expand only change the strides; a `view` layer is
 * made when an operation wants the elements in order and they are not (onnx/read/settle.h). Constants are folded with
 * the same strides, so shape arithmetic and transposed weights cost no copy.
 *
 * The first axis of a layer's array is the batch: it may be symbolic, has no stride, and every operation must keep it.
 * A graph may see some axes before it for a while, such as the positions of PyTorch's multi-head attention (`lead`).
 *
 * Local
 * Tested  tests/onnx/test_import.c, tests/executor/engine/test_onnx_nodes.c */
#ifndef GHP_ONNX_READ_ARRAY_H
#define GHP_ONNX_READ_ARRAY_H

#include "core/model/model.h"
#include "onnx/file/file.h"

/* What a constant is in training (onnx/read/role.h). If a constant is computed from several, the largest value
 * counts. */
enum ghp_onnx_role {
    GHP_ONNX_AS_USED,   /* nothing is known */
    GHP_ONNX_FIXED,     /* a buffer or a number */
    GHP_ONNX_UNKNOWN,   /* the file does not say */
    GHP_ONNX_PARAMETER, /* trained */
    GHP_ONNX_COMPUTED   /* from a parameter, and none itself */
};

struct ghp_onnx_base { /* a constant's elements, in order */
    bool whole;        /* whole numbers */
    int64_t elements;
    const struct ghp_onnx_file *file; /* with tensor: read when asked for */
    const struct ghp_onnx_tensor *tensor;
    const double *values; /* else these, or if NULL: all are `fill` */
    double fill;
    enum ghp_onnx_role role;
    bool computed;  /* from tensors of role GHP_ONNX_UNKNOWN, which are not only moved */
    const char *of; /* the tensor of the file that has the role, or NULL */
    /* NULL, or whether each element is a number that the file puts in the place of a parameter's */
    const bool *held;
    /* 1 + the layer that computes the elements, the same for all samples, and that is why they have no values
     * (onnx/operator/derived.h); 0: none. Element i is element places[i] (NULL: i) of its output, which counts c, h, w,
     * the last fastest. */
    int derived;
    const double *places;
};

struct ghp_onnx_array {
    const char *name; /* NULL: not made yet */
    /* NULL: a layer's output, whose elements count c, h, w, the last fastest */
    const struct ghp_onnx_base *base;
    int layer;
    int n;
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS]; /* of a layer, [0] is the batch */
    int64_t offset;
    /* of a layer: the number of axes after the batch that the graph has before it */
    int lead;
    /* bit i: axis i and the one before it, in the graph's order, are one axis of the graph, though no stride covers
     * both */
    unsigned joined;
    /* NULL, or scores: the array is not yet a layer's output */
    const struct ghp_onnx_scores *scores;
};

/* What queries and keys make, until values are multiplied: the product, and then the weights of the values. */
struct ghp_onnx_scores {
    struct ghp_onnx_array q, k; /* batch, head, position, channel of a head */
    double scale;
    bool causal;  /* a mask hides later positions */
    bool zeroed;  /* later positions are zeros, which a mask is to hide */
    bool weights; /* a softmax was over it */
    /* of windows: a table of numbers that are added, NULL its name: none; its windows' sides;
     * [window][query][key], below 0 where a mask hides, NULL: none does */
    struct ghp_onnx_array table;
    struct ghp_tiles tiles;
    const double *hidden;
    /* 1 + the layer that computes such a table; 0: none does */
    int computed_table;
    /* 1 + the layer that has a factor for each head (0: none does), the first of them, and the elements from one to the
     * next */
    int factors;
    int64_t first_factor, factor_step;
    double dropout; /* of the weights */
};

/* Whether the sizes are sane: none negative, all together at most 2^40 elements. */
bool ghp_onnx_sized(int n, const int64_t *dims);
/* Elements of a constant, or of one sample of a layer's array. */
int64_t ghp_onnx_elements(const struct ghp_onnx_array *array);
struct ghp_shape ghp_onnx_shape(const struct ghp_onnx_array *array); /* a layer's, as c, h, w */

void ghp_onnx_permute(struct ghp_onnx_array *array, const int *order);
/* The array broadcast to these dimensions: stride 0 if 1 becomes more, new axes in front. False if they do not
 * fit. */
bool ghp_onnx_expand(struct ghp_onnx_array *array, int n, const int64_t *dims);

/* The axes that the graph sees, joined ones as one; returns their number. */
int ghp_onnx_seen(const struct ghp_onnx_array *array, int64_t dims[GHP_ONNX_MAX_DIMS]);
/* The array's axis that the graph has at place i, counted without joining. */
int ghp_onnx_axis_at(const struct ghp_onnx_array *array, int i);
/* A layer's array with the axes that the graph sees in another order; joined ones move together. */
struct ghp_onnx_array ghp_onnx_reordered(const struct ghp_onnx_array *array, const int *order,
                                         int n);
/* A layer's array with these axes of the same elements in the same order, joined if strides cannot say them; false
 * if an axis would have to be cut unevenly, or samples mixed. */
bool ghp_onnx_regroup(const struct ghp_onnx_array *array, int n, const int64_t *dims,
                      struct ghp_onnx_array *out);

/* Steps to the next element in row-major order; `at` is its place in the base. */
void ghp_onnx_next_element(const struct ghp_onnx_array *array, int64_t index[GHP_ONNX_MAX_DIMS],
                           int64_t *at);

/* ---- for onnx/read ---- */

int ghp_onnx_first_axis(
    const struct ghp_onnx_array *array); /* the first axis that has a stride: after the batch */
void ghp_onnx_in_order(struct ghp_onnx_array *array); /* row-major strides */
/* The array's dimensions of more than one element, neighbours that lie in order joined; returns their number. */
int ghp_onnx_merged(const struct ghp_onnx_array *array, int64_t *dims, int64_t *strides);
/* Strides for new dimensions of the same elements; false if the old strides do not give any. */
bool ghp_onnx_split_strides(const struct ghp_onnx_array *array, struct ghp_onnx_array *out);

#endif
