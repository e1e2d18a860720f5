/* onnx/read/import.h - the state of an import from graph to model: what it owns, its names, and its failures.
 *
 * From the lowest up: array.h (strides), import.h, constant.h (values), attribute.h (what a node says), layer.h
 * (layers and their weights), settle.h (arrays made real). The functions of operators stand on all of them
 * (onnx/operator/operator.h). */
#ifndef GHP_ONNX_READ_IMPORT_H
#define GHP_ONNX_READ_IMPORT_H

#include "core/base/hash_table.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "onnx/read/array.h"

/* Stands for a symbolic batch. It is a prime, so arithmetic on shapes does not produce it by chance. */
enum { GHP_ONNX_BATCH = 1000003, GHP_ONNX_MAX_SIZE = 1 << 20 };

enum { GHP_ONNX_MAX_PARTS = 4 }; /* names that a node may add (onnx/operator/operator.h) */

struct ghp_onnx_source {         /* where a parameter's values come from */
    int layer, slot;             /* slot: GHP_MAX_PARAMS + i for state i */
    struct ghp_onnx_array array; /* constant, in ghp's order */
    double scale;
};

struct
    ghp_onnx_unsure { /* tensors that are trained, though the file does not say that they are to be */
    int n;
    const char *tensor; /* the first */
    bool made;          /* the exporter made it */
};

/* A graph input that is to be a constant: the tensor of its own file. */
struct ghp_onnx_binding {
    const char *input;
    const struct ghp_onnx_file *file;
};

struct ghp_onnx_options {
    int n_bindings;
    const struct ghp_onnx_binding *bindings;
    int64_t positions;  /* of token ids whose number the file leaves open; 0: not said */
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
    struct ghp_onnx_node *nodes;         /* the file's, patterns replaced (onnx/pattern) */
    const struct ghp_onnx_node *now;     /* the node being read, or NULL */
    struct ghp_hash_table names;         /* const char *, borrowed from file */
    int max_arrays;                      /* room for one a name */
    struct ghp_onnx_array *arrays;
    bool *wanted; /* the output needs it */
    int *made_in; /* the node that makes it, counted from 1; 0: none */
    bool failed;  /* a pattern was short of memory */
    int n_sources, max_sources;
    struct ghp_onnx_source *sources;
    struct ghp_onnx_unsure unsure;
    /* the metadata 'ghp.parameters' and 'ghp.shared', once they were asked for; NULL: the file has none */
    json_t *parameters, *shared_names;
    bool pixels;         /* the output is classes of each pixel */
    const char *assumed; /* an input that is taken as a constant (onnx/input.h), or NULL */
    /* the first that hands no gradient back to what is trained, or NULL */
    const struct ghp_onnx_node *detached;
    int64_t batch;
    struct ghp_onnx_array output; /* the array of the chosen graph output */
    struct ghp_onnx_block *blocks;
    int64_t folded; /* elements of constants computed so far */
    /* names taken so far: of layers, and of their tensors */
    json_t *layer_names, *tensor_names;
    int serial; /* makes a taken name another */
};

void ghp_onnx_import_release(struct ghp_onnx_import *im); /* accepts a zeroed one */

/* A failure that names file, node, operation and opset in front of its message. GHP_ERR_INPUT */
enum ghp_status ghp_onnx_fail(const struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              const char *fmt, ...) GHP_PRINTF(3, 4);
#ifdef __clang_analyzer__
#define ghp_onnx_fail(...) GHP_KNOWN_FAILURE(ghp_onnx_fail(__VA_ARGS__))
#endif

/* Whether an output is keys and values that a language model hands to its next call. */
bool ghp_onnx_is_cache(const char *output);

/* What a message calls a node: its name, or if it has none its first output. */
const char *ghp_onnx_node_name(const struct ghp_onnx_node *node);

/* Memory that lives as long as the import; zeroed; NULL without memory. */
void *ghp_onnx_keep(struct ghp_onnx_import *im, size_t n, size_t size);

/* ---- names ---- */

/* Room for all names of the file; before any other function of names. */
enum ghp_status ghp_onnx_reserve_names(struct ghp_onnx_import *im);
/* The array of a name; a new one if the name is new. */
struct ghp_onnx_array *ghp_onnx_named(struct ghp_onnx_import *im, const char *name);
/* The node that makes a name, or NULL. */
const struct ghp_onnx_node *ghp_onnx_maker_of(struct ghp_onnx_import *im, const char *name);
/* Whether the output needs a name. */
bool *ghp_onnx_wanted_of(struct ghp_onnx_import *im, const char *name);

/* Input i, or NULL if it is left out. */
struct ghp_onnx_array *ghp_onnx_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int i);
/* Makes output i. */
enum ghp_status ghp_onnx_define(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i,
                                const struct ghp_onnx_array *array);
bool ghp_onnx_wanted(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i);

#endif
