/* executor/backend_onednn_conv.c - convolutions, and which algorithm and layout each shape gets.
 *
 * Measured on one core with AVX-512 (VGG and ResNet shapes): direct convolutions on plain N,H,W,C tensors are as fast as
 * on blocked ones and need no reorders of activations, except forward on images of at most 4 x 4, which blocked layouts
 * do 1.5-3 times as fast. Winograd (blocked only; not for `exact`) is up to 2.4 times as fast where it has work enough
 * to pay for transforming the weights: see winograd_pays. */
#include "executor/backend_onednn_private.h"

#include <string.h>

struct description { /* one way to compute a pass */
    dnnl_alg_kind_t algorithm;
    bool blocked; /* activations in whatever layout the library likes best */
};

struct sizes { /* a convolution in oneDNN's terms */
    dnnl_dims_t x, w, y, stride, dilation, pad_begin, pad_end;
    bool grouped; /* w has five dimensions: g, k, c, r, s */
};

static struct sizes sizes_of(const struct ghp_local *l)
{
    const struct ghp_window *win = &l->window;
    struct sizes z = {.x = {l->n, l->c, l->h, l->w},
                      .y = {l->n, l->k, l->p, l->q},
                      .stride = {win->stride_h, win->stride_w},
                      .dilation = {win->dilation_h - 1, win->dilation_w - 1},
                      .pad_begin = {win->pad_top, win->pad_left},
                      .pad_end = {win->pad_bottom, win->pad_right},
                      .grouped = win->groups > 1};
    const dnnl_dims_t grouped = {win->groups, l->k / win->groups, l->c / win->groups, win->r,
                                 win->s};
    const dnnl_dims_t whole = {l->k, l->c, win->r, win->s};
    memcpy(z.w, z.grouped ? grouped : whole, sizeof z.w);
    return z;
}

/* 4 x 4 outputs a tile, 36 products of weights for 9: worth it with enough tiles to share the transformed weights, tiles
 * mostly inside the image, and channels enough to hide the tiles' own transforms. */
static bool winograd_pays(const struct ghp_local *l, enum ghp_pass pass)
{
    const struct ghp_window *w = &l->window;
    bool fits = w->r == 3 && w->s == 3 && w->stride_h == 1 && w->stride_w == 1 &&
                w->dilation_h == 1 && w->dilation_w == 1 && w->groups == 1;
    int64_t tiles = l->n * ((l->p + 3) / 4) * ((l->q + 3) / 4);
    int64_t outputs = l->n * l->p * l->q, least = pass == GHP_PASS_BACKWARD_WEIGHT ? 4 : 8;
    return fits && l->c >= 32 && l->k >= 32 && tiles >= 32 && outputs >= least * tiles;
}

/* The direct weight gradient takes its time per image row: on images of at most 4 x 4, 5 times as long as a product. */
static bool unfolding_pays(const struct ghp_backend *backend, const struct ghp_local *l)
{
    bool winograd = !backend->config.exact && winograd_pays(l, GHP_PASS_BACKWARD_WEIGHT);
    return !winograd && l->window.groups == 1 && l->p * l->q <= 16 && l->c >= 16 && l->k >= 16;
}

/* Ways to try, best first. */
static int candidates(const struct ghp_kernel *kernel, struct description *list)
{
    const struct ghp_local *l = &kernel->local;
    bool small = kernel->pass == GHP_PASS_FORWARD && l->p * l->q <= 16;
    int n = 0;
    if (!kernel->backend->config.exact && winograd_pays(l, kernel->pass))
        list[n++] = (struct description){dnnl_convolution_winograd, true};
    list[n++] = (struct description){dnnl_convolution_direct, small};
    list[n++] = (struct description){dnnl_convolution_direct, !small};
    return n;
}

static void layouts(const struct sizes *z, bool blocked, dnnl_memory_desc_t md[3])
{
    dnnl_format_tag_t activation = blocked ? dnnl_format_tag_any : dnnl_nhwc;
    dnnl_memory_desc_init_by_tag(&md[0], 4, z->x, dnnl_f32, activation);
    dnnl_memory_desc_init_by_tag(&md[1], z->grouped ? 5 : 4, z->w, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&md[2], 4, z->y, dnnl_f32, activation);
}

/* The primitive of a pass; *made stays NULL where the library has none. */
static enum ghp_status describe(const struct ghp_kernel *kernel, struct description how,
                                dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *made)
{
    const struct ghp_onednn *library = kernel->backend->library;
    struct sizes z = sizes_of(&kernel->local);
    dnnl_convolution_desc_t forward, backward;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_memory_desc_t md[3];
    dnnl_status_t status;
    layouts(&z, how.blocked, md);
    status = dnnl_dilated_convolution_forward_desc_init(
        &forward, dnnl_forward_training, how.algorithm, &md[0], &md[1], NULL, &md[2], z.stride,
        z.dilation, z.pad_begin, z.pad_end);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&hint, &forward, attributes, library->engine, NULL);
    if (status != dnnl_success) return GHP_OK;
    if (kernel->pass == GHP_PASS_FORWARD) {
        *made = hint;
        return GHP_OK;
    }
    if (kernel->pass == GHP_PASS_BACKWARD_DATA)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &backward, how.algorithm, &md[0], &md[1], &md[2], z.stride, z.dilation, z.pad_begin,
            z.pad_end);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &backward, how.algorithm, &md[0], &md[1], NULL, &md[2], z.stride, z.dilation,
            z.pad_begin, z.pad_end);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(made, &backward, attributes, library->engine, hint);
    if (status != dnnl_success) *made = NULL;
    dnnl_primitive_desc_destroy(hint);
    return GHP_OK;
}

static void operands_of(const struct ghp_kernel *kernel, struct ghp_onednn_operand operands[3])
{
    struct sizes z = sizes_of(&kernel->local);
    const struct ghp_onednn_operand forward[3] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, GHP_ONEDNN_X, {0}, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, GHP_ONEDNN_W, {0}, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, GHP_ONEDNN_Y, {0}, true}};
    const struct ghp_onednn_operand data[3] = {
        {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, GHP_ONEDNN_DX, {0}, true},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, GHP_ONEDNN_W, {0}, false},
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, GHP_ONEDNN_DY, {0}, false}};
    const struct ghp_onednn_operand weight[3] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, GHP_ONEDNN_X, {0}, false},
        {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, GHP_ONEDNN_DW, {0}, true},
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, GHP_ONEDNN_DY, {0}, false}};
    memcpy(operands,
           kernel->pass == GHP_PASS_FORWARD         ? forward
           : kernel->pass == GHP_PASS_BACKWARD_DATA ? data
                                                    : weight,
           sizeof forward);
    dnnl_memory_desc_init_by_tag(&operands[0].plain, 4, z.x, dnnl_f32, dnnl_nhwc);
    dnnl_memory_desc_init_by_tag(&operands[1].plain, z.grouped ? 5 : 4, z.w, dnnl_f32,
                                 z.grouped ? dnnl_goihw : dnnl_oihw);
    dnnl_memory_desc_init_by_tag(&operands[2].plain, 4, z.y, dnnl_f32, dnnl_nhwc);
}

/* The library's reference code is no faster than ghp's loops, and allocates. */
static bool worth_having(dnnl_primitive_desc_t described)
{
    return described != NULL && strncmp(ghp_onednn_implementation(described), "ref", 3) != 0;
}

enum ghp_status ghp_onednn_conv_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                        enum ghp_pass pass, struct ghp_onednn_kernel **kernel)
{
    struct ghp_onednn_kernel *made = NULL;
    struct ghp_onednn_operand operands[GHP_ONEDNN_OPERANDS];
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t described = NULL;
    struct description list[3];
    enum ghp_status status = GHP_OK;
    if (pass == GHP_PASS_BACKWARD_WEIGHT && unfolding_pays(backend, local))
        return ghp_onednn_unfold_prepare(backend, local, kernel);
    GHP_TRY(ghp_onednn_kernel_open(backend, local, pass, &made));
    GHP_TRY_GOTO(status, ghp_onednn_attributes(&attributes), done);
    operands_of(&made->base, operands);
    int n = candidates(&made->base, list);
    for (int i = 0; i < n; i++) {
        GHP_TRY_GOTO(status, describe(&made->base, list[i], attributes, &described), done);
        if (worth_having(described)) break;
        if (described != NULL) dnnl_primitive_desc_destroy(described);
        described = NULL;
    }
    if (described == NULL) goto done;
    GHP_TRY_GOTO(status, ghp_onednn_kernel_fill(made, described, operands), done);
    *kernel = made;
    made = NULL;
done:
    if (described != NULL) dnnl_primitive_desc_destroy(described);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    ghp_onednn_kernel_close(made);
    return status;
}
