/* tests/executor/op_case.h - operations at odd shapes, and running one pass of one so that mistakes show.
 *
 * Used by the tests of the backends. */
#ifndef GHP_TESTS_EXECUTOR_OP_CASE_H
#define GHP_TESTS_EXECUTOR_OP_CASE_H

#include "executor/backend/operands.h"

struct op_tensor { /* what a pass writes, or a test compares */
    const char *name;
    void *data;
    int64_t elements;
};

enum { OP_MAX_TENSORS = GHP_MAX_INPUTS + 4 };

/* Operations of every kind, few elements each; *n receives their number. */
const struct ghp_local *op_case_all(int *n);
/* Adds those of losses. */
typedef void op_case_add(struct ghp_local local);
void op_case_losses(op_case_add *add);
/* A loss of several positions ignores its second label, of different losses those of its second position. Positions are
 * some of a longer sequence, so that masks of dropout and turns begin in its midst; of an attention all but the last of
 * its keys' positions. A hard_swish's inputs reach beyond its corners at -3 and 3, those of a root or logarithm are
 * positive. */
int64_t op_case_first_position(const struct ghp_local *local);
void op_case_arguments(struct ghp_operand_set *set);

/* The same operation, with what was left 0 as for one pixel or position and a window of one. */
struct ghp_local op_case_complete(struct ghp_local sizes);
struct ghp_local op_case_attention(int64_t n, int64_t positions, struct ghp_heads heads);
/* The same operation with its output sizes p, q filled in from the window. */
struct ghp_local op_case_conv(struct ghp_local sizes);

/* "conv2d n2 c3 ... backward_data" */
const char *op_case_text(const struct ghp_local *local, enum ghp_pass pass);

/* Tensors of elements (float or double) that a pass writes; returns their number. */
int op_case_written(const struct ghp_operand_set *set, enum ghp_pass pass,
                    struct op_tensor *tensors);

/* Runs a pass with its outputs and scratch full of NaN, and checks that nothing after the scratch was touched. The
 * kernel's algorithm goes to `algorithm` (64 bytes) unless NULL. Ends the test program on failure. */
void op_case_run(struct ghp_operand_set *set, const struct ghp_backend_ops *ops,
                 struct ghp_backend *backend, enum ghp_pass pass, char *algorithm);

/* All passes of an operation in the order of training. */
void op_case_run_all(struct ghp_operand_set *set, const struct ghp_backend_ops *ops,
                     struct ghp_backend *backend);

/* A loss whose 11 classes lie on 3 workers, of 4 columns each with padding after the last, is that of whole rows:
 * metrics, y and dx of the divided one are the whole one's within `bound`, and 0 where padding is. */
void op_case_divided(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                     int element_bytes, double bound);

/* A loss of several outputs is the sum of each one's by its weight, and so is the gradient; hits are those of the first.
 * With labels of each and with the same ones, of every loss, within `bound`. */
void op_case_outputs(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                     int element_bytes, double bound);

/* A row of two labels has the loss and the gradient of both, by their shares, within `bound`. */
void op_case_two_labels(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                        int element_bytes, double bound);

double op_case_get(const struct ghp_operand_set *set, const void *tensor, int64_t i);
void op_case_set(const struct ghp_operand_set *set, void *tensor, int64_t i, double value);

/* Forward result by the definition of the operation, in double, from the set's inputs; y: ghp_local_out_elements. */
void op_case_define(const struct ghp_operand_set *set, double *y);

#endif
