/* executor/backend/cpu/embedding.c - embedding: rows of a table by token id; position_embedding, which adds a row a
 * position; and prepend, which puts rows before them.
 *
 * A table's gradient is made row by row: a part owns rows, and adds what belongs to them in the order of the places. So
 * results do not depend on the parts. */
#ifndef KERNEL
#include "core/model/precision.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <string.h>

/* The local row of a place, or -1. */
static int64_t row_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                      int64_t place)
{
    int64_t row = ((const int32_t *)args->at.x[0])[place] - args->first_row;

    return row >= 0 && row < local->vocabulary ? row : -1;
}

#define BODY "executor/backend/cpu/embedding.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_embedding[] = {
    {GHP_OP_EMBEDDING, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(look_up, NULL), NULL},
    {GHP_OP_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, "loop", GHP_CPU_KERNEL_EACH(table_weight, NULL),
     NULL},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_FORWARD, "loop",
     GHP_CPU_KERNEL_EACH(position_forward, NULL), NULL},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, "loop",
     GHP_CPU_KERNEL_EACH(position_weight, NULL), NULL},
    {GHP_OP_PREPEND, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(prepend_forward, NULL), NULL},
    {GHP_OP_PREPEND, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(prepend_data, NULL), NULL},
    {GHP_OP_PREPEND, GHP_PASS_BACKWARD_WEIGHT, "loop", GHP_CPU_KERNEL_EACH(prepend_weight, NULL),
     NULL},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). Tensors are [n][position][channel], tables float. */

static void KERNEL(look_up)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    struct ghp_range places = ghp_part_range(part, local->n * local->h, 1);
    for (int64_t i = places.first; i < places.end; i++) {
        int64_t row = row_of(local, args, i), channels = local->k;
        const float *w = (const float *)args->at.w[0] + (row < 0 ? 0 : row) * channels;
        SCALAR *y = (SCALAR *)args->at.y + i * channels;
        if (row < 0)
            memset(y, 0, (size_t)channels * sizeof *y);
        else
            for (int64_t k = 0; k < channels; k++)
                y[k] = PUT(w[k]);
    }
}

static void KERNEL(table_weight)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->vocabulary, 1);
    int64_t channels = local->k;
    float *table = args->at.dw[0];
    if (!args->adds_weight)
        memset(table + rows.first * channels, 0,
               (size_t)((rows.end - rows.first) * channels) * sizeof *table);
    for (int64_t i = 0; i < local->n * local->h; i++) {
        int64_t row = row_of(local, args, i);
        const SCALAR *dy = (const SCALAR *)args->at.dy + i * channels;
        float *dw = table + row * channels;
        if (row < rows.first || row >= rows.end) continue;
#pragma omp simd
        for (int64_t k = 0; k < channels; k++)
            dw[k] += GET(dy[k]);
    }
}

static void KERNEL(position_forward)(const struct ghp_local *local,
                                     const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range places = ghp_part_range(part, local->n * local->h, 1);
    int64_t channels = local->c;
    for (int64_t i = places.first; i < places.end; i++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + i * channels;
        const float *w = (const float *)args->at.w[0] + i % local->h * channels;
        SCALAR *y = (SCALAR *)args->at.y + i * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; c++)
            y[c] = PUT(GET(x[c]) + w[c]);
    }
}

static void KERNEL(position_weight)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, local->h * local->c, 16);
    float *dw = args->at.dw[0];
    memset(dw + at.first, 0, (size_t)(at.end - at.first) * sizeof *dw);
    for (int64_t n = 0; n < local->n; n++) {
        const SCALAR *dy = (const SCALAR *)args->at.dy + n * local->h * local->c;
#pragma omp simd
        for (int64_t i = at.first; i < at.end; i++)
            dw[i] += GET(dy[i]);
    }
}

static void KERNEL(prepend_forward)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range samples = ghp_part_range(part, local->n, 1);
    int64_t added = (local->p - local->h) * local->c, rest = local->h * local->c;
    const float *w = args->at.w[0];
    for (int64_t n = samples.first; n < samples.end; n++) {
        SCALAR *y = (SCALAR *)args->at.y + n * (added + rest);
        for (int64_t i = 0; i < added; i++)
            y[i] = PUT(w[i]);
        memcpy(y + added, (const SCALAR *)args->at.x[0] + n * rest, (size_t)rest * sizeof *y);
    }
}

static void KERNEL(prepend_data)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range samples = ghp_part_range(part, local->n, 1);
    int64_t added = (local->p - local->h) * local->c, rest = local->h * local->c;
    for (int64_t n = samples.first; n < samples.end; n++)
        memcpy((SCALAR *)args->at.dx[0] + n * rest,
               (const SCALAR *)args->at.dy + n * (added + rest) + added,
               (size_t)rest * sizeof(SCALAR));
}

static void KERNEL(prepend_weight)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, (local->p - local->h) * local->c, 16);
    float *dw = args->at.dw[0];
    memset(dw + at.first, 0, (size_t)(at.end - at.first) * sizeof *dw);
    for (int64_t n = 0; n < local->n; n++) {
        const SCALAR *dy = (const SCALAR *)args->at.dy + n * local->p * local->c;
#pragma omp simd
        for (int64_t i = at.first; i < at.end; i++)
            dw[i] += GET(dy[i]);
    }
}

#endif
