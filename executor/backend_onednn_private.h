/* executor/backend_onednn_private.h - what the files of the oneDNN backend share; dnnl.h appears nowhere else.
 *
 * A kernel is a short list of primitives over memories. Each memory is bound before a run to a
 * tensor of the call or to a place in the call's scratch, so that a run allocates no tensor of its
 * own; what the library itself takes for a moment is small change, and in its plain matrix product
 * (x64:gemm:jit) up to 5 MiB a thread. Tensors lie plain (N,H,W,C; weights as they are stored); where
 * a primitive wants another layout, reorders into and out of scratch stand around it. */
#ifndef GHP_EXECUTOR_BACKEND_ONEDNN_PRIVATE_H
#define GHP_EXECUTOR_BACKEND_ONEDNN_PRIVATE_H

#include "executor/backend_private.h"

#include <dnnl.h>

struct ghp_onednn { /* ghp_backend.library */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

enum ghp_onednn_where { /* what a memory is bound to */
                        GHP_ONEDNN_X,
                        GHP_ONEDNN_DX,
                        GHP_ONEDNN_Y,
                        GHP_ONEDNN_DY,
                        GHP_ONEDNN_W,
                        GHP_ONEDNN_DW,
                        GHP_ONEDNN_SCRATCH
};

enum { GHP_ONEDNN_STEPS = 4, GHP_ONEDNN_MEMORIES = 12, GHP_ONEDNN_OPERANDS = 3 };

struct ghp_onednn_memory {
    dnnl_memory_t memory;
    enum ghp_onednn_where where;
    int64_t offset; /* SCRATCH: bytes from its start */
    void *bound;    /* address at present */
};

struct ghp_onednn_step {
    dnnl_primitive_t primitive;
    int n_args;
    dnnl_exec_arg_t args[GHP_ONEDNN_OPERANDS + 1];
};

struct ghp_onednn_kernel {
    struct ghp_kernel base; /* first: a struct ghp_kernel * is cast back */
    int n_steps, n_memories;
    struct ghp_onednn_step steps[GHP_ONEDNN_STEPS];
    struct ghp_onednn_memory memories[GHP_ONEDNN_MEMORIES];
    bool
        unfold; /* memories[0], in scratch, is filled from x by ghp_onednn_unfold before the steps */
    int64_t
        pad_bytes; /* at the start of scratch: the largest scratchpad of the steps, which run one by one */
    char name[64];
};

struct ghp_onednn_operand { /* of the main primitive */
    int argument;           /* DNNL_ARG_... */
    dnnl_query_t query;     /* finds the layout that the primitive wants */
    enum ghp_onednn_where where;
    dnnl_memory_desc_t plain; /* how the tensor lies */
    bool written;
};

/* An empty kernel of the pass. */
enum ghp_status ghp_onednn_kernel_open(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, struct ghp_onednn_kernel **kernel);
void ghp_onednn_kernel_close(struct ghp_onednn_kernel *kernel); /* accepts NULL */

/* Fills an empty kernel: the described primitive over GHP_ONEDNN_OPERANDS operands, with reorders where the layouts
 * differ. Scratch: pad, then the reordered operands. The name is the library's, with "+reorder" where activations are
 * reordered.
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND naming the call that failed */
enum ghp_status ghp_onednn_kernel_fill(struct ghp_onednn_kernel *kernel,
                                       const_dnnl_primitive_desc_t described,
                                       const struct ghp_onednn_operand *operands);

/* Attributes of every primitive here: scratchpad from the user. The caller destroys them. */
enum ghp_status ghp_onednn_attributes(dnnl_primitive_attr_t *attributes);

/* The library's name of an implementation, e.g. "jit:avx512_core". */
const char *ghp_onednn_implementation(const_dnnl_primitive_desc_t described);

/* A kernel of the pass; *kernel stays NULL, with GHP_OK, where the library has nothing better than plain loops. */
enum ghp_status ghp_onednn_conv_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                        enum ghp_pass pass, struct ghp_onednn_kernel **kernel);
enum ghp_status ghp_onednn_linear_prepare(struct ghp_backend *backend,
                                          const struct ghp_local *local, enum ghp_pass pass,
                                          struct ghp_onednn_kernel **kernel);

/* A convolution's weight gradient as one matrix product over the unfolded input: for small images and no groups. */
enum ghp_status ghp_onednn_unfold_prepare(struct ghp_backend *backend,
                                          const struct ghp_local *local,
                                          struct ghp_onednn_kernel **kernel);

/* unfolded [n p q][c r s] = for each output pixel what its window sees, 0 in the padding. */
void ghp_onednn_unfold(const struct ghp_onednn_kernel *kernel, const float *x, float *unfolded);

/* An inner product's pass over x [n][c], w [k][c], y [n][k]; x is read from or written to `x_where`. */
struct ghp_onednn_product {
    int64_t n, c, k;
    enum ghp_onednn_where x_where;
};
enum ghp_status ghp_onednn_product_fill(struct ghp_onednn_kernel *kernel,
                                        const struct ghp_onednn_product *product);

/* Turns a library status into ours; `what` names the call. */
enum ghp_status ghp_onednn_status(dnnl_status_t status, const char *what);

#define GHP_ONEDNN(call) ghp_onednn_status((call), #call)

#endif
