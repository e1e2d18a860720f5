/* executor/backend/cpu/position_norm.c - layer_norm and rms_norm: the channels of each sample and pixel by themselves.
 *
 * What is saved is the inverse deviation of each pixel, then, of layer_norm, their means. Sums over channels are in
 * double; sums over pixels go through scratch, a row a part, and are added in part order. */
#ifndef KERNEL
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

/* One a pixel, or one for each of its heads. */
static int64_t rows_of(const struct ghp_local *local)
{
    return local->n * local->h * local->w * (local->c / ghp_local_head(local));
}

static bool is_centred(const struct ghp_local *local)
{
    return local->op == GHP_OP_LAYER_NORM;
}

/* Row of sums in scratch that belongs to a part: [c]. */
static double *part_row(const struct ghp_kernel_arguments *args, int part, int64_t c)
{
    char *base = args->at.scratch;
    return (double *)(void *)(base + part * ghp_align(c * (int64_t)sizeof(double)));
}

static int64_t channel_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_align(ghp_local_head(local) * (int64_t)sizeof(double));
}

#define BODY "executor/backend/cpu/position_norm.c"
#include "executor/backend/cpu/precisions.h"

#define PASSES(op)                                                                                 \
    {op, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(forward, NULL), NULL},                      \
        {op, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(data, NULL), NULL},               \
    {                                                                                              \
        op, GHP_PASS_BACKWARD_WEIGHT, "loop",                                                      \
            {{NULL, weight_float, weight_after_float}, {NULL, weight_bf16, weight_after_bf16}},    \
            channel_sums                                                                           \
    }

const struct ghp_cpu_kernel ghp_cpu_kernels_position_norm[] = {
    PASSES(GHP_OP_LAYER_NORM), PASSES(GHP_OP_RMS_NORM), {.name = NULL}};

#else /* bodies for each precision (cpu/precisions.h). Tensors are [rows][c]; rows = n h w, times the number of heads. */

static double KERNEL(mean_of)(const SCALAR *x, int64_t c)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < c; i++)
        sum += (double)GET(x[i]);
    return sum / (double)c;
}

static double KERNEL(inverse_of)(const SCALAR *x, int64_t c, double mean, double epsilon)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < c; i++)
        sum += ((double)GET(x[i]) - mean) * ((double)GET(x[i]) - mean);
    return 1.0 / sqrt(sum / (double)c + epsilon);
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const float *w = args->at.w[0];
    float *inverses = args->at.saved;
    int64_t c = ghp_local_head(local);
    float offset = (float)local->norm.offset;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * c;
        SCALAR *y = (SCALAR *)args->at.y + row * c;
        double exact = is_centred(local) ? KERNEL(mean_of)(x, c) : 0.0;
        float mean = (float)exact;
        float inverse = (float)KERNEL(inverse_of)(x, c, exact, local->norm.epsilon);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            y[i] = PUT((GET(x[i]) - mean) * inverse * (w[i] + offset));
        if (inverses == NULL) continue;
        inverses[row] = inverse;
        if (is_centred(local)) inverses[rows_of(local) + row] = mean;
    }
}

/* With g = dy w and z = (x - mean) inverse: dx = inverse (g - mean of g - z mean of g z), without the mean of g where
 * x is not centred. */
static void KERNEL(data)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const float *w = args->at.w[0], *inverses = args->at.saved;
    int64_t c = ghp_local_head(local);
    float offset = (float)local->norm.offset;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * c;
        const SCALAR *dy = (const SCALAR *)args->at.dy + row * c;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * c;
        float inverse = inverses[row];
        float mean = is_centred(local) ? inverses[rows_of(local) + row] : 0;
        double sum = 0.0, product = 0.0;
#pragma omp simd reduction(+ : sum, product)
        for (int64_t i = 0; i < c; i++) {
            double g = (double)(GET(dy[i]) * (w[i] + offset));
            sum += g;
            product += g * (double)((GET(x[i]) - mean) * inverse);
        }
        float a = is_centred(local) ? (float)(sum / (double)c) : 0,
              b = (float)(product / (double)c);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            dx[i] = PUT(inverse *
                        (GET(dy[i]) * (w[i] + offset) - a - (GET(x[i]) - mean) * inverse * b));
    }
}

/* Sums of dy z over this part's rows. */
static void KERNEL(weight)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const float *inverses = args->at.saved;
    int64_t c = ghp_local_head(local);
    double *sum = part_row(args, part.index, c);
    memset(sum, 0, (size_t)c * sizeof *sum);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * c;
        const SCALAR *dy = (const SCALAR *)args->at.dy + row * c;
        float inverse = inverses[row];
        float mean = is_centred(local) ? inverses[rows_of(local) + row] : 0;
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            sum[i] += (double)(GET(dy[i]) * ((GET(x[i]) - mean) * inverse));
    }
}

static void KERNEL(weight_after)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t c = ghp_local_head(local);
    float *dw = args->at.dw[0];
    for (int64_t i = 0; i < c; i++) {
        double sum = 0.0;
        for (int p = 0; p < part.count; p++)
            sum += part_row(args, p, c)[i];
        dw[i] = (float)sum;
    }
}

#endif
