/* executor/backend/onednn/onednn.h - oneDNN's C interface, 2.x and 3.x as one; dnnl.h appears nowhere else.
 *
 * Between the two, descriptions of memory became opaque and descriptions of operations disappeared; all else that ghp
 * uses is spelled alike. What a build of the library refuses (3.x: Winograd on x86) is described as NULL: it is not a
 * candidate, and nothing else changes.
 *
 * Tested   tests/executor/backend/onednn/test_onednn.c, with the generation that the build found */
#ifndef GHP_EXECUTOR_BACKEND_ONEDNN_ONEDNN_H
#define GHP_EXECUTOR_BACKEND_ONEDNN_ONEDNN_H

#include "core/sharding/local.h"

#include <dnnl.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t ghp_onednn_layout;            /* how a tensor lies; NULL: none */
typedef const_dnnl_memory_desc_t ghp_onednn_layout_view; /* borrowed */
#else
typedef dnnl_memory_desc_t *ghp_onednn_layout;
typedef const dnnl_memory_desc_t *ghp_onednn_layout_view;
#endif

/* Turns a library status into ours; `what` names the call. */
enum ghp_status ghp_onednn_status(dnnl_status_t status, const char *what);

#define GHP_ONEDNN(call) ghp_onednn_status((call), #call)

/* The processor, with the library's cache of primitives off: ghp keeps its own, and with a hit among them 2.6 counts
 * implementations wrongly. The caller destroys the engine. */
enum ghp_status ghp_onednn_engine_open(dnnl_engine_t *engine);

/* Whether the library has kernels of its own for bfloat16 here: on processors with AVX512_BF16 or AMX, unless
 * DNNL_MAX_CPU_ISA holds it back. Elsewhere it computes them in float, or not at all. */
bool ghp_onednn_has_bf16(void);

/* A layout of numbers of that type, owned by the caller. */
enum ghp_status ghp_onednn_layout_open(int n_dims, const dnnl_dims_t dims, dnnl_format_tag_t tag,
                                       dnnl_data_type_t type, ghp_onednn_layout *layout);
void ghp_onednn_layout_close(ghp_onednn_layout layout); /* accepts NULL */

/* A convolution in the library's terms: x [n c h w], w [k c r s] or, grouped, [g k c r s], y [n k p q]. */
struct ghp_onednn_conv {
    dnnl_dims_t x, w, y, stride, dilation, pad_begin, pad_end;
    bool grouped;
};
struct ghp_onednn_conv ghp_onednn_conv_of(const struct ghp_local *local);

/* One of the ways to compute a pass. */
struct ghp_onednn_variant {
    dnnl_alg_kind_t algorithm;    /* of convolutions */
    dnnl_format_tag_t activation; /* of x and y; dnnl_format_tag_any: as the library likes best */
    int implementation;           /* among the library's, best first, from 0 */
    bool bias;                    /* forward: with a bias of k floats */
    bool bf16; /* x, y and the weights that are read; weight gradients come as float */
};

/* The primitive of a pass of a convolution; *described stays NULL, with GHP_OK, if the library has no such thing.
 *
 * attributes   of the primitive; borrowed
 * described    owned by the caller: dnnl_primitive_desc_destroy */
enum ghp_status ghp_onednn_conv_describe(dnnl_engine_t engine, const struct ghp_local *local,
                                         enum ghp_pass pass, struct ghp_onednn_variant variant,
                                         dnnl_primitive_attr_t attributes,
                                         dnnl_primitive_desc_t *described);

struct ghp_onednn_matrices { /* x [n][c], w [k][c] (matmul: seen as [c][k]), y [n][k] */
    ghp_onednn_layout x, w, y;
    ghp_onednn_layout
        read_w; /* weights as forward passes read them, if a gradient w is of other numbers; else NULL */
};

/* y = x w, w [c][k]. NULL if the library has no such thing. */
enum ghp_status ghp_onednn_matmul_describe(dnnl_engine_t engine,
                                           const struct ghp_onednn_matrices *matrices,
                                           int implementation, dnnl_primitive_attr_t attributes,
                                           dnnl_primitive_desc_t *described);

/* A pass of y = x w^T, w [k][c]. NULL if the library has no such thing. */
enum ghp_status ghp_onednn_inner_describe(dnnl_engine_t engine,
                                          const struct ghp_onednn_matrices *matrices,
                                          enum ghp_pass pass, int implementation,
                                          dnnl_primitive_attr_t attributes,
                                          dnnl_primitive_desc_t *described);

/* The library's name of an implementation, e.g. "jit:avx512_core". */
const char *ghp_onednn_implementation(const_dnnl_primitive_desc_t described);

/* Attributes of every primitive: scratchpad from the user. The caller destroys them. */
enum ghp_status ghp_onednn_attributes(dnnl_primitive_attr_t *attributes);
/* Has the primitive apply a ReLU to its output. */
enum ghp_status ghp_onednn_append_relu(dnnl_primitive_attr_t attributes);

#endif
