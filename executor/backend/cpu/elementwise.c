/* executor/backend/cpu/elementwise.c - operations without neighbours: bias, relu, activation, dropout, add,
 * mul, concat, flatten; and sums of two tensors.
 *
 * All are bound by memory: one pass over each tensor. */
#include "executor/backend/cpu/kernels_cpu.h"
#include "core/model/precision.h"
#include "executor/platform/random.h"

#include <math.h>
#include <string.h>

enum {
    GRAIN = 64,         /* elements: parts begin on cache lines of their own in either precision */
    ADD_BLOCK = 1024,   /* elements */
    MASK_NUMBERS = 1024 /* random numbers made at once; a multiple of 4 */
};

static int64_t rows_of(const struct ghp_local *local)
{
    return local->n * local->h * local->w;
}

/* Row of `width` sums in scratch that belongs to a part. */
static double *part_row(const struct ghp_kernel_arguments *args, int part, int64_t width)
{
    char *base = args->at.scratch;
    return (double *)(void *)(base + part * ghp_align(width * (int64_t)sizeof(double)));
}

static void copy_rows(const void *from, void *to, struct ghp_range rows, int64_t row_bytes)
{
    if (to == NULL || from == to) return;
    memcpy((char *)to + rows.first * row_bytes, (const char *)from + rows.first * row_bytes,
           (size_t)((rows.end - rows.first) * row_bytes));
}

struct mask { /* of one sample; threshold: random numbers below it drop their element */
    uint64_t seed;
    uint32_t sample, step, layer, threshold;
    double scale;
};

static struct mask mask_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    return (struct mask){.seed = args->seed,
                         .step = (uint32_t)args->step,
                         .layer = (uint32_t)args->layer,
                         .threshold = (uint32_t)(local->norm.ratio * 0x1p32),
                         .scale = 1.0 / (1.0 - local->norm.ratio)};
}

#define BODY "executor/backend/cpu/elementwise_body.h"
#include "executor/backend/cpu/precisions.h"

static int64_t channel_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_align(local->c * (int64_t)sizeof(double));
}

/* Adds sums of statistics, which are double for all tensors. */
static void accumulate_double(double *sum, const double *more, struct ghp_range at)
{
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        sum[i] += more[i];
}

void ghp_cpu_kernel_accumulate_part(const struct ghp_masked_sum *sum, struct ghp_range range)
{
    int bytes = sum->extent.bytes;
    if (sum->y != NULL && bytes == 2)
        accumulate_masked_bf16(sum->to, sum->from, sum->y, range);
    else if (sum->y != NULL)
        accumulate_masked_float(sum->to, sum->from, sum->y, range);
    else if (bytes == 2)
        accumulate_bf16(sum->to, sum->from, range);
    else if (bytes == 4)
        accumulate_float(sum->to, sum->from, range);
    else
        accumulate_double(sum->to, sum->from, range);
}

const struct ghp_cpu_kernel ghp_cpu_kernels_elementwise[] = {
    {GHP_OP_BIAS, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(bias_forward, NULL), NULL},
    {GHP_OP_BIAS,
     GHP_PASS_BACKWARD_WEIGHT,
     "loop",
     {{NULL, bias_weight_float, bias_weight_after_float},
      {NULL, bias_weight_bf16, bias_weight_after_bf16}},
     channel_sums},
    {GHP_OP_RELU, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(relu_forward, NULL), NULL},
    {GHP_OP_RELU, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(relu_data, NULL), NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(activation_forward, NULL),
     NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(activation_data, NULL),
     NULL},
    {GHP_OP_DROPOUT, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(dropout_forward, NULL), NULL},
    {GHP_OP_DROPOUT, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(dropout_data, NULL), NULL},
    {GHP_OP_ADD, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(add_forward, NULL), NULL},
    {GHP_OP_ADD, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(add_data, NULL), NULL},
    {GHP_OP_MUL, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(mul_forward, NULL), NULL},
    {GHP_OP_MUL, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(mul_data, NULL), NULL},
    {GHP_OP_CONCAT, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(concat_forward, NULL), NULL},
    {GHP_OP_CONCAT, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(concat_data, NULL), NULL},
    {GHP_OP_FLATTEN, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(flatten_forward, NULL), NULL},
    {GHP_OP_FLATTEN, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(flatten_data, NULL), NULL},
    {.name = NULL},
};

const struct ghp_cpu_kernel ghp_cpu_kernel_add_relu = {GHP_OP_ADD, GHP_PASS_FORWARD, "loop",
                                                       GHP_CPU_KERNEL_EACH(add_relu, NULL), NULL};
