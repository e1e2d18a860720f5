/* executor/backend/onednn/linear.c - linear layers on plain tensors: x [n][c], w [k][c], y [n][k]; n counts the
 * positions of all samples.
 *
 * Weights are far larger than activations, so in float they are never reordered; in bfloat16 they are rounded in any
 * case, into whatever order the primitive likes best, or ("+plain") in the order in which they lie, which the library
 * does several times as fast: the likelier way. A pass is a matrix product or the library's inner product. The choice
 * without measurements: for 8 rows and more the matrix product is 1.2-1.9 times as fast forward (one core); backward
 * the inner product is the faster. */
#include "executor/backend/onednn/backend_onednn_private.h"

#include <stdio.h>
#include <string.h>

enum { MATMUL_ROWS = 8, IMPLEMENTATIONS = 2 };
static const char MATMUL[] = "matmul:", PLAIN[] = "+plain";

/* One of the ways to compute a pass. */
struct variant {
    bool matmul, plain; /* plain: weights are rounded in the order in which they lie */
    int implementation;
};

struct shape { /* of an operand, as the product sees it */
    int64_t rows, columns;
    bool transposed; /* lies column by column */
};

struct problem {
    const struct ghp_onednn_kernel *kernel;
    const struct ghp_onednn_product *product;
    dnnl_primitive_attr_t attributes;
    struct ghp_onednn_operand operands[GHP_ONEDNN_OPERANDS]; /* of the way at hand */
    struct shape shapes[3];                                  /* of these */
    struct variant variant;
};

/* As it lies, in numbers of that type. */
static enum ghp_status open_layout(struct shape shape, dnnl_data_type_t type,
                                   ghp_onednn_layout *layout)
{
    dnnl_dims_t dims = {shape.rows, shape.columns};
    return ghp_onednn_layout_open(2, dims, shape.transposed ? dnnl_ba : dnnl_ab, type, layout);
}

static bool is_bf16(const struct problem *p)
{
    return ghp_onednn_type(p->kernel->base.backend) == dnnl_bf16;
}

/* As the primitive is to have it. */
static enum ghp_status open_operand(const struct problem *p, struct shape shape,
                                    struct ghp_onednn_operand *operand)
{
    dnnl_dims_t dims = {shape.rows, shape.columns};
    if (operand->where == GHP_ONEDNN_DW) return open_layout(shape, dnnl_f32, &operand->plain);
    if (operand->where == GHP_ONEDNN_W && is_bf16(p) && !p->variant.plain)
        return ghp_onednn_layout_open(2, dims, dnnl_format_tag_any, dnnl_bf16, &operand->plain);
    return open_layout(shape, ghp_onednn_type(p->kernel->base.backend), &operand->plain);
}

static enum ghp_status open_operands(struct problem *p)
{
    for (int i = 0; i < 3; i++)
        GHP_TRY(open_operand(p, p->shapes[i], &p->operands[i]));
    return GHP_OK;
}

/* Operands in the order x, w, y of y = x w. */
static enum ghp_status matmul_operands(struct problem *p)
{
    const struct ghp_onednn_product *z = p->product;
    const enum ghp_pass pass = p->kernel->base.pass;
    const bool forward = pass == GHP_PASS_FORWARD, data = pass == GHP_PASS_BACKWARD_DATA;
    const enum ghp_onednn_where x = forward ? z->x_where : GHP_ONEDNN_DY;
    const enum ghp_onednn_where w = forward || data ? GHP_ONEDNN_W : z->x_where;
    const enum ghp_onednn_where y = forward ? GHP_ONEDNN_Y : data ? z->x_where : GHP_ONEDNN_DW;
    const struct shape shapes[3][3] = {
        {{z->n, z->c, false}, {z->c, z->k, true}, {z->n, z->k, false}},  /* y = x w^T */
        {{z->n, z->k, false}, {z->k, z->c, false}, {z->n, z->c, false}}, /* dx = dy w */
        {{z->k, z->n, true}, {z->n, z->c, false}, {z->k, z->c, false}}}; /* dw = dy^T x */
    memcpy(p->shapes, shapes[forward ? 0 : data ? 1 : 2], sizeof p->shapes);
    p->operands[0] = (struct ghp_onednn_operand){DNNL_ARG_SRC, dnnl_query_src_md, x, NULL, false};
    p->operands[1] =
        (struct ghp_onednn_operand){DNNL_ARG_WEIGHTS, dnnl_query_weights_md, w, NULL, false};
    p->operands[2] = (struct ghp_onednn_operand){DNNL_ARG_DST, dnnl_query_dst_md, y, NULL, true};
    return open_operands(p);
}

static enum ghp_status inner_operands(struct problem *p)
{
    const struct ghp_onednn_product *z = p->product;
    const enum ghp_pass pass = p->kernel->base.pass;
    const bool forward = pass == GHP_PASS_FORWARD, data = pass == GHP_PASS_BACKWARD_DATA;
    const struct shape shapes[3] = {{z->n, z->c, false}, {z->k, z->c, false}, {z->n, z->k, false}};
    p->operands[0] = (struct ghp_onednn_operand){data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC,
                                                 data ? dnnl_query_diff_src_md : dnnl_query_src_md,
                                                 z->x_where, NULL, data};
    p->operands[1] =
        forward || data
            ? (struct ghp_onednn_operand){DNNL_ARG_WEIGHTS, dnnl_query_weights_md, GHP_ONEDNN_W,
                                          NULL, false}
            : (struct ghp_onednn_operand){DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md,
                                          GHP_ONEDNN_DW, NULL, true};
    p->operands[2] =
        forward
            ? (struct ghp_onednn_operand){DNNL_ARG_DST, dnnl_query_dst_md, GHP_ONEDNN_Y, NULL, true}
            : (struct ghp_onednn_operand){DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, GHP_ONEDNN_DY,
                                          NULL, false};
    memcpy(p->shapes, shapes, sizeof p->shapes);
    return open_operands(p);
}

/* Weights that are rounded lie in float and in order. */
static enum ghp_status widen_weights(struct problem *p)
{
    struct ghp_onednn_operand *w = &p->operands[1];
    if (w->where != GHP_ONEDNN_W || !is_bf16(p)) return GHP_OK;
    ghp_onednn_layout_close(w->plain);
    w->plain = NULL;
    return open_layout(p->shapes[1], dnnl_f32, &w->plain);
}

static enum ghp_status describe(struct problem *p, dnnl_primitive_desc_t *described)
{
    const struct variant variant = p->variant;
    const struct ghp_onednn *library = p->kernel->base.backend->library;
    *described = NULL;
    GHP_TRY(variant.matmul ? matmul_operands(p) : inner_operands(p));
    struct ghp_onednn_matrices m = {
        .x = p->operands[0].plain, .w = p->operands[1].plain, .y = p->operands[2].plain};
    if (variant.matmul)
        return ghp_onednn_matmul_describe(library->engine, &m, variant.implementation,
                                          p->attributes, described);
    if (p->operands[1].where == GHP_ONEDNN_DW)
        GHP_TRY(open_layout(p->shapes[1], ghp_onednn_type(p->kernel->base.backend), &m.read_w));
    enum ghp_status status =
        ghp_onednn_inner_describe(library->engine, &m, p->kernel->base.pass, variant.implementation,
                                  p->attributes, described);
    ghp_onednn_layout_close(m.read_w);
    return status;
}

/* The product is made plain, and dw, operand 1 of an inner product, reordered into its blocks. */
static enum ghp_status block_gradient(struct problem *p)
{
    const dnnl_dims_t dims = {p->product->k, p->product->c};
    ghp_onednn_layout nchw16c = NULL;
    GHP_ASSERT(p->operands[1].where == GHP_ONEDNN_DW);
    GHP_TRY(ghp_onednn_layout_open(2, dims, dnnl_AB16b16a, dnnl_f32, &nchw16c));
    ghp_onednn_layout_close(p->operands[1].plain);
    p->operands[1].plain = nchw16c;
    return GHP_OK;
}

static void name_of(const struct problem *p, const_dnnl_primitive_desc_t described,
                    char name[GHP_ALGORITHM_BYTES])
{
    char library[GHP_ALGORITHM_BYTES];
    ghp_onednn_kernel_name(described, p->operands, library);
    snprintf(name, GHP_ALGORITHM_BYTES, "%s%.48s%s", p->variant.matmul ? MATMUL : "", library,
             p->variant.plain ? PLAIN : "");
}

/* Adds the way's name, or fills the kernel if it is the wanted one. */
static enum ghp_status try_variant(struct problem *p, struct ghp_onednn_kernel *kernel,
                                   bool *filled)
{
    dnnl_primitive_desc_t described = NULL;
    char name[GHP_ALGORITHM_BYTES];
    enum ghp_status status = describe(p, &described);
    bool usable = status == GHP_OK && described != NULL &&
                  strncmp(ghp_onednn_implementation(described), "ref", 3) != 0;
    if (usable) {
        name_of(p, described, name);
        if (p->product->names != NULL) {
            ghp_onednn_add_name(p->product->names, name);
        } else if (p->product->wanted == NULL || strcmp(p->product->wanted, name) == 0) {
            status = p->product->nchw16c ? block_gradient(p) : widen_weights(p);
            if (status == GHP_OK) status = ghp_onednn_kernel_fill(kernel, described, p->operands);
            memcpy(kernel->name, name, sizeof name);
            *filled = status == GHP_OK;
        }
    }
    if (described != NULL) dnnl_primitive_desc_destroy(described);
    ghp_onednn_operands_close(p->operands);
    memset(p->operands, 0, sizeof p->operands);
    return status;
}

enum ghp_status ghp_onednn_product_fill(struct ghp_onednn_kernel *kernel,
                                        const struct ghp_onednn_product *product, bool *filled)
{
    struct problem p = {.kernel = kernel, .product = product};
    bool first = kernel->base.pass == GHP_PASS_FORWARD && product->n >= MATMUL_ROWS;
    bool rounds = is_bf16(&p) && kernel->base.pass != GHP_PASS_BACKWARD_WEIGHT;
    int ways = (rounds ? 2 : 1) * 2 * IMPLEMENTATIONS;
    enum ghp_status status = ghp_onednn_attributes(&p.attributes);
    *filled = false;
    for (int i = 0; i < ways && status == GHP_OK && !*filled; i++) {
        p.variant = (struct variant){.matmul = i % 2 == 0 ? first : !first,
                                     .plain = rounds && i / 2 < IMPLEMENTATIONS,
                                     .implementation = i / 2 % IMPLEMENTATIONS};
        if (p.variant.matmul && product->x_where == GHP_ONEDNN_SCRATCH) continue;
        status = try_variant(&p, kernel, filled);
    }
    if (p.attributes != NULL) dnnl_primitive_attr_destroy(p.attributes);
    return status;
}

static struct ghp_onednn_product product_of(const struct ghp_local *local, enum ghp_pass pass)
{
    return (struct ghp_onednn_product){.n = local->n * local->h,
                                       .c = local->c,
                                       .k = local->k,
                                       .x_where = pass == GHP_PASS_BACKWARD_DATA ? GHP_ONEDNN_DX
                                                                                 : GHP_ONEDNN_X};
}

enum ghp_status ghp_onednn_linear_prepare(struct ghp_backend *backend,
                                          const struct ghp_local *local, enum ghp_pass pass,
                                          const char *algorithm, struct ghp_onednn_kernel **kernel)
{
    struct ghp_onednn_kernel *made = NULL;
    struct ghp_onednn_product product = product_of(local, pass);
    bool filled = false;
    product.wanted = algorithm;
    GHP_TRY(ghp_onednn_kernel_open(backend, local, pass, &made));
    enum ghp_status status = ghp_onednn_product_fill(made, &product, &filled);
    if (status == GHP_OK && filled)
        *kernel = made;
    else
        ghp_onednn_kernel_close(made);
    return status;
}

enum ghp_status ghp_onednn_linear_algorithms(struct ghp_backend *backend,
                                             const struct ghp_local *local, enum ghp_pass pass,
                                             struct ghp_algorithms *names)
{
    struct ghp_onednn_kernel *empty = NULL;
    struct ghp_onednn_product product = product_of(local, pass);
    bool filled = false;
    product.names = names;
    GHP_TRY(ghp_onednn_kernel_open(backend, local, pass, &empty));
    enum ghp_status status = ghp_onednn_product_fill(empty, &product, &filled);
    ghp_onednn_kernel_close(empty);
    return status;
}
