/* executor/backend/cpu/parameter.c - parameter: a tensor for every sample, whose channels are innermost there.
 *
 * Each part has pixels of all samples, and sums over the samples in their order, so that results do not depend on the
 * parts. */
#ifndef KERNEL
#include "executor/backend/cpu/kernels_cpu.h"

#define BODY "executor/backend/cpu/parameter.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_parameter[] = {
    {GHP_OP_PARAMETER, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(parameter_forward, NULL),
     NULL},
    {GHP_OP_PARAMETER, GHP_PASS_BACKWARD_WEIGHT, "loop",
     GHP_CPU_KERNEL_EACH(parameter_weight, NULL), NULL},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h) */

static void KERNEL(parameter_forward)(const struct ghp_local *local,
                                      const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t pixels = local->p * local->q, channels = local->k;
    struct ghp_range samples = ghp_part_range(part, local->n, 1);
    const float *w = args->at.w[0];
    for (int64_t n = samples.first; n < samples.end; n++) {
        SCALAR *y = (SCALAR *)args->at.y + n * pixels * channels;
        for (int64_t i = 0; i < pixels; i++)
            for (int64_t k = 0; k < channels; k++)
                y[i * channels + k] = PUT(w[k * pixels + i]);
    }
}

static void KERNEL(parameter_weight)(const struct ghp_local *local,
                                     const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t pixels = local->p * local->q, channels = local->k;
    struct ghp_range at = ghp_part_range(part, pixels * channels, 16);
    float *dw = args->at.dw[0];
    for (int64_t j = at.first; j < at.end; j++) {
        const SCALAR *dy = (const SCALAR *)args->at.dy + j % pixels * channels + j / pixels;
        float sum = 0.0f;
        for (int64_t n = 0; n < local->n; n++)
            sum += GET(dy[n * pixels * channels]);
        dw[j] = sum;
    }
}

#endif
