/* executor/backend/onednn/conv.c - convolutions, and which algorithm and layout each shape gets if nobody measured.
 *
 * Measured on one core with AVX-512 (VGG and ResNet shapes): direct convolutions on plain N,H,W,C tensors are as fast
 * as on blocked ones and need no reorders of activations, except forward on images of at most 4 x 4, which blocked
 * layouts do 1.5-3 times as fast. Winograd (float only, blocked only; not for `exact`) is up to 2.4 times as fast
 * if it has work enough to pay for transforming the weights: see ghp_conv_tiles_pay. */
#include "executor/backend/onednn/backend_onednn_private.h"

#include <string.h>

/* Whether Winograd's rounding is allowed. The library's is for 3 x 3 windows and AVX-512, before its third
 * generation. */
static bool has_winograd(const struct ghp_backend *backend)
{
    return !backend->config.exact && backend->config.element_bytes == 4;
}

bool ghp_onednn_conv_has_winograd(const struct ghp_backend *backend, const struct ghp_local *local)
{
    return DNNL_VERSION_MAJOR < 3 && dnnl_get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core &&
           has_winograd(backend) && local->window.r == 3 && local->window.s == 3;
}

/* The direct weight gradient takes its time per image row: on images of at most 4 x 4, 5 times as long as a product. */
static bool unfolding_pays(const struct ghp_backend *backend, const struct ghp_local *l)
{
    bool winograd = has_winograd(backend) && ghp_conv_tiles_pay(l, GHP_PASS_BACKWARD_WEIGHT);
    return !winograd && l->window.groups == 1 && l->p * l->q <= 16 && l->c >= 16 && l->k >= 16;
}

/* Unfolding copies what each window sees: r s times the input. */
static bool can_im2col(const struct ghp_local *l, enum ghp_pass pass)
{
    return pass == GHP_PASS_BACKWARD_WEIGHT && l->window.groups == 1 && l->p * l->q <= 1024;
}

/* Ways to try, best first; n of them. */
enum { MAX_VARIANTS = 8 };

static int variants_of(const struct ghp_kernel *kernel, struct ghp_kernel_spec spec,
                       struct ghp_onednn_variant list[MAX_VARIANTS])
{
    const struct ghp_local *l = &kernel->local;
    bool bf16 = kernel->backend->config.element_bytes == 2;
    bool small = kernel->pass == GHP_PASS_FORWARD && l->p * l->q <= 16;
    bool blocks = small || spec.x || spec.y;
    const dnnl_format_tag_t likely = blocks ? dnnl_format_tag_any : dnnl_nhwc;
    const dnnl_format_tag_t other = blocks ? dnnl_nhwc : dnnl_format_tag_any;
    const struct ghp_onednn_variant winograd = {.algorithm = dnnl_convolution_winograd,
                                                .activation = dnnl_format_tag_any,
                                                .bias = spec.bias};
    bool can = has_winograd(kernel->backend), pays = can && ghp_conv_tiles_pay(l, kernel->pass);
    int n = 0;
    if (pays) list[n++] = winograd;
    for (int i = 0; i < 3; i++) {
        struct ghp_onednn_variant direct = {dnnl_convolution_direct, likely, i, spec.bias, bf16};
        list[n++] = direct;
        direct.activation = other;
        if (i < 2) list[n++] = direct;
    }
    if (can && !pays) list[n++] = winograd;
    return n;
}

static dnnl_format_tag_t tag_of(bool nchw16c)
{
    return nchw16c ? dnnl_nChw16c : dnnl_nhwc;
}

static enum ghp_status operands_of(const struct ghp_kernel *kernel, struct ghp_kernel_spec spec,
                                   struct ghp_onednn_operand operands[GHP_ONEDNN_OPERANDS])
{
    struct ghp_onednn_conv z = ghp_onednn_conv_of(&kernel->local);
    const dnnl_data_type_t type = ghp_onednn_type(kernel->backend);
    const struct ghp_onednn_operand forward[3] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, GHP_ONEDNN_X, NULL, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, GHP_ONEDNN_W, NULL, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, GHP_ONEDNN_Y, NULL, true}};
    const struct ghp_onednn_operand data[3] = {
        {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, GHP_ONEDNN_DX, NULL, true},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, GHP_ONEDNN_W, NULL, false},
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, GHP_ONEDNN_DY, NULL, false}};
    const struct ghp_onednn_operand weight[3] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, GHP_ONEDNN_X, NULL, false},
        {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, GHP_ONEDNN_DW, NULL, true},
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, GHP_ONEDNN_DY, NULL, false}};
    memcpy(operands,
           kernel->pass == GHP_PASS_FORWARD         ? forward
           : kernel->pass == GHP_PASS_BACKWARD_DATA ? data
                                                    : weight,
           sizeof forward);
    GHP_TRY(ghp_onednn_layout_open(4, z.x, tag_of(spec.x), type, &operands[0].plain));
    const dnnl_format_tag_t w = z.grouped ? dnnl_goihw : spec.w ? dnnl_OIhw16i16o : dnnl_oihw;
    GHP_TRY(ghp_onednn_layout_open(z.grouped ? 5 : 4, z.w, w, dnnl_f32, &operands[1].plain));
    GHP_TRY(ghp_onednn_layout_open(4, z.y, tag_of(spec.y), type, &operands[2].plain));
    if (!spec.bias) return GHP_OK;
    const dnnl_dims_t channels = {z.y[1]};
    operands[3] = (struct ghp_onednn_operand){.argument = DNNL_ARG_BIAS, .where = GHP_ONEDNN_BIAS};
    return ghp_onednn_layout_open(1, channels, dnnl_a, dnnl_f32, &operands[3].plain);
}

/* The library's reference code is not faster than ghp's loops, and allocates. Its kernels for 1 x 1 windows with
 * strides copy pixels in whole vectors: if the channels fill no vector, they write past their memory and make wrong
 * weight gradients (seen with oneDNN 2.6 on AVX2). */
static bool worth_having(const struct ghp_local *local, const_dnnl_primitive_desc_t described)
{
    const char *name = ghp_onednn_implementation(described);
    bool strided = local->window.stride_h > 1 || local->window.stride_w > 1;

    if (strided && local->c % 16 != 0 && strncmp(name, "jit_1x1", 7) == 0) return false;
    return strncmp(name, "ref", 3) != 0;
}

/* What a walk over the ways that the library offers does with each. */
struct walk {
    struct ghp_onednn_kernel *kernel; /* empty */
    struct ghp_onednn_operand operands[GHP_ONEDNN_OPERANDS];
    dnnl_primitive_attr_t attributes;
    struct ghp_kernel_spec spec;
    const char *wanted;           /* fill the kernel with the way of this name; NULL: the first */
    bool loosely;                 /* whatever is reordered */
    struct ghp_algorithms *names; /* not NULL: only add each way's name */
    bool filled;
};

static bool is_named(const char *name, const char *wanted, bool loosely)
{
    if (!loosely) return strcmp(name, wanted) == 0;
    return strcspn(name, "+") == strcspn(wanted, "+") &&
           strncmp(name, wanted, strcspn(name, "+")) == 0;
}

static enum ghp_status visit(struct walk *walk, const_dnnl_primitive_desc_t described)
{
    char name[GHP_ALGORITHM_BYTES];
    ghp_onednn_kernel_name(described, walk->operands, name);
    if (walk->names != NULL) {
        ghp_onednn_add_name(walk->names, name);
        return GHP_OK;
    }
    if (walk->wanted != NULL && !is_named(name, walk->wanted, walk->loosely)) return GHP_OK;
    GHP_TRY(ghp_onednn_kernel_fill(walk->kernel, described, walk->operands));
    walk->filled = true;
    return GHP_OK;
}

static enum ghp_status walk_variants(struct walk *walk)
{
    const struct ghp_kernel *kernel = &walk->kernel->base;
    const struct ghp_onednn *library = kernel->backend->library;
    struct ghp_onednn_variant list[MAX_VARIANTS];
    enum ghp_status status = GHP_OK;
    int n = variants_of(kernel, walk->spec, list);
    GHP_TRY_GOTO(status, operands_of(kernel, walk->spec, walk->operands), done);
    GHP_TRY_GOTO(status, ghp_onednn_attributes(&walk->attributes), done);
    if (walk->spec.relu) GHP_TRY_GOTO(status, ghp_onednn_append_relu(walk->attributes), done);
    for (int i = 0; i < n && status == GHP_OK && !walk->filled; i++) {
        dnnl_primitive_desc_t described = NULL;
        status = ghp_onednn_conv_describe(library->engine, &kernel->local, kernel->pass, list[i],
                                          walk->attributes, &described);
        if (status != GHP_OK || described == NULL) continue;
        if (worth_having(&kernel->local, described)) status = visit(walk, described);
        dnnl_primitive_desc_destroy(described);
    }
done:
    if (walk->attributes != NULL) dnnl_primitive_attr_destroy(walk->attributes);
    walk->attributes = NULL;
    ghp_onednn_operands_close(walk->operands);
    memset(walk->operands, 0, sizeof walk->operands);
    return status;
}

/* Unfolding reads plain activations. */
static bool is_plain(struct ghp_kernel_spec spec)
{
    return !spec.x && !spec.y;
}

enum ghp_status ghp_onednn_conv_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                        enum ghp_pass pass, struct ghp_onednn_wish wish,
                                        struct ghp_onednn_kernel **kernel)
{
    const char *algorithm = wish.algorithm;
    struct walk walk = {.wanted = algorithm, .spec = wish.spec};
    bool im2col = algorithm == NULL
                      ? pass == GHP_PASS_BACKWARD_WEIGHT && unfolding_pays(backend, local)
                      : strncmp(algorithm, GHP_ONEDNN_IM2COL, strlen(GHP_ONEDNN_IM2COL)) == 0;
    if (im2col && can_im2col(local, pass) && is_plain(wish.spec))
        return ghp_onednn_im2col_prepare(backend, local, wish.spec.w, kernel);
    GHP_TRY(ghp_onednn_kernel_open(backend, local, pass, &walk.kernel));
    enum ghp_status status = walk_variants(&walk);
    if (status == GHP_OK && !walk.filled && algorithm != NULL) {
        walk.loosely = true;
        status = walk_variants(&walk);
    }
    if (status == GHP_OK && walk.filled)
        *kernel = walk.kernel;
    else
        ghp_onednn_kernel_close(walk.kernel);
    return status;
}

/* The name that an unfolding kernel has. */
static enum ghp_status add_unfolding(struct ghp_backend *backend, const struct ghp_local *local,
                                     bool nchw16c, struct ghp_algorithms *names)
{
    struct ghp_onednn_kernel *kernel = NULL;
    GHP_TRY(ghp_onednn_im2col_prepare(backend, local, nchw16c, &kernel));
    if (kernel != NULL) ghp_onednn_add_name(names, kernel->name);
    ghp_onednn_kernel_close(kernel);
    return GHP_OK;
}

enum ghp_status ghp_onednn_conv_algorithms(struct ghp_backend *backend,
                                           const struct ghp_local *local, enum ghp_pass pass,
                                           struct ghp_kernel_spec spec,
                                           struct ghp_algorithms *names)
{
    struct walk walk = {.names = names, .spec = spec};
    bool can = can_im2col(local, pass) && is_plain(spec);
    bool first = can && unfolding_pays(backend, local);
    if (first) GHP_TRY(add_unfolding(backend, local, spec.w, names));
    GHP_TRY(ghp_onednn_kernel_open(backend, local, pass, &walk.kernel));
    enum ghp_status status = walk_variants(&walk);
    ghp_onednn_kernel_close(walk.kernel);
    if (status == GHP_OK && !first && can) status = add_unfolding(backend, local, spec.w, names);
    return status;
}
