/* onnx/pattern/question.h - questions that patterns ask about a graph: which node made a tensor, and from what. Tensors
 * are given by name.
 *
 * Identity and casts to floats are looked through; of constants other axes, too. */
#ifndef GHP_ONNX_PATTERN_QUESTION_H
#define GHP_ONNX_PATTERN_QUESTION_H

#include "onnx/read/import.h"

/* The node of this operator and of at least `least` inputs that makes a tensor, or NULL. */
const struct ghp_onnx_node *ghp_onnx_made_by(struct ghp_onnx_import *im, const char *name,
                                             const char *op, int least);
bool ghp_onnx_same(struct ghp_onnx_import *im, const char *a, const char *b);
bool ghp_onnx_is_constant(struct ghp_onnx_import *im, const char *name);
/* Whether it is a constant of one value. */
bool ghp_onnx_scalar(struct ghp_onnx_import *im, const char *name, double *value);
/* Whether they are equal up to the rounding of constants that people write: 1e-4 of `wanted`. */
bool ghp_onnx_near(double value, double wanted);
/* If one of two inputs is a constant of one value: the other input, and that value. The order does not matter. */
bool ghp_onnx_with_scalar(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                          const char **rest, double *value);
/* Whether it is `*of` times `*by`, made by one Mul or Div with a constant. */
bool ghp_onnx_scaled(struct ghp_onnx_import *im, const char *name, const char **of, double *by);

struct ghp_onnx_product { /* scale times the factors */
    double scale;
    int n;
    const char *factors[8]; /* products of more are cut, and match nothing */
};

/* A tensor as a product, taken apart through at most four nodes down to `whole` (NULL: as far as it goes). */
struct ghp_onnx_product ghp_onnx_product_of(struct ghp_onnx_import *im, const char *name,
                                            const char *whole);

#endif
