/* executor/backend/onednn/im2col.c - a convolution's weight gradient as a matrix product.
 *
 *     dw [k][c r s] = dy [n p q][k]^T  unfolded x [n p q][c r s]
 *
 * dy lies as the product wants it, and dw comes out as it is stored; unfolding costs r s copies of x, which is little
 * if images are small. If dw is blocked, columns are unfolded as [c / 16][r s][16 of c]: then blocks of 16 rows and 16
 * columns of the product are the blocks of dw, by one reorder. */
#include "executor/backend/onednn/backend_onednn_private.h"

#include <stdio.h>
#include <string.h>

enum ghp_status ghp_onednn_im2col_prepare(struct ghp_backend *backend,
                                          const struct ghp_local *local, bool nchw16c,
                                          struct ghp_onednn_kernel **kernel)
{
    struct ghp_onednn_kernel *made = NULL;
    const struct ghp_window *window = &local->window;
    const struct ghp_onednn_product product = {.n = local->n * local->p * local->q,
                                               .c = local->c * window->r * window->s,
                                               .k = local->k,
                                               .x_where = GHP_ONEDNN_SCRATCH,
                                               .nchw16c = nchw16c};
    bool filled = false;
    GHP_TRY(ghp_onednn_kernel_open(backend, local, GHP_PASS_BACKWARD_WEIGHT, &made));
    enum ghp_status status = ghp_onednn_product_fill(made, &product, &filled);
    if (status != GHP_OK || !filled) {
        ghp_onednn_kernel_close(made);
        return status;
    }
    char product_name[sizeof made->name];
    memcpy(product_name, made->name, sizeof product_name);
    snprintf(made->name, sizeof made->name, GHP_ONEDNN_IM2COL "%.50s", product_name);
    made->im2col = true;
    made->im2col_blocks = nchw16c;
    *kernel = made;
    return GHP_OK;
}

struct pixel { /* of the output */
    int64_t p, q;
};

struct job {
    const struct ghp_local *local;
    const void *x;
    void *unfolded;
    int64_t width; /* channels that stay together */
    /* one row, of what an output pixel sees of the image that begins at number `image` of x */
    void (*im2col)(const struct job *job, struct pixel at, int64_t image, int64_t row);
};

/* Functions for numbers of a type. The first puts a pixel's channels into a row: runs of `width` channels, each with
 * all places. The second makes what the window of an output pixel sees of one image, a row [c / width][r s][width]. */
#define IM2COL(type)                                                                               \
    static void spread_##type(const struct ghp_local *l, const type *from, int64_t width,          \
                              type *row)                                                           \
    {                                                                                              \
        int64_t places = l->window.r * l->window.s;                                                \
        for (int64_t run = 0; run < l->c / width; run++)                                           \
            for (int64_t c = 0; c < width; c++)                                                    \
                row[run * places * width + c] = from == NULL ? 0 : from[run * width + c];          \
    }                                                                                              \
    static void im2col_##type(const struct job *job, struct pixel at, int64_t image, int64_t row)  \
    {                                                                                              \
        const struct ghp_local *l = job->local;                                                    \
        const struct ghp_window *window = &l->window;                                              \
        int64_t places = window->r * window->s;                                                    \
        const type *x = (const type *)job->x + image;                                              \
        for (int64_t place = 0; place < places; place++) {                                         \
            int64_t h = at.p * window->stride_h - window->pad_top +                                \
                        place / window->s * window->dilation_h;                                    \
            int64_t w = at.q * window->stride_w - window->pad_left +                               \
                        place % window->s * window->dilation_w;                                    \
            bool inside = h >= 0 && h < l->h && w >= 0 && w < l->w;                                \
            spread_##type(l, inside ? x + (h * l->w + w) * l->c : NULL, job->width,                \
                          (type *)job->unfolded + row + place * job->width);                       \
        }                                                                                          \
    }
IM2COL(float)
IM2COL(uint16_t)
#undef IM2COL

static void im2col_part(void *context, struct ghp_part part)
{
    const struct job *job = context;
    const struct ghp_local *l = job->local;
    int64_t pixels = l->p * l->q, width = l->c * l->window.r * l->window.s;
    struct ghp_range rows = ghp_part_range(part, l->n * pixels, 1);
    for (int64_t row = rows.first; row < rows.end; row++)
        job->im2col(job, (struct pixel){row % pixels / l->q, row % l->q},
                    row / pixels * l->h * l->w * l->c, row * width);
}

void ghp_onednn_im2col(const struct ghp_onednn_kernel *kernel, const void *x, void *unfolded)
{
    bool bf16 = kernel->base.backend->config.element_bytes == 2;
    struct job job = {&kernel->base.local, x, unfolded,
                      kernel->im2col_blocks ? GHP_BLOCK_CHANNELS : 1,
                      bf16 ? im2col_uint16_t : im2col_float};
    ghp_parallel(kernel->base.parts, im2col_part, &job);
}
