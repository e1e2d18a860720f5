/* executor/backend/onednn/blocked.c - the bias on blocked tensors [n][c / 16][h][w][16], in float.
 *
 * Other operations that keep channels apart need no loops of their own: a blocked tensor is a plain one of 16
 * channels and c / 16 times as many samples. A bias differs from block to block,
 * and so does a batch norm on its running statistics (cpu/norm.c).
 *
 * Tested  tests/executor/backend/test_kernel_spec.c, against the plain loops */
#include "executor/backend/onednn/backend_onednn_private.h"
#include "executor/platform/streaming_store.h"

#include <string.h>

enum { LANES = GHP_BLOCK_CHANNELS };

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                    struct ghp_part part)
{
    int64_t pixels = local->h * local->w, blocks = local->c / LANES;
    struct ghp_range range = ghp_part_range(part, local->n * blocks, 1);
    const float *w = args->at.w[0];
    for (int64_t block = range.first; block < range.end; block++) {
        const float *x = (const float *)args->at.x[0] + block * pixels * LANES;
        float *y = (float *)args->at.y + block * pixels * LANES;
        const float *b = w + block % blocks * LANES;
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
#pragma omp simd
            for (int i = 0; i < LANES; i++)
                y[pixel * LANES + i] = x[pixel * LANES + i] + b[i];
        }
    }
}

static double *row_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                      int part)
{
    char *base = args->at.scratch;
    return (double *)(void *)(base + part * ghp_align(local->c * (int64_t)sizeof(double)));
}

/* Sums over this part's blocks, in double: into row `part` of scratch. */
static void weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                   struct ghp_part part)
{
    int64_t pixels = local->h * local->w, blocks = local->c / LANES;
    struct ghp_range range = ghp_part_range(part, local->n * blocks, 1);
    double *row = row_of(local, args, part.index);
    memset(row, 0, (size_t)local->c * sizeof *row);
    for (int64_t block = range.first; block < range.end; block++) {
        const float *dy = (const float *)args->at.dy + block * pixels * LANES;
        double sum[LANES] = {0};
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
            ghp_prefetch_line(dy + pixel * LANES);
#pragma omp simd
            for (int i = 0; i < LANES; i++)
                sum[i] += (double)dy[pixel * LANES + i];
        }
        for (int i = 0; i < LANES; i++)
            row[block % blocks * LANES + i] += sum[i];
    }
}

static void weight_after(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct ghp_part part)
{
    float *db = args->at.dw[0];
    for (int64_t i = 0; i < local->c; i++) {
        double sum = 0;
        for (int p = 0; p < part.count; p++)
            sum += row_of(local, args, p)[i];
        db[i] = (float)sum;
    }
}

static int64_t sums_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_align(local->c * (int64_t)sizeof(double));
}

static const struct ghp_cpu_kernel cpu_kernels[] = {
    {.op = GHP_OP_BIAS,
     .pass = GHP_PASS_FORWARD,
     .name = "loop",
     .stages = {[GHP_PRECISION_FLOAT] = {NULL, forward, NULL}}},
    {.op = GHP_OP_BIAS,
     .pass = GHP_PASS_BACKWARD_WEIGHT,
     .name = "loop",
     .stages = {[GHP_PRECISION_FLOAT] = {NULL, weight, weight_after}},
     .scratch_bytes = sums_bytes},
    {.name = NULL},
};

enum ghp_status ghp_onednn_nchw16c_prepare(struct ghp_backend *backend,
                                           const struct ghp_local *local, enum ghp_pass pass,
                                           struct ghp_kernel **kernel)
{
    const struct ghp_cpu_kernel *cpu_kernel =
        local->op == GHP_OP_FROZEN_BATCH_NORM ? ghp_cpu_kernels_frozen_blocks : cpu_kernels;
    for (; cpu_kernel->name != NULL; cpu_kernel++)
        if (cpu_kernel->op == local->op && cpu_kernel->pass == pass)
            return ghp_cpu_kernel_prepare_by(backend, local, cpu_kernel, kernel);
    return GHP_FAIL(GHP_ERR_INTERNAL, "'%s' has no pass '%s' on blocked tensors; report this",
                    ghp_op_name(local->op), ghp_pass_name(pass));
}
