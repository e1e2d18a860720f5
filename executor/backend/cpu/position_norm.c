/* executor/backend/cpu/position_norm.c - layer_norm and rms_norm: the channels of each sample and pixel by themselves.
 *
 * What is saved is the inverse deviation of each pixel, then, of layer_norm, their means. Sums over channels are in
 * double; sums over pixels go through scratch, a row a part, and are added in part order. */
#include "core/model/precision.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

static int64_t rows_of(const struct ghp_local *local)
{
    return local->n * local->h * local->w;
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
    return parts * ghp_align(local->c * (int64_t)sizeof(double));
}

#define BODY "executor/backend/cpu/position_norm_body.h"
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
