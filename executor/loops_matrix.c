/* executor/loops_matrix.c - conv2d and linear in plain loops.
 *
 * The reference for every other convolution, and the oneDNN backend's fallback. Forward and weight gradient are cut by
 * output channels, the data gradient by input rows, so no sum crosses parts. */
#include "executor/backend_private.h"

#include <string.h>

struct shape { /* a convolution's sizes in one place */
    int64_t n, c, h, w, k, p, q, r, s;
    int64_t stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    int64_t groups, group_c, group_k; /* channels of one group */
};

struct block { /* output channels k .. k + rows - 1 of sample n, row p */
    int64_t n, p, k, rows;
};

struct pixel {
    int64_t n, h, w;
};

struct place { /* of a weight */
    int64_t k, r, s;
};

struct scaled_rows { /* vectors `stride` elements apart, their factors `step` apart */
    int64_t rows, stride, step;
};

static struct shape shape_of(const struct ghp_local *l)
{
    const struct ghp_window *w = &l->window;
    return (struct shape){.n = l->n,
                          .c = l->c,
                          .h = l->h,
                          .w = l->w,
                          .k = l->k,
                          .p = l->p,
                          .q = l->q,
                          .r = w->r,
                          .s = w->s,
                          .stride_h = w->stride_h,
                          .stride_w = w->stride_w,
                          .pad_top = w->pad_top,
                          .pad_left = w->pad_left,
                          .dilation_h = w->dilation_h,
                          .dilation_w = w->dilation_w,
                          .groups = w->groups,
                          .group_c = l->c / w->groups,
                          .group_k = l->k / w->groups};
}

static int64_t features_of(const struct ghp_local *local)
{
    return local->c * local->h * local->w;
}

/* Output channels from k that can be done together: four at most, in one group. */
static int64_t rows_left(const struct shape *at, int64_t k, int64_t end)
{
    int64_t group_end = (k / at->group_k + 1) * at->group_k;
    int64_t rows = (group_end < end ? group_end : end) - k;
    return rows < 4 ? rows : 4;
}

/* The output whose window has a place at `offset` = output stride; -1 where there is none. */
static int64_t output_of(int64_t offset, int64_t stride, int64_t outputs)
{
    return offset >= 0 && offset % stride == 0 && offset / stride < outputs ? offset / stride : -1;
}

/* Outputs o with 0 <= o stride + shift < size. */
static struct ghp_range outputs_inside(int64_t shift, int64_t stride, int64_t size, int64_t outputs)
{
    int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t end = size > shift ? (size - shift + stride - 1) / stride : 0;
    if (end > outputs) end = outputs;
    return (struct ghp_range){first, end > first ? end : first};
}

static void *part_scratch(const struct ghp_call *call, int part, int64_t bytes)
{
    return (char *)call->at.scratch + part * ghp_loop_row_bytes(bytes);
}

static int64_t turned_bytes(const struct ghp_local *local, size_t element_bytes)
{
    const struct ghp_window *w = &local->window;
    return 4 * w->r * w->s * (local->c / w->groups) * (int64_t)element_bytes;
}

/* Row of c sums of a part, behind the turned weights of the data gradient. */
static double *after_turned(const struct ghp_call *call, const struct ghp_local *local,
                            size_t element_bytes, int part)
{
    int64_t weights = ghp_loop_row_bytes(ghp_local_weight_elements(local) * (int64_t)element_bytes);
    int64_t row = ghp_loop_row_bytes(local->c * (int64_t)sizeof(double));
    return (double *)(void *)((char *)call->at.scratch + weights + part * row);
}

#define SCALAR float
#define LOOP(name) name##_float
#include "executor/loops_matrix_body.h"
#undef SCALAR
#undef LOOP
#define SCALAR double
#define LOOP(name) name##_double
#include "executor/loops_matrix_body.h"
#undef SCALAR
#undef LOOP

static int64_t conv_forward_scratch(const struct ghp_local *local, int parts, int element_bytes)
{
    return parts * ghp_loop_row_bytes(turned_bytes(local, (size_t)element_bytes));
}

static int64_t conv_data_scratch(const struct ghp_local *local, int parts, int element_bytes)
{
    return ghp_loop_row_bytes(ghp_local_weight_elements(local) * element_bytes) +
           parts * ghp_loop_row_bytes(local->c * (int64_t)sizeof(double));
}

static int64_t conv_weight_scratch(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_loop_row_bytes(local->c / local->window.groups * (int64_t)sizeof(double));
}

static int64_t feature_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_loop_row_bytes(features_of(local) * (int64_t)sizeof(double));
}

const struct ghp_loop ghp_loops_matrix[] = {
    {GHP_OP_CONV2D,
     GHP_PASS_FORWARD,
     "loop",
     {{NULL, conv_forward_float, NULL}, {NULL, conv_forward_double, NULL}},
     conv_forward_scratch},
    {GHP_OP_CONV2D,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{conv_data_before_float, conv_data_float, NULL},
      {conv_data_before_double, conv_data_double, NULL}},
     conv_data_scratch},
    {GHP_OP_CONV2D,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, conv_weight_float, NULL}, {NULL, conv_weight_double, NULL}},
     conv_weight_scratch},
    {GHP_OP_LINEAR,
     GHP_PASS_FORWARD,
     "loop",
     {{NULL, linear_forward_float, NULL}, {NULL, linear_forward_double, NULL}},
     NULL},
    {GHP_OP_LINEAR,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{NULL, linear_data_float, NULL}, {NULL, linear_data_double, NULL}},
     feature_rows},
    {GHP_OP_LINEAR,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, linear_weight_float, NULL}, {NULL, linear_weight_double, NULL}},
     feature_rows},
    {.name = NULL},
};
