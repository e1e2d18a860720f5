/* executor/backend/cpu/index_map.c - view and pad: one table of places, made once a step, serves all samples.
 *
 * Forward copies along the table; backward adds along it, since an input element may be taken several times. A place is
 * that of a run of channels, which lie one after the other in both: all of a pixel's, if channels stay together.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "executor/backend/cpu/kernels_cpu.h"
#include "core/sharding/index_table.h"

#include <string.h>

static int64_t sample_in(const struct ghp_local *local)
{
    return local->c * local->h * local->w;
}

static int64_t sample_out(const struct ghp_local *local)
{
    return local->k * local->p * local->q;
}

static void make_table(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       struct ghp_part part)
{
    (void)part;
    ghp_index_map_table(local, ghp_index_map_run(local), args->at.scratch);
}

static int64_t table_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)parts;
    (void)element_bytes;
    return ghp_align(sample_out(local) / ghp_index_map_run(local) * (int64_t)sizeof(int32_t));
}

/* In bfloat16: a sample's gradient in float, after the table. */
static void *part_sums(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       int part)
{
    int64_t row = ghp_align(sample_in(local) * (int64_t)sizeof(float));
    return (char *)args->at.scratch + table_bytes(local, 1, 0) + part * row;
}

static int64_t table_and_sums(const struct ghp_local *local, int parts, int element_bytes)
{
    int64_t row = ghp_align(sample_in(local) * (int64_t)sizeof(float));
    return table_bytes(local, parts, element_bytes) + (element_bytes == 2 ? parts * row : 0);
}

#define BODY "executor/backend/cpu/index_map.c"
#include "executor/backend/cpu/precisions.h"

#define TABLED(op, pass, run, scratch)                                                             \
    {                                                                                              \
        op, pass, "loop", {{make_table, run##_float, NULL}, {make_table, run##_bf16, NULL}},       \
            scratch                                                                                \
    }

const struct ghp_cpu_kernel ghp_cpu_kernels_gather[] = {
    TABLED(GHP_OP_VIEW, GHP_PASS_FORWARD, take, table_bytes),
    TABLED(GHP_OP_VIEW, GHP_PASS_BACKWARD_DATA, give_back, table_and_sums),
    TABLED(GHP_OP_PAD, GHP_PASS_FORWARD, take, table_bytes),
    TABLED(GHP_OP_PAD, GHP_PASS_BACKWARD_DATA, give_back, table_and_sums),
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). x [n][h w c], y [n][p q k], table [p q k / run]. */

static void KERNEL(take)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct ghp_part part)
{
    struct ghp_range samples = ghp_part_range(part, local->n, 1);
    int64_t in = sample_in(local), run = ghp_index_map_run(local), runs = sample_out(local) / run;
    const int32_t *table = args->at.scratch;
    SCALAR nothing = local->op == GHP_OP_PAD ? PUT((float)local->border.value) : 0;
    for (int64_t n = samples.first; n < samples.end; n++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + n * in;
        SCALAR *y = (SCALAR *)args->at.y + n * runs * run;
        for (int64_t i = 0; i < runs; i++, y += run)
            for (int64_t c = 0; c < run; c++)
                y[c] = table[i] == GHP_INDEX_MAP_NOTHING ? nothing : x[table[i] + c];
    }
}

static void KERNEL(give_back)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range samples = ghp_part_range(part, local->n, 1);
    int64_t in = sample_in(local), run = ghp_index_map_run(local), runs = sample_out(local) / run;
    const int32_t *table = args->at.scratch;
    for (int64_t n = samples.first; n < samples.end; n++) {
        const SCALAR *dy = (const SCALAR *)args->at.dy + n * runs * run;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + n * in;
        float *sum = ROUNDS ? part_sums(local, args, part.index) : (void *)dx;
        memset(sum, 0, (size_t)in * sizeof *sum);
        for (int64_t i = 0; i < runs; i++, dy += run)
            for (int64_t c = 0; c < run && table[i] != GHP_INDEX_MAP_NOTHING; c++)
                sum[table[i] + c] += GET(dy[c]);
        for (int64_t i = 0; ROUNDS && i < in; i++)
            dx[i] = PUT(sum[i]);
    }
}

#endif
