/* onnx/file/file.h - an ONNX file as plain structs: nodes, attributes, tensors; knows no operation.
 *
 * Only the files that implement this header use protobuf. They check all sizes that a file gives: a tensor has all of
 * its values, a shape's product fits in 64 bits, names are never NULL. Pointers into the file are valid until close.
 *
 * Call order: open -> read fields, ghp_onnx_tensor_* -> close. For writing: fill structs -> ghp_onnx_file_save.
 *
 * Source   the format's description, https://onnx.ai/onnx/repo-docs/IR.html
 * Tested   tests/onnx/test_hostile.c, tests/fuzz/fuzz_onnx.c */
#ifndef GHP_ONNX_FILE_H
#define GHP_ONNX_FILE_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { GHP_ONNX_MAX_DIMS = 8 };

/* The element types that ghp reads; the numbers are the format's. */
enum ghp_onnx_type {
    GHP_ONNX_FLOAT = 1,
    GHP_ONNX_UINT8 = 2,
    GHP_ONNX_INT8 = 3,
    GHP_ONNX_INT32 = 6,
    GHP_ONNX_INT64 = 7,
    GHP_ONNX_BOOL = 9,
    GHP_ONNX_FLOAT16 = 10,
    GHP_ONNX_DOUBLE = 11,
    GHP_ONNX_BFLOAT16 = 16
};

struct ghp_onnx_tensor {
    const char *name;
    int type; /* enum ghp_onnx_type, or another number of the format: its values cannot be read */
    int n_dims;
    int64_t dims[GHP_ONNX_MAX_DIMS]; /* >= 0 */
    int64_t elements;
    const void *values;   /* writing: little-endian, as `type` says */
    const void *message;  /* reading: the library's */
    const char *location; /* reading: file next to the model that holds the values, or NULL */
    int64_t location_offset;
};

struct ghp_onnx_attribute {
    const char *name;
    enum {
        GHP_ONNX_NONE,
        GHP_ONNX_REAL,
        GHP_ONNX_INT,
        GHP_ONNX_TEXT,
        GHP_ONNX_TENSOR,
        GHP_ONNX_INTS,
        GHP_ONNX_REALS
    } kind; /* NONE: of a kind that ghp does not read */
    double real;
    int64_t integer;
    const char *text;
    const struct ghp_onnx_tensor *tensor;
    int n; /* INTS, REALS */
    const int64_t *ints;
    const float *reals;
};

struct ghp_onnx_node {
    const char *name, *op, *domain; /* "" if not given */
    const char *rules;  /* reading: the optimizer's rules that made it; "" if not given */
    const char *scopes; /* reading: PyTorch's modules that it is of, and its call, or "" */
    const char *call;   /* reading, of an AveragePool: PyTorch's call that it comes from, or "" */
    /* reading: PyTorch ran it in a graph of its own: under torch.no_grad(), torch.autocast() */
    bool apart;
    int n_inputs, n_outputs;
    const char **inputs, **outputs; /* "": left out */
    int n_attributes;
    struct ghp_onnx_attribute *attributes;
};

struct ghp_onnx_value { /* an input or output of the graph */
    const char *name;
    int type;    /* 0: no tensor, or not said */
    bool shaped; /* the number of dimensions is known */
    int n_dims;
    int64_t dims[GHP_ONNX_MAX_DIMS]; /* -1: not a number */
};

struct ghp_onnx_metadatum { /* metadata */
    const char *key, *value;
};

/* The key of ghp's own metadata that says which fraction of its weights each attention drops. The value is JSON, with a
 * number for each layer's name. */
#define GHP_ONNX_ATTENTION_DROPOUT "ghp.attention_dropout"

struct ghp_onnx_file {
    const char *path;     /* reading: owned */
    const char *name;     /* of the graph */
    const char *producer; /* the program that wrote it, "" if not given; writing: NULL for ghp */
    int64_t opset;        /* of ONNX's own operations */
    int n_nodes, n_tensors, n_inputs, n_outputs, n_texts;
    struct ghp_onnx_node *nodes;
    struct ghp_onnx_tensor *tensors; /* the graph's constants */
    struct ghp_onnx_value *inputs, *outputs;
    struct ghp_onnx_metadatum *texts;
    /* reading, PyTorch's exporter's list of parameters and buffers; "" if not given */
    const char *signature;
    int n_folded;
    struct ghp_onnx_metadatum
        *folded; /* reading: tensors that an optimizer computed, and of which */
    void *owned; /* reading */
};

/* Reads a model file.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT (truncated, no ONNX, nested too deep, sizes that contradict each other);
 *           GHP_ERR_NO_MEMORY */
enum ghp_status ghp_onnx_file_open(const char *path, struct ghp_onnx_file *file);

/* The same for a file that holds one tensor alone: file->tensors[0]. */
enum ghp_status ghp_onnx_file_open_tensor(const char *path, struct ghp_onnx_file *file);
void ghp_onnx_file_close(struct ghp_onnx_file *file); /* accepts a zeroed one */

/* All values as whole numbers (of INT64, INT32, INT8, UINT8, BOOL) or as floats (of the types above but BOOL).
 *
 * values   tensor->elements of them
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (another type); GHP_ERR_IO, GHP_ERR_FORMAT (values in a file next to the model) */
enum ghp_status ghp_onnx_tensor_ints(const struct ghp_onnx_file *file,
                                     const struct ghp_onnx_tensor *tensor, int64_t *values);
enum ghp_status ghp_onnx_tensor_floats(const struct ghp_onnx_file *file,
                                       const struct ghp_onnx_tensor *tensor, float *values);
bool ghp_onnx_type_whole(int type); /* has whole numbers */
bool ghp_onnx_type_real(int type);  /* has floating-point numbers */

/* Writes a model file, atomically; borrows everything. Returns GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_onnx_file_save(const char *path, const struct ghp_onnx_file *file);

#endif
