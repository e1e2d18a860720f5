/* onnx/operator/operator.h - ONNX's operators: how each is read, and as which each of ghp's operations is written.
 *
 * A file of a family of operators ends with its rows, `const struct ghp_onnx_operator ghp_onnx_FAMILY[]`; the build
 * finds it (cmake/GhpTables.cmake), and nothing else names an operator. An operator without a row is refused by its
 * name when a graph is read, an operation without one when a network is written.
 *
 * To add an operation: a row with its two functions, and its line in docs/reference/onnx.md.
 *
 * Tested  tests/onnx/test_operators.c */
#ifndef GHP_ONNX_OPERATOR_OPERATOR_H
#define GHP_ONNX_OPERATOR_OPERATOR_H

#include "onnx/read/import.h"
#include "onnx/write/export.h"

/* Makes layers of a node and defines the outputs that are wanted. If it cannot, it fails by ghp_onnx_fail with
 * GHP_ERR_INPUT. */
typedef enum ghp_status ghp_onnx_read_fn(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node);

/* Adds the nodes of a layer. The tensor that is its output is called as the layer and has the axes of its input 0,
 * unless the function changes ex->names[layer] and ex->ranks[layer]. GHP_ERR_INPUT if ONNX cannot express it. */
typedef enum ghp_status ghp_onnx_write_fn(struct ghp_onnx_export *ex, int layer);

struct ghp_onnx_operator {
    const char *name; /* ONNX's; NULL ends a table */
    int since;        /* the first opset that has it: a file with it is of that one at least */
    const char *attributes; /* that a node may have, each with a blank after it */
    bool folds;             /* it computes constants alone, or scores of an attention */
    ghp_onnx_read_fn *read; /* NULL: the operator's row is another one */
    enum ghp_op op;         /* with write: the operation that is written as this operator */
    ghp_onnx_write_fn *write;
};

/* All rows, in tables that end with a row without a name; NULL ends the tables. */
extern const struct ghp_onnx_operator *const ghp_onnx_operators[];

/* The row that an operator is read by, or NULL. */
const struct ghp_onnx_operator *ghp_onnx_operator_find(const char *name);
/* The row that an operation is written by, or NULL. */
const struct ghp_onnx_operator *ghp_onnx_operator_of(enum ghp_op op);
bool ghp_onnx_operator_allows(const struct ghp_onnx_operator *row, const char *attribute);
/* Reads `op` of one or two tensors as if the file had it next to the node. An operator that consists of others calls
 * this for each of them.
 *
 * inputs   names of tensors; inputs[1] may be NULL
 * part     what to add to the node's name; NULL: its output is the node's
 * out      the name of its output; NULL: not needed. At most GHP_ONNX_MAX_PARTS a node have names of their own.
 *
 * Returns  GHP_OK; what reading it returns */
enum ghp_status ghp_onnx_part_run(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  const char *op, const char *const inputs[2], const char *part,
                                  const char **out);
/* What to use in place of an operator that is not supported for samples, as messages say it. */
const char *ghp_onnx_operator_instead(const char *name);

#endif
