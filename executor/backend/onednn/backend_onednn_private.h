/* executor/backend/onednn/backend_onednn_private.h - what the files of the oneDNN backend share.
 *
 * A kernel is a short list of primitives over memories. Each memory is bound before a run to a
 * tensor of the call or to a place in the call's scratch, so that a run allocates no tensor of its
 * own; what the library itself takes for a moment is small change, and in its plain matrix product
 * (x64:gemm:jit) up to 5 MiB a thread. Tensors lie plain (N,H,W,C; weights K,C,R,S) or blocked
 * (backend.h: struct ghp_kernel_spec); if a primitive wants another layout, reorders into and out of
 * scratch stand around it.
 *
 * In bfloat16 x, y and their gradients have two bytes, weights and their gradients stay floats: the reorder that a
 * primitive wants of its weights rounds them too, and weight gradients are asked for in float. */
#ifndef GHP_EXECUTOR_BACKEND_ONEDNN_BACKEND_ONEDNN_PRIVATE_H
#define GHP_EXECUTOR_BACKEND_ONEDNN_BACKEND_ONEDNN_PRIVATE_H

#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/backend/onednn/onednn.h"

/* The element type of x, y and their gradients. */
static inline dnnl_data_type_t ghp_onednn_type(const struct ghp_backend *backend)
{
    return backend->config.element_bytes == 2 ? dnnl_bf16 : dnnl_f32;
}

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
                        GHP_ONEDNN_BIAS,
                        GHP_ONEDNN_SCRATCH
};

enum { GHP_ONEDNN_STEPS = 4, GHP_ONEDNN_MEMORIES = 12, GHP_ONEDNN_OPERANDS = 4 };

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
    /* memories[0], in scratch, is filled from x by ghp_onednn_im2col before the steps */
    bool im2col;
    bool im2col_blocks; /* its columns lie [c / 16][r s][16 of c] */
    /* at the start of scratch: the largest scratchpad of the steps, which run one by one */
    int64_t pad_bytes;
    char name[GHP_ALGORITHM_BYTES];
};

struct ghp_onednn_operand { /* of the main primitive */
    int argument;           /* DNNL_ARG_... */
    dnnl_query_t query;     /* finds the layout that the primitive wants */
    enum ghp_onednn_where where;
    ghp_onednn_layout
        plain; /* how the tensor lies; owned: ghp_onednn_operands_close; NULL: no operand */
    bool written;
};
void ghp_onednn_operands_close(struct ghp_onednn_operand operands[GHP_ONEDNN_OPERANDS]);

/* An empty kernel of the pass. */
enum ghp_status ghp_onednn_kernel_open(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, struct ghp_onednn_kernel **kernel);
void ghp_onednn_kernel_close(struct ghp_onednn_kernel *kernel); /* accepts NULL */

/* Fills an empty kernel: the described primitive over GHP_ONEDNN_OPERANDS operands, with reorders if the layouts
 * differ. Scratch: pad, then the reordered operands. The name is the library's, with "+reorder" if activations are
 * reordered.
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND naming the call that failed */
enum ghp_status ghp_onednn_kernel_fill(struct ghp_onednn_kernel *kernel,
                                       const_dnnl_primitive_desc_t described,
                                       const struct ghp_onednn_operand *operands);

/* The name of such a kernel: the library's, with "+reorder" if activations are reordered. */
void ghp_onednn_kernel_name(const_dnnl_primitive_desc_t described,
                            const struct ghp_onednn_operand *operands,
                            char name[GHP_ALGORITHM_BYTES]);

/* A kernel of the pass by the algorithm of that name (or, with other reorders, of the same implementation), or (NULL)
 * by the likeliest; *kernel stays NULL, with GHP_OK, if the library has nothing of that name, or nothing better
 * than plain loops. */
struct ghp_onednn_wish {
    const char *algorithm;
    struct ghp_kernel_spec spec;
};
enum ghp_status ghp_onednn_conv_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                        enum ghp_pass pass, struct ghp_onednn_wish wish,
                                        struct ghp_onednn_kernel **kernel);
enum ghp_status ghp_onednn_linear_prepare(struct ghp_backend *backend,
                                          const struct ghp_local *local, enum ghp_pass pass,
                                          const char *algorithm, struct ghp_onednn_kernel **kernel);

/* The names of all algorithms of the pass, the likeliest first. */
enum ghp_status ghp_onednn_conv_algorithms(struct ghp_backend *backend,
                                           const struct ghp_local *local, enum ghp_pass pass,
                                           struct ghp_kernel_spec spec,
                                           struct ghp_algorithms *names);
enum ghp_status ghp_onednn_linear_algorithms(struct ghp_backend *backend,
                                             const struct ghp_local *local, enum ghp_pass pass,
                                             struct ghp_algorithms *names);

/* Whether the library may have Winograd's algorithm for that window. */
bool ghp_onednn_conv_has_winograd(const struct ghp_backend *backend, const struct ghp_local *local);

/* A kernel of the pass of a bias on blocked tensors. */
enum ghp_status ghp_onednn_nchw16c_prepare(struct ghp_backend *backend,
                                           const struct ghp_local *local, enum ghp_pass pass,
                                           struct ghp_kernel **kernel);

/* A convolution's weight gradient as one matrix product over the im2col matrix of the input: for small images and no
 * groups. Its name begins with GHP_ONEDNN_IM2COL. blocked: the gradient is. */
#define GHP_ONEDNN_IM2COL "unfold+"
enum ghp_status ghp_onednn_im2col_prepare(struct ghp_backend *backend,
                                          const struct ghp_local *local, bool nchw16c,
                                          struct ghp_onednn_kernel **kernel);

/* unfolded [n p q][c r s] = for each output pixel what its window sees, 0 in the padding. */
void ghp_onednn_im2col(const struct ghp_onednn_kernel *kernel, const void *x, void *unfolded);

/* A pass over x [n][c], w [k][c], y [n][k]; x is read from or written to `x_where`. In scratch: the kernel's first
 * memory, and inner products only. */
struct ghp_onednn_product {
    int64_t n, c, k;
    enum ghp_onednn_where x_where;
    bool nchw16c;                 /* x in scratch: dw lies [k / 16][c / 16][16 of c][16 of k] */
    const char *wanted;           /* the way of this name; NULL: the likeliest */
    struct ghp_algorithms *names; /* not NULL: nothing is filled, each way's name is added */
};
/* Fills an empty kernel; *filled: whether there is a way of the wanted name. */
enum ghp_status ghp_onednn_product_fill(struct ghp_onednn_kernel *kernel,
                                        const struct ghp_onednn_product *product, bool *filled);

/* Adds a name, once. */
void ghp_onednn_add_name(struct ghp_algorithms *names, const char *name);

#endif
