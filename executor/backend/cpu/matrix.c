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

/* The rows of a linear layer: samples, or positions of all samples. */
static int64_t rows_of(const struct ghp_local *local)
{
    return local->n * local->h;
}

/* Output channels from k that can be done together: four at most, in one group. */
static int64_t rows_left(const struct shape *at, int64_t k, int64_t end)
{
    int64_t group_end = (k / at->group_k + 1) * at->group_k;
    int64_t rows = (group_end < end ? group_end : end) - k;
    return rows < 4 ? rows : 4;
}

/* The output whose window has a place at `offset` = output stride; -1 if there is none. */
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

/* A part's row of c sums, after the turned weights of the data gradient. */
static double *after_transposed(const struct ghp_kernel_arguments *args,
                                const struct ghp_local *local, size_t element_bytes, int part)
{
    int64_t weights = ghp_align(ghp_local_weight_elements(local) * (int64_t)element_bytes);
    int64_t row = ghp_align(local->c * (int64_t)sizeof(double));
    return (double *)(void *)((char *)args->at.scratch + weights + part * row);
}

/* ---- loops in float: x [n][h][w][c], y [n][p][q][k], w [k][c/g][r][s] or [k][c]; both inner ones are along contiguous
 * channels, with sums in double ---- */

/* sum[j] += a_j . x, a_j = a + j stride, j < 4. */
static void dot4_float(int64_t n, const float *a, int64_t stride, const float *x, double sum[4])
{
    const float *b = a + stride, *c = b + stride, *d = c + stride;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i];
        s0 += (double)a[i] * v;
        s1 += (double)b[i] * v;
        s2 += (double)c[i] * v;
        s3 += (double)d[i] * v;
    }
    sum[0] += s0;
    sum[1] += s1;
    sum[2] += s2;
    sum[3] += s3;
}

static void dot1_float(int64_t n, const float *a, const float *x, double *sum)
{
    double s = 0.0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++)
        s += (double)a[i] * (double)x[i];
    *sum += s;
}

/* sum[j] += a_j . x, a_j = a + j stride, for the given rows, at most 4. */
static void dots_float(int64_t n, struct scaled_rows rows, const float *a, const float *x,
                       double sum[4])
{
    if (rows.rows == 4)
        dot4_float(n, a, rows.stride, x, sum);
    else
        for (int64_t j = 0; j < rows.rows; j++)
            dot1_float(n, a + j * rows.stride, x, sum + j);
}

/* sum += factor_j x_j, x_j = x + j stride, factor_j = factor[j step], j < rows. */
static void scaled_float(int64_t n, struct scaled_rows from, const float *factor, const float *x,
                         double *sum)
{
    int64_t j = 0;
    for (; j + 4 <= from.rows; j += 4) {
        const float *a = x + j * from.stride, *b = a + from.stride, *c = b + from.stride,
                    *d = c + from.stride, *f = factor + j * from.step;
        double fa = (double)f[0], fb = (double)f[from.step], fc = (double)f[2 * from.step],
               fd = (double)f[3 * from.step];
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] +=
                (fa * (double)a[i] + fb * (double)b[i]) + (fc * (double)c[i] + fd * (double)d[i]);
    }
    for (; j < from.rows; j++) {
        double fa = (double)factor[j * from.step];
        const float *a = x + j * from.stride;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] += fa * (double)a[i];
    }
}

/* Up to four output channels' weights, from [c][r][s] to [r][s][c] each. */
static void turn_weights_float(const struct shape *at, const float *w, int64_t k, int64_t rows,
                               float *transposed)
{
    int64_t places = at->r * at->s;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t c = 0; c < at->group_c; c++)
            for (int64_t place = 0; place < places; place++)
                transposed[(j * places + place) * at->group_c + c] =
                    w[((k + j) * at->group_c + c) * places + place];
}

/* Output channels k .. k + rows - 1 (of one group) of one sample's row p. */
static void conv_row_float(const struct shape *at, const float *x, const float *transposed,
                           struct block block, float *y)
{
    struct scaled_rows rows = {.rows = block.rows, .stride = at->r * at->s * at->group_c};
    const float *image = x + block.n * at->h * at->w * at->c + block.k / at->group_k * at->group_c;
    for (int64_t q = 0; q < at->q; q++) {
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        for (int64_t r = 0; r < at->r; r++) {
            int64_t h = block.p * at->stride_h - at->pad_top + r * at->dilation_h;
            if (h < 0 || h >= at->h) continue;
            for (int64_t s = 0; s < at->s; s++) {
                int64_t w = q * at->stride_w - at->pad_left + s * at->dilation_w;
                if (w < 0 || w >= at->w) continue;
                dots_float(at->group_c, rows, transposed + (r * at->s + s) * at->group_c,
                           image + (h * at->w + w) * at->c, sum);
            }
        }
        for (int64_t j = 0; j < block.rows; j++)
            y[((block.n * at->p + block.p) * at->q + q) * at->k + block.k + j] = (float)sum[j];
    }
}

static void conv_forward_float(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct shape at = shape_of(local);
    struct ghp_range channels = ghp_part_range(part, at.k, 1);
    float *transposed = part_scratch(args, part.index, transposed_bytes(local, sizeof(float)));
    struct block block = {.k = channels.first};
    for (; block.k < channels.end; block.k += block.rows) {
        block.rows = rows_left(&at, block.k, channels.end);
        turn_weights_float(&at, args->at.w[0], block.k, block.rows, transposed);
        for (block.n = 0; block.n < at.n; block.n++)
            for (block.p = 0; block.p < at.p; block.p++)
                conv_row_float(&at, args->at.x[0], transposed, block, args->at.y);
    }
}

/* All weights turned for the data gradient: [r][s][k][c / g]. */
static void conv_data_before_float(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    (void)part;
    struct shape at = shape_of(local);
    const float *w = args->at.w[0];
    float *transposed = args->at.scratch;
    int64_t places = at.r * at.s;
    for (int64_t k = 0; k < at.k; k++)
        for (int64_t c = 0; c < at.group_c; c++)
            for (int64_t place = 0; place < places; place++)
                transposed[(place * at.k + k) * at.group_c + c] =
                    w[(k * at.group_c + c) * places + place];
}

/* sum over the outputs that read input pixel (h, w) of one sample; sum [c]. */
static void conv_pixel_float(const struct shape *at, const float *transposed, const float *dy,
                             struct pixel pixel, double *sum)
{
    struct scaled_rows from = {.rows = at->group_k, .stride = at->group_c, .step = 1};
    for (int64_t r = 0; r < at->r; r++) {
        int64_t p = output_of(pixel.h + at->pad_top - r * at->dilation_h, at->stride_h, at->p);
        if (p < 0) continue;
        for (int64_t s = 0; s < at->s; s++) {
            int64_t q = output_of(pixel.w + at->pad_left - s * at->dilation_w, at->stride_w, at->q);
            if (q < 0) continue;
            const float *gradient = dy + ((pixel.n * at->p + p) * at->q + q) * at->k;
            const float *place = transposed + (r * at->s + s) * at->k * at->group_c;
            for (int64_t g = 0; g < at->groups; g++)
                scaled_float(at->group_c, from, gradient + g * at->group_k,
                             place + g * at->group_k * at->group_c, sum + g * at->group_c);
        }
    }
}

static void conv_data_float(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    struct shape at = shape_of(local);
    struct ghp_range rows = ghp_part_range(part, at.n * at.h, 1);
    const float *transposed = args->at.scratch;
    double *sum = after_transposed(args, local, sizeof(float), part.index);
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t w = 0; w < at.w; w++) {
            float *dx = (float *)args->at.dx[0] + (row * at.w + w) * at.c;
            memset(sum, 0, (size_t)at.c * sizeof *sum);
            conv_pixel_float(&at, transposed, args->at.dy,
                             (struct pixel){row / at.h, row % at.h, w}, sum);
            for (int64_t i = 0; i < at.c; i++)
                dx[i] = (float)sum[i];
        }
}

/* Gradient of one weight place (r, s) of output channel k; sum [c / g]. */
static void conv_place_float(const struct shape *at, const float *x, const float *dy,
                             struct place place, double *sum)
{
    int64_t shift = place.s * at->dilation_w - at->pad_left;
    struct ghp_range q = outputs_inside(shift, at->stride_w, at->w, at->q);
    struct scaled_rows from = {
        .rows = q.end - q.first, .stride = at->stride_w * at->c, .step = at->k};
    for (int64_t n = 0; n < at->n; n++)
        for (int64_t p = 0; p < at->p; p++) {
            int64_t h = p * at->stride_h - at->pad_top + place.r * at->dilation_h;
            if (h < 0 || h >= at->h) continue;
            scaled_float(at->group_c, from,
                         dy + ((n * at->p + p) * at->q + q.first) * at->k + place.k,
                         x + ((n * at->h + h) * at->w + q.first * at->stride_w + shift) * at->c +
                             place.k / at->group_k * at->group_c,
                         sum);
        }
}

static void conv_weight_float(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct shape at = shape_of(local);
    struct ghp_range channels = ghp_part_range(part, at.k, 1);
    double *sum = part_scratch(args, part.index, at.group_c * (int64_t)sizeof *sum);
    float *dw = args->at.dw[0];
    struct place place;
    for (place.k = channels.first; place.k < channels.end; place.k++)
        for (place.r = 0; place.r < at.r; place.r++)
            for (place.s = 0; place.s < at.s; place.s++) {
                memset(sum, 0, (size_t)at.group_c * sizeof *sum);
                conv_place_float(&at, args->at.x[0], args->at.dy, place, sum);
                for (int64_t c = 0; c < at.group_c; c++)
                    dw[((place.k * at.group_c + c) * at.r + place.r) * at.s + place.s] =
                        (float)sum[c];
            }
}

static void linear_forward_float(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t c = local->c, k = local->k, n_rows = rows_of(local);
    struct ghp_range outputs = ghp_part_range(part, k, 4);
    const float *w = args->at.w[0];
    for (int64_t first = outputs.first; first < outputs.end; first += 4) {
        struct scaled_rows rows = {.stride = c};
        rows.rows = outputs.end - first < 4 ? outputs.end - first : 4;
        for (int64_t n = 0; n < n_rows; n++) {
            double sum[4] = {0.0, 0.0, 0.0, 0.0};
            dots_float(c, rows, w + first * c, (const float *)args->at.x[0] + n * c, sum);
            for (int64_t j = 0; j < rows.rows; j++)
                ((float *)args->at.y)[n * k + first + j] = (float)sum[j];
        }
    }
}

static void linear_data_float(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t c = local->c, k = local->k, n_rows = rows_of(local);
    struct ghp_range inputs = ghp_part_range(part, c, 16);
    int64_t width = inputs.end - inputs.first;
    double *sum = part_scratch(args, part.index, c * (int64_t)sizeof *sum);
    struct scaled_rows from = {.rows = k, .stride = c, .step = 1};
    for (int64_t n = 0; n < n_rows; n++) {
        float *dx = (float *)args->at.dx[0] + n * c + inputs.first;
        memset(sum, 0, (size_t)width * sizeof *sum);
        scaled_float(width, from, (const float *)args->at.dy + n * k,
                     (const float *)args->at.w[0] + inputs.first, sum);
        for (int64_t i = 0; i < width; i++)
            dx[i] = (float)sum[i];
    }
}

static void linear_weight_float(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t c = local->c, k = local->k, n_rows = rows_of(local);
    struct ghp_range outputs = ghp_part_range(part, k, 1);
    double *sum = part_scratch(args, part.index, c * (int64_t)sizeof *sum);
    struct scaled_rows from = {.rows = n_rows, .stride = c, .step = k};
    for (int64_t output = outputs.first; output < outputs.end; output++) {
        float *dw = (float *)args->at.dw[0] + output * c;
        memset(sum, 0, (size_t)c * sizeof *sum);
        scaled_float(c, from, (const float *)args->at.dy + output, args->at.x[0], sum);
        for (int64_t i = 0; i < c; i++)
            dw[i] = (float)sum[i];
    }
}

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
    return parts * ghp_align(local->c * (int64_t)sizeof(double));
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
                         struct ghp_part part)
{
    (void)part;
    copy_read(local, args, GHP_PASS_FORWARD);
}

static void copy_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        struct ghp_part part)
{
    (void)part;
    copy_read(local, args, GHP_PASS_BACKWARD_WEIGHT);
}

static void copy_linear_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    (void)part;
    copy_read(local, args, GHP_PASS_BACKWARD_DATA);
}

static void copy_conv_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct ghp_part part)
{
    struct ghp_kernel_arguments floats = copies_of(local, args);
    copy_read(local, args, GHP_PASS_BACKWARD_DATA);
    conv_data_before_float(local, &floats, part);
}

static void store_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          struct ghp_part part)
{
    (void)part;
    narrow(copies_of(local, args).at.y, copied(local, true), args->at.y);
}

static void store_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       struct ghp_part part)
{
    (void)part;
    narrow(copies_of(local, args).at.dx[0], copied(local, false), args->at.dx[0]);
}

#define ON_COPIES(name, scratch)                                                                   \
    static void name##_bf16(const struct ghp_local *local,                                         \
                            const struct ghp_kernel_arguments *args, struct ghp_part part)         \
    {                                                                                              \
        struct ghp_kernel_arguments floats = copies_of(local, args);                               \
        name##_float(local, &floats, part);                                                        \
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
     {{NULL, conv_forward_float, NULL}, {copy_forward, conv_forward_bf16, store_forward}},
     conv_forward_scratch},
    {GHP_OP_CONV2D,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{conv_data_before_float, conv_data_float, NULL},
      {copy_conv_data, conv_data_bf16, store_data}},
     conv_data_scratch},
    {GHP_OP_CONV2D,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, conv_weight_float, NULL}, {copy_weight, conv_weight_bf16, NULL}},
     conv_weight_scratch},
    {GHP_OP_LINEAR,
     GHP_PASS_FORWARD,
     "loop",
     {{NULL, linear_forward_float, NULL}, {copy_forward, linear_forward_bf16, store_forward}},
     linear_forward_scratch},
    {GHP_OP_LINEAR,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{NULL, linear_data_float, NULL}, {copy_linear_data, linear_data_bf16, store_data}},
     linear_data_scratch},
    {GHP_OP_LINEAR,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, linear_weight_float, NULL}, {copy_weight, linear_weight_bf16, NULL}},
     linear_weight_scratch},
    {.name = NULL},
};
