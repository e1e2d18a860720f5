/* executor/backend/onednn/onednn.c - see onednn.h. What differs between the generations stands between #if and
 * #endif, once each. */
#include "executor/backend/onednn/onednn.h"

#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_onednn_status(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success) return GHP_OK;
    if (status == dnnl_out_of_memory) return GHP_NO_MEMORY();
    return GHP_FAIL(
        GHP_ERR_BACKEND,
        "oneDNN's status is %d for '%.80s'; use '--backend reference' to continue without oneDNN",
        (int)status, what);
}

const char *ghp_onednn_implementation(const_dnnl_primitive_desc_t described)
{
    const char *name = NULL;
    if (dnnl_primitive_desc_query(described, dnnl_query_impl_info_str, 0, (void *)&name) !=
            dnnl_success ||
        name == NULL)
        return "unnamed";
    return name;
}

enum ghp_status ghp_onednn_attributes(dnnl_primitive_attr_t *attributes)
{
    GHP_TRY(GHP_ONEDNN(dnnl_primitive_attr_create(attributes)));
    return GHP_ONEDNN(
        dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user));
}

static dnnl_status_t append_relu(dnnl_post_ops_t after)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(after, dnnl_eltwise_relu, 0, 0);
#else
    return dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0);
#endif
}

enum ghp_status ghp_onednn_append_relu(dnnl_primitive_attr_t attributes)
{
    dnnl_post_ops_t after = NULL;
    GHP_TRY(GHP_ONEDNN(dnnl_post_ops_create(&after)));
    enum ghp_status status = GHP_ONEDNN(append_relu(after));
    if (status == GHP_OK) status = GHP_ONEDNN(dnnl_primitive_attr_set_post_ops(attributes, after));
    dnnl_post_ops_destroy(after);
    return status;
}

enum ghp_status ghp_onednn_engine_open(dnnl_engine_t *engine)
{
    GHP_TRY(GHP_ONEDNN(dnnl_set_primitive_cache_capacity(0)));
    return GHP_ONEDNN(dnnl_engine_create(engine, dnnl_cpu, 0));
}

bool ghp_onednn_has_bf16(void)
{
    const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    const unsigned bf16 = (unsigned)dnnl_cpu_isa_avx512_core_bf16;
    return (isa & bf16) == bf16;
}

struct ghp_onednn_conv ghp_onednn_conv_of(const struct ghp_local *l)
{
    const struct ghp_window *win = &l->window;
    struct ghp_onednn_conv conv = {.x = {l->n, l->c, l->h, l->w},
                                   .y = {l->n, l->k, l->p, l->q},
                                   .stride = {win->stride_h, win->stride_w},
                                   .dilation = {win->dilation_h - 1, win->dilation_w - 1},
                                   .pad_begin = {win->pad_top, win->pad_left},
                                   .pad_end = {win->pad_bottom, win->pad_right},
                                   .grouped = win->groups > 1};
    const dnnl_dims_t grouped = {win->groups, l->k / win->groups, l->c / win->groups, win->r,
                                 win->s};
    const dnnl_dims_t whole = {l->k, l->c, win->r, win->s};
    memcpy(conv.w, conv.grouped ? grouped : whole, sizeof conv.w);
    return conv;
}

struct conv_layouts {
    ghp_onednn_layout x, w, y, bias; /* bias: NULL, or of a forward pass */
    ghp_onednn_layout read_w;        /* weights as a forward pass reads them */
};

static ghp_onednn_layout read_by(const struct ghp_onednn_matrices *m)
{
    return m->read_w != NULL ? m->read_w : m->w;
}

#if DNNL_VERSION_MAJOR >= 3

enum ghp_status ghp_onednn_layout_open(int n_dims, const dnnl_dims_t dims, dnnl_format_tag_t tag,
                                       dnnl_data_type_t type, ghp_onednn_layout *layout)
{
    return GHP_ONEDNN(dnnl_memory_desc_create_with_tag(layout, n_dims, dims, type, tag));
}

void ghp_onednn_layout_close(ghp_onednn_layout layout)
{
    if (layout != NULL) dnnl_memory_desc_destroy(layout);
}

/* The library's further implementations of what it has described. */
static enum ghp_status advance(dnnl_status_t made, int implementation,
                               dnnl_primitive_desc_t *described)
{
    if (made == dnnl_out_of_memory) return GHP_NO_MEMORY();
    if (made != dnnl_success) *described = NULL;
    for (int i = 0; i < implementation && *described != NULL; i++) {
        if (dnnl_primitive_desc_next_impl(*described) == dnnl_success) continue;
        dnnl_primitive_desc_destroy(*described);
        *described = NULL;
    }
    return GHP_OK;
}

/* The backward passes' hint is the forward pass; it is read again whenever the library continues with its next
 * implementation. */
static enum ghp_status describe_conv(dnnl_engine_t engine, const struct ghp_onednn_conv *c,
                                     const struct conv_layouts *md, enum ghp_pass pass,
                                     struct ghp_onednn_variant variant,
                                     dnnl_primitive_attr_t attributes,
                                     dnnl_primitive_desc_t *described)
{
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t made = dnnl_convolution_forward_primitive_desc_create(
        &hint, engine, dnnl_forward_training, variant.algorithm, md->x, md->read_w, md->bias, md->y,
        c->stride, c->dilation, c->pad_begin, c->pad_end, attributes);
    if (made != dnnl_success) return advance(made, 0, described);
    if (pass == GHP_PASS_FORWARD) {
        *described = hint;
        return advance(made, variant.implementation, described);
    }
    if (pass == GHP_PASS_BACKWARD_DATA)
        made = dnnl_convolution_backward_data_primitive_desc_create(
            described, engine, variant.algorithm, md->x, md->w, md->y, c->stride, c->dilation,
            c->pad_begin, c->pad_end, hint, attributes);
    else
        made = dnnl_convolution_backward_weights_primitive_desc_create(
            described, engine, variant.algorithm, md->x, md->w, NULL, md->y, c->stride, c->dilation,
            c->pad_begin, c->pad_end, hint, attributes);
    enum ghp_status status = advance(made, variant.implementation, described);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

enum ghp_status ghp_onednn_matmul_describe(dnnl_engine_t engine,
                                           const struct ghp_onednn_matrices *m, int implementation,
                                           dnnl_primitive_attr_t attributes,
                                           dnnl_primitive_desc_t *described)
{
    *described = NULL;
    dnnl_status_t status =
        dnnl_matmul_primitive_desc_create(described, engine, m->x, m->w, NULL, m->y, attributes);
    return advance(status, implementation, described);
}

enum ghp_status ghp_onednn_inner_describe(dnnl_engine_t engine, const struct ghp_onednn_matrices *m,
                                          enum ghp_pass pass, int implementation,
                                          dnnl_primitive_attr_t attributes,
                                          dnnl_primitive_desc_t *described)
{
    dnnl_primitive_desc_t hint = NULL;
    *described = NULL;
    dnnl_status_t made = dnnl_inner_product_forward_primitive_desc_create(
        &hint, engine, dnnl_forward_training, m->x, read_by(m), NULL, m->y, attributes);
    if (made != dnnl_success) return advance(made, 0, described);
    if (pass == GHP_PASS_FORWARD) {
        *described = hint;
        return advance(made, implementation, described);
    }
    if (pass == GHP_PASS_BACKWARD_DATA)
        made = dnnl_inner_product_backward_data_primitive_desc_create(described, engine, m->x, m->w,
                                                                      m->y, hint, attributes);
    else
        made = dnnl_inner_product_backward_weights_primitive_desc_create(
            described, engine, m->x, m->w, NULL, m->y, hint, attributes);
    enum ghp_status status = advance(made, implementation, described);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

#else

enum ghp_status ghp_onednn_layout_open(int n_dims, const dnnl_dims_t dims, dnnl_format_tag_t tag,
                                       dnnl_data_type_t type, ghp_onednn_layout *layout)
{
    dnnl_memory_desc_t *made = ghp_alloc(1, sizeof *made);
    if (made == NULL) return GHP_NO_MEMORY();
    enum ghp_status status =
        GHP_ONEDNN(dnnl_memory_desc_init_by_tag(made, n_dims, dims, type, tag));
    if (status == GHP_OK)
        *layout = made;
    else
        free(made);
    return status;
}

void ghp_onednn_layout_close(ghp_onednn_layout layout)
{
    free(layout);
}

/* The implementation of that number of a described operation. */
static enum ghp_status choose(dnnl_engine_t engine, const_dnnl_op_desc_t op,
                              dnnl_primitive_desc_t hint, int implementation,
                              dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *described)
{
    dnnl_primitive_desc_iterator_t at = NULL;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&at, op, attributes, engine, hint);
    if (status == dnnl_out_of_memory) return GHP_NO_MEMORY();
    for (int i = 0; i < implementation && status == dnnl_success; i++)
        status = dnnl_primitive_desc_iterator_next(at);
    if (status == dnnl_success) *described = dnnl_primitive_desc_iterator_fetch(at);
    if (at != NULL) dnnl_primitive_desc_iterator_destroy(at);
    return GHP_OK;
}

static enum ghp_status describe_conv(dnnl_engine_t engine, const struct ghp_onednn_conv *c,
                                     const struct conv_layouts *md, enum ghp_pass pass,
                                     struct ghp_onednn_variant variant,
                                     dnnl_primitive_attr_t attributes,
                                     dnnl_primitive_desc_t *described)
{
    dnnl_convolution_desc_t forward, backward;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &forward, dnnl_forward_training, variant.algorithm, md->x, md->read_w, md->bias, md->y,
        c->stride, c->dilation, c->pad_begin, c->pad_end);
    if (status != dnnl_success) return GHP_OK;
    if (pass == GHP_PASS_FORWARD)
        return choose(engine, &forward, NULL, variant.implementation, attributes, described);
    GHP_TRY(choose(engine, &forward, NULL, 0, attributes, &hint));
    if (hint == NULL) return GHP_OK;
    if (pass == GHP_PASS_BACKWARD_DATA)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &backward, variant.algorithm, md->x, md->w, md->y, c->stride, c->dilation, c->pad_begin,
            c->pad_end);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &backward, variant.algorithm, md->x, md->w, NULL, md->y, c->stride, c->dilation,
            c->pad_begin, c->pad_end);
    enum ghp_status made =
        status == dnnl_success
            ? choose(engine, &backward, hint, variant.implementation, attributes, described)
            : GHP_OK;
    dnnl_primitive_desc_destroy(hint);
    return made;
}

enum ghp_status ghp_onednn_matmul_describe(dnnl_engine_t engine,
                                           const struct ghp_onednn_matrices *m, int implementation,
                                           dnnl_primitive_attr_t attributes,
                                           dnnl_primitive_desc_t *described)
{
    dnnl_matmul_desc_t product;
    *described = NULL;
    if (dnnl_matmul_desc_init(&product, m->x, m->w, NULL, m->y) != dnnl_success) return GHP_OK;
    return choose(engine, &product, NULL, implementation, attributes, described);
}

enum ghp_status ghp_onednn_inner_describe(dnnl_engine_t engine, const struct ghp_onednn_matrices *m,
                                          enum ghp_pass pass, int implementation,
                                          dnnl_primitive_attr_t attributes,
                                          dnnl_primitive_desc_t *described)
{
    dnnl_inner_product_desc_t forward, backward;
    dnnl_primitive_desc_t hint = NULL;
    *described = NULL;
    if (dnnl_inner_product_forward_desc_init(&forward, dnnl_forward_training, m->x, read_by(m),
                                             NULL, m->y) != dnnl_success)
        return GHP_OK;
    if (pass == GHP_PASS_FORWARD)
        return choose(engine, &forward, NULL, implementation, attributes, described);
    GHP_TRY(choose(engine, &forward, NULL, 0, attributes, &hint));
    if (hint == NULL) return GHP_OK;
    dnnl_status_t status =
        pass == GHP_PASS_BACKWARD_DATA
            ? dnnl_inner_product_backward_data_desc_init(&backward, m->x, m->w, m->y)
            : dnnl_inner_product_backward_weights_desc_init(&backward, m->x, m->w, NULL, m->y);
    enum ghp_status made = status == dnnl_success ? choose(engine, &backward, hint, implementation,
                                                           attributes, described)
                                                  : GHP_OK;
    dnnl_primitive_desc_destroy(hint);
    return made;
}

#endif

static enum ghp_status open_layouts(const struct ghp_onednn_conv *conv, enum ghp_pass pass,
                                    struct ghp_onednn_variant variant, struct conv_layouts *md)
{
    const dnnl_dims_t channels = {conv->y[1]};
    const dnnl_format_tag_t activation = variant.activation;
    const dnnl_data_type_t type = variant.bf16 ? dnnl_bf16 : dnnl_f32;
    const dnnl_data_type_t w_type = pass == GHP_PASS_BACKWARD_WEIGHT ? dnnl_f32 : type;
    const int w_dims = conv->grouped ? 5 : 4;
    if (variant.bias) GHP_TRY(ghp_onednn_layout_open(1, channels, dnnl_a, dnnl_f32, &md->bias));
    GHP_TRY(ghp_onednn_layout_open(4, conv->x, activation, type, &md->x));
    GHP_TRY(ghp_onednn_layout_open(w_dims, conv->w, dnnl_format_tag_any, w_type, &md->w));
    GHP_TRY(ghp_onednn_layout_open(w_dims, conv->w, dnnl_format_tag_any, type, &md->read_w));
    return ghp_onednn_layout_open(4, conv->y, activation, type, &md->y);
}

enum ghp_status ghp_onednn_conv_describe(dnnl_engine_t engine, const struct ghp_local *local,
                                         enum ghp_pass pass, struct ghp_onednn_variant variant,
                                         dnnl_primitive_attr_t attributes,
                                         dnnl_primitive_desc_t *described)
{
    struct ghp_onednn_conv conv = ghp_onednn_conv_of(local);
    struct conv_layouts md = {0};
    *described = NULL;
    enum ghp_status status = open_layouts(&conv, pass, variant, &md);
    if (status == GHP_OK)
        status = describe_conv(engine, &conv, &md, pass, variant, attributes, described);
    ghp_onednn_layout_close(md.x);
    ghp_onednn_layout_close(md.w);
    ghp_onednn_layout_close(md.read_w);
    ghp_onednn_layout_close(md.y);
    ghp_onednn_layout_close(md.bias);
    return status;
}
