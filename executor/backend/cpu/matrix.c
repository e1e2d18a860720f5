/* executor/backend/cpu/matrix.c - conv2d and linear in plain loops.
 *
 * For what the library refuses, or has only its reference code for. Forward and weight gradient are cut by output
 * channels, the data gradient by input rows, so no sum crosses parts. */
#include "executor/backend/cpu/kernels_cpu.h"
#include "core/model/precision.h"

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

static void *part_scratch(const struct ghp_kernel_arguments *args, int part, int64_t bytes)
{
    return (char *)args->at.scratch + part * ghp_align(bytes);
}

static int64_t transposed_bytes(const struct ghp_local *local, size_t element_bytes)
{
    const struct ghp_window *w = &local->window;
    return 4 * w->r * w->s * (local->c / w->groups) * (int64_t)element_bytes;
}

/* Row of c sums of a part, behind the turned weights of the data gradient. */
static double *after_transposed(const struct ghp_kernel_arguments *args,
                                const struct ghp_local *local, size_t element_bytes, int part)
{
    int64_t weights = ghp_align(ghp_local_weight_elements(local) * (int64_t)element_bytes);
    int64_t row = ghp_align(local->c * (int64_t)sizeof(double));
    return (double *)(void *)((char *)args->at.scratch + weights + part * row);
}

#define SCALAR float
#define KERNEL(name) name##_float
#include "executor/backend/cpu/matrix_body.h"
#undef SCALAR
#undef KERNEL
#define SCALAR double
#define KERNEL(name) name##_double
#include "executor/backend/cpu/matrix_body.h"
#undef SCALAR
#undef KERNEL

static int64_t conv_forward_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    return parts * ghp_align(transposed_bytes(local, (size_t)element_bytes));
}

static int64_t conv_data_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    return ghp_align(ghp_local_weight_elements(local) * element_bytes) +
           parts * ghp_align(local->c * (int64_t)sizeof(double));
}

static int64_t conv_weight_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_align(local->c / local->window.groups * (int64_t)sizeof(double));
}

static int64_t feature_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_align(features_of(local) * (int64_t)sizeof(double));
}

static int64_t no_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)local;
    (void)parts;
    (void)element_bytes;
    return 0;
}

/* ---- in bfloat16: the loops in float on copies, for what the library refuses ---- */

/* Numbers of x or dx, and of y or dy. */
static int64_t copied(const struct ghp_local *local, bool out)
{
    return out ? ghp_local_out_elements(local) : ghp_local_in_elements(local);
}

static int64_t copy_bytes(const struct ghp_local *local, bool out)
{
    return ghp_align(copied(local, out) * (int64_t)sizeof(float));
}

/* The call on copies in float, which lie at the start of the scratch. */
static struct ghp_kernel_arguments copies_of(const struct ghp_local *local,
                                             const struct ghp_kernel_arguments *args)
{
    struct ghp_kernel_arguments floats = *args;
    char *x = args->at.scratch, *y = x + copy_bytes(local, false);
    floats.at.x[0] = floats.at.dx[0] = x;
    floats.at.y = floats.at.dy = y;
    floats.at.scratch = y + copy_bytes(local, true);
    return floats;
}

static void widen(const uint16_t *from, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = ghp_bf16_value(from[i]);
}

static void narrow(const float *from, int64_t n, uint16_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = ghp_bf16_of(from[i]);
}

/* Copies what a pass reads. */
static void copy_read(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                      enum ghp_pass pass)
{
    struct ghp_kernel_arguments floats = copies_of(local, args);
    if (pass != GHP_PASS_BACKWARD_DATA) widen(args->at.x[0], copied(local, false), floats.at.dx[0]);
    if (pass != GHP_PASS_FORWARD) widen(args->at.dy, copied(local, true), floats.at.y);
}

static void copy_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct ghp_share share)
{
    (void)share;
    copy_read(local, args, GHP_PASS_FORWARD);
}

static void copy_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        struct ghp_share share)
{
    (void)share;
    copy_read(local, args, GHP_PASS_BACKWARD_WEIGHT);
}

static void copy_linear_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_share share)
{
    (void)share;
    copy_read(local, args, GHP_PASS_BACKWARD_DATA);
}

static void copy_conv_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct ghp_share share)
{
    struct ghp_kernel_arguments floats = copies_of(local, args);
    copy_read(local, args, GHP_PASS_BACKWARD_DATA);
    conv_data_before_float(local, &floats, share);
}

static void store_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          struct ghp_share share)
{
    (void)share;
    narrow(copies_of(local, args).at.y, copied(local, true), args->at.y);
}

static void store_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       struct ghp_share share)
{
    (void)share;
    narrow(copies_of(local, args).at.dx[0], copied(local, false), args->at.dx[0]);
}

#define ON_COPIES(name, scratch)                                                                   \
    static void name##_bf16(const struct ghp_local *local,                                         \
                            const struct ghp_kernel_arguments *args, struct ghp_share share)       \
    {                                                                                              \
        struct ghp_kernel_arguments floats = copies_of(local, args);                               \
        name##_float(local, &floats, share);                                                       \
    }                                                                                              \
    static int64_t name##_scratch(const struct ghp_local *local, int parts, int element_bytes)     \
    {                                                                                              \
        int64_t copies = copy_bytes(local, false) + copy_bytes(local, true);                       \
        return scratch(local, parts, ghp_parameter_bytes(element_bytes)) +                         \
               (element_bytes == 2 ? copies : 0);                                                  \
    }
ON_COPIES(conv_forward, conv_forward_rows)
ON_COPIES(conv_data, conv_data_rows)
ON_COPIES(conv_weight, conv_weight_rows)
ON_COPIES(linear_forward, no_rows)
ON_COPIES(linear_data, feature_rows)
ON_COPIES(linear_weight, feature_rows)
#undef ON_COPIES

const struct ghp_cpu_kernel ghp_cpu_kernels_matrix[] = {
    {GHP_OP_CONV2D,
     GHP_PASS_FORWARD,
     "loop",
     {{NULL, conv_forward_float, NULL},
      {NULL, conv_forward_double, NULL},
      {copy_forward, conv_forward_bf16, store_forward}},
     conv_forward_scratch},
    {GHP_OP_CONV2D,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{conv_data_before_float, conv_data_float, NULL},
      {conv_data_before_double, conv_data_double, NULL},
      {copy_conv_data, conv_data_bf16, store_data}},
     conv_data_scratch},
    {GHP_OP_CONV2D,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, conv_weight_float, NULL},
      {NULL, conv_weight_double, NULL},
      {copy_weight, conv_weight_bf16, NULL}},
     conv_weight_scratch},
    {GHP_OP_LINEAR,
     GHP_PASS_FORWARD,
     "loop",
     {{NULL, linear_forward_float, NULL},
      {NULL, linear_forward_double, NULL},
      {copy_forward, linear_forward_bf16, store_forward}},
     linear_forward_scratch},
    {GHP_OP_LINEAR,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{NULL, linear_data_float, NULL},
      {NULL, linear_data_double, NULL},
      {copy_linear_data, linear_data_bf16, store_data}},
     linear_data_scratch},
    {GHP_OP_LINEAR,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, linear_weight_float, NULL},
      {NULL, linear_weight_double, NULL},
      {copy_weight, linear_weight_bf16, NULL}},
     linear_weight_scratch},
    {.name = NULL},
};
