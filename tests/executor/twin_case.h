/* tests/executor/twin_case.h - one operation's tensors twice: for the reference backend in float, and at the
 * precision under test where the tested backend's tensors lie (on a GPU, or in host memory), holding the same
 * numbers. */
#ifndef GHP_TESTS_EXECUTOR_TWIN_CASE_H
#define GHP_TESTS_EXECUTOR_TWIN_CASE_H

#include "executor/backend/operands.h"

enum { TWIN_CASE_TENSORS = 2 * GHP_MAX_INPUTS + 4 * GHP_MAX_PARAMS + 8 };

struct twin_tensor {
    const char *name;
    void *right, *got; /* host memory */
    int64_t elements;
    enum { CASE_NARROW, CASE_WIDE, CASE_PLAIN } kind; /* numbers of the precision; floats; bytes */
    bool written; /* by the pass; the others must stay as they are */
};

struct twin_case {
    struct ghp_operand_set right, got, there; /* float; as there, in host memory; there */
    bool adds;                                /* the pass adds to dx */
    int n;
    struct twin_tensor tensors[TWIN_CASE_TENSORS];
};

/* Ends the program where memory is short. Narrow tensors of `right` are rounded to the precision. */
void twin_case_open(struct twin_case *c, struct ghp_device device, const struct ghp_local *local,
                    int element_bytes);
void twin_case_close(struct twin_case *c);

/* Puts the reference's numbers to the tested backend, and NaN into what the pass writes and does not read. */
enum ghp_status twin_case_send(struct twin_case *c, enum ghp_pass pass);
enum ghp_status twin_case_fetch(struct twin_case *c);
/* Runs the kernel on them, with scratch full of NaN. GHP_ERR_INTERNAL if it writes beyond its scratch. */
enum ghp_status twin_case_run(struct twin_case *c, const struct ghp_backend_ops *ops,
                              struct ghp_kernel *kernel);
/* After a pass: rounds what the reference wrote to the precision, as later passes get it. */
void twin_case_round(struct twin_case *c);

/* Greatest difference of a tensor, over the greatest number of the right one; NaN counts as infinite. */
double twin_case_error(const struct twin_case *c, const struct twin_tensor *tensor);

/* An operation on images of c channels, size x size pixels, into as many of the same size; windows of 3 x 3, padded. */
struct ghp_local twin_case_shape(enum ghp_op op, int64_t n, int64_t c, int64_t size);

#endif
