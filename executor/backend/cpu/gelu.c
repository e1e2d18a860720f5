/* executor/backend/cpu/gelu.c - gelu, silu and hard_swish: x times a share that rises from 0 to 1.
 *
 * Their loops have no branches, so that they become vectors.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "core/model/precision.h"
#include "executor/backend/cpu/exponential.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>

enum { GRAIN = 64 }; /* elements: parts begin on cache lines of their own in either precision */

struct share { /* of x, and its slope times x */
    float value, rise;
};

/* 1 / (1 + e^-u), whose slope is itself times what it leaves of 1; times x slope_of_u. */
static ALWAYS_INLINE struct share sigmoid(float u, float x, float slope_of_u)
{
    float e = ghp_exponential(-fabsf(u)), upper = 1.0f / (1.0f + e), lower = e * upper;

    return (struct share){u < 0 ? lower : upper, x * (lower * upper) * slope_of_u};
}

/* The normal distribution's. */
static ALWAYS_INLINE struct share share_normal(float x)
{
    float e = ghp_exponential(-0.5f * x * x);
    float tail = 0.5f * e * ghp_scaled_erfc(fabsf(x) * 0.707106781f);

    return (struct share){x < 0 ? tail : 1.0f - tail, x * 0.398942280f * e};
}

/* (1 + tanh u) / 2 is the sigmoid of 2 u; u = sqrt(2 / pi) (x + 0.044715 x^3). */
static ALWAYS_INLINE struct share share_tanh(float x)
{
    const float twice = 1.59576912f, cube = 0.044715f;

    return sigmoid(twice * x * (1.0f + cube * x * x), x, twice * (1.0f + 3.0f * cube * x * x));
}

static ALWAYS_INLINE struct share share_silu(float x)
{
    return sigmoid(x, x, 1.0f);
}

/* A straight line from -3 to 3. */
static ALWAYS_INLINE struct share share_hard(float x)
{
    const float sixth = 1.0f / 6.0f;
    float share = x <= -3.0f ? 0.0f : x < 3.0f ? (x + 3.0f) * sixth : 1.0f;

    return (struct share){share, x > -3.0f && x < 3.0f ? x * sixth : 0.0f};
}

#define BODY "executor/backend/cpu/gelu.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_gelu[] = {
    {GHP_OP_GELU, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(gelu_forward, NULL), NULL},
    {GHP_OP_GELU, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(gelu_data, NULL), NULL},
    {GHP_OP_SILU, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(silu_forward, NULL), NULL},
    {GHP_OP_SILU, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(silu_data, NULL), NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(hard_swish_forward, NULL),
     NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(hard_swish_data, NULL),
     NULL},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). */

static ALWAYS_INLINE void KERNEL(forward)(const struct ghp_local *local,
                                          const struct ghp_kernel_arguments *args,
                                          struct ghp_share part, struct share share_of(float x))
{
    struct ghp_range at = ghp_share_of(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        y[i] = PUT(GET(x[i]) * share_of(GET(x[i])).value);
}

static ALWAYS_INLINE void KERNEL(data)(const struct ghp_local *local,
                                       const struct ghp_kernel_arguments *args,
                                       struct ghp_share part, struct share share_of(float x))
{
    struct ghp_range at = ghp_share_of(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0], *dy = args->at.dy;
    SCALAR *dx = args->at.dx[0];
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++) {
        struct share share = share_of(GET(x[i]));
        dx[i] = PUT(GET(dy[i]) * (share.value + share.rise));
    }
}

static void KERNEL(gelu_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    if (local->norm.gelu == GHP_GELU_TANH)
        KERNEL(forward)(local, args, part, share_tanh);
    else
        KERNEL(forward)(local, args, part, share_normal);
}

static void KERNEL(gelu_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    if (local->norm.gelu == GHP_GELU_TANH)
        KERNEL(data)(local, args, part, share_tanh);
    else
        KERNEL(data)(local, args, part, share_normal);
}

static void KERNEL(silu_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    KERNEL(forward)(local, args, part, share_silu);
}

static void KERNEL(silu_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    KERNEL(data)(local, args, part, share_silu);
}

static void KERNEL(hard_swish_forward)(const struct ghp_local *local,
                                       const struct ghp_kernel_arguments *args,
                                       struct ghp_share part)
{
    KERNEL(forward)(local, args, part, share_hard);
}

static void KERNEL(hard_swish_data)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_share part)
{
    KERNEL(data)(local, args, part, share_hard);
}

#endif
