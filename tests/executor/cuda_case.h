/* tests/executor/cuda_case.h - one operation's tensors twice: on the host for the reference backend in float, and on a
 * GPU at the precision under test, holding the same numbers. */
#ifndef GHP_TESTS_EXECUTOR_CUDA_CASE_H
#define GHP_TESTS_EXECUTOR_CUDA_CASE_H

#include "executor/opset.h"

enum { CUDA_CASE_TENSORS = 2 * GHP_MAX_INPUTS + 4 * GHP_MAX_PARAMS + 8 };

struct cuda_tensor {
    const char *name;
    void *right, *got;   /* host memory */
    int64_t elements;
    enum { CASE_NARROW, CASE_WIDE, CASE_PLAIN } kind; /* numbers of the precision; floats; bytes */
    bool written;        /* by the pass; the others must stay as they are */
};

struct cuda_case {
    struct ghp_opset right, got, there; /* float; as on the device, in host memory; on the device */
    int n;
    struct cuda_tensor tensors[CUDA_CASE_TENSORS];
};

/* Ends the program where memory is short. Narrow tensors of `right` are rounded to the precision. */
void cuda_case_open(struct cuda_case *c, struct ghp_device device, const struct ghp_local *local,
                    int element_bytes);
void cuda_case_close(struct cuda_case *c);

/* Puts the reference's numbers onto the device, and NaN into what the pass writes and does not read. */
enum ghp_status cuda_case_send(struct cuda_case *c, enum ghp_pass pass);
enum ghp_status cuda_case_fetch(struct cuda_case *c);
/* After a pass: rounds what the reference wrote to the precision, as later passes get it. */
void cuda_case_round(struct cuda_case *c);

/* Greatest difference of a tensor, over the greatest number of the right one; NaN counts as infinite. */
double cuda_case_error(const struct cuda_case *c, const struct cuda_tensor *tensor);

#endif
