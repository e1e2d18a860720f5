/* executor/backend/cpu/unary.c - functions of each element whose derivative its input tells: gelu, silu and hard_swish,
 * which are x times a gate that rises from 0 to 1, and those of pointwise.
 *
 * Loops become vectors, but for powers other than 2, -1 and 1/2, logarithms, sines and cosines.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "executor/backend/cpu/exponential.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>

enum { GRAIN = 64 }; /* elements: parts begin on cache lines of their own in either precision */

struct gate { /* of x, and its slope times x */
    float value, rise;
};

/* 1 / (1 + e^-u), whose slope is itself times what it leaves of 1; times x slope_of_u. */
static ALWAYS_INLINE struct gate sigmoid(float u, float x, float slope_of_u)
{
    float e = ghp_exponential(-fabsf(u)), upper = 1.0f / (1.0f + e), lower = e * upper;

    return (struct gate){u < 0 ? lower : upper, x * (lower * upper) * slope_of_u};
}

/* The normal distribution's. */
static ALWAYS_INLINE struct gate gate_normal(float x)
{
    float e = ghp_exponential(-0.5f * x * x);
    float tail = 0.5f * e * ghp_scaled_erfc(fabsf(x) * 0.707106781f);

    return (struct gate){x < 0 ? tail : 1.0f - tail, x * 0.398942280f * e};
}

/* (1 + tanh u) / 2 is the sigmoid of 2 u; u = sqrt(2 / pi) (x + 0.044715 x^3). */
static ALWAYS_INLINE struct gate gate_tanh(float x)
{
    const float twice = 1.59576912f, cube = 0.044715f;

    return sigmoid(twice * x * (1.0f + cube * x * x), x, twice * (1.0f + 3.0f * cube * x * x));
}

static ALWAYS_INLINE struct gate gate_silu(float x)
{
    return sigmoid(x, x, 1.0f);
}

/* A straight line from -3 to 3. */
static ALWAYS_INLINE struct gate gate_hard(float x)
{
    const float sixth = 1.0f / 6.0f;
    float gate = x <= -3.0f ? 0.0f : x < 3.0f ? (x + 3.0f) * sixth : 1.0f;

    return (struct gate){gate, x > -3.0f && x < 3.0f ? x * sixth : 0.0f};
}

static ALWAYS_INLINE float exp_of(float x)
{
    return x > 88.0f ? (float)exp((double)x) : ghp_exponential(x);
}

static ALWAYS_INLINE float softplus_of(float x, float threshold)
{
    return x > threshold ? x : fmaxf(x, 0) + log1pf(ghp_exponential(-fabsf(x)));
}

/* The sigmoid. */
static ALWAYS_INLINE float softplus_slope(float x, float threshold)
{
    float e = ghp_exponential(-fabsf(x)), upper = 1.0f / (1.0f + e);

    return x > threshold ? 1.0f : x < 0 ? e * upper : upper;
}

static ALWAYS_INLINE float abs_slope(float x)
{
    return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
}

static ALWAYS_INLINE float pow_slope(float x, float exponent)
{
    return exponent == 0 ? 0.0f : exponent * powf(x, exponent - 1.0f);
}

#define BODY "executor/backend/cpu/unary.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_unary[] = {
    {GHP_OP_GELU, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(gelu_forward, NULL), NULL},
    {GHP_OP_GELU, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(gelu_data, NULL), NULL},
    {GHP_OP_SILU, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(silu_forward, NULL), NULL},
    {GHP_OP_SILU, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(silu_data, NULL), NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(hard_swish_forward, NULL),
     NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(hard_swish_data, NULL),
     NULL},
    {GHP_OP_POINTWISE, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(pointwise_forward, NULL),
     NULL},
    {GHP_OP_POINTWISE, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(pointwise_data, NULL),
     NULL},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). */

static ALWAYS_INLINE void KERNEL(forward)(const struct ghp_local *local,
                                          const struct ghp_kernel_arguments *args,
                                          struct ghp_part part, struct gate gate_of(float x))
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        y[i] = PUT(GET(x[i]) * gate_of(GET(x[i])).value);
}

static ALWAYS_INLINE void KERNEL(data)(const struct ghp_local *local,
                                       const struct ghp_kernel_arguments *args,
                                       struct ghp_part part, struct gate gate_of(float x))
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0], *dy = args->at.dy;
    SCALAR *dx = args->at.dx[0];
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++) {
        struct gate gate = gate_of(GET(x[i]));
        dx[i] = PUT(GET(dy[i]) * (gate.value + gate.rise));
    }
}

static void KERNEL(gelu_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    if (local->norm.gelu == GHP_GELU_TANH)
        KERNEL(forward)(local, args, part, gate_tanh);
    else
        KERNEL(forward)(local, args, part, gate_normal);
}

static void KERNEL(gelu_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    if (local->norm.gelu == GHP_GELU_TANH)
        KERNEL(data)(local, args, part, gate_tanh);
    else
        KERNEL(data)(local, args, part, gate_normal);
}

static void KERNEL(silu_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(forward)(local, args, part, gate_silu);
}

static void KERNEL(silu_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(data)(local, args, part, gate_silu);
}

static void KERNEL(hard_swish_forward)(const struct ghp_local *local,
                                       const struct ghp_kernel_arguments *args,
                                       struct ghp_part part)
{
    KERNEL(forward)(local, args, part, gate_hard);
}

static void KERNEL(hard_swish_data)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(data)(local, args, part, gate_hard);
}

/* One loop: `value` is said of x, the element. */
#define LOOP(value)                                                                                \
    for (int64_t i = at.first; i < at.end; i++) {                                                  \
        float x = GET(from[i]);                                                                    \
        to[i] = PUT(value);                                                                        \
    }                                                                                              \
    break

static void KERNEL(pow_forward)(const SCALAR *from, SCALAR *to, struct ghp_range at, float exponent)
{
    switch (exponent == 2 ? 2 : exponent == -1 ? -1 : exponent == 0.5f ? 0 : 1) {
    case 2: LOOP(x * x);
    case -1: LOOP(1.0f / x);
    case 0: LOOP(sqrtf(x));
    default: LOOP(powf(x, exponent));
    }
}

static void KERNEL(pointwise_forward)(const struct ghp_local *local,
                                      const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *from = args->at.x[0];
    SCALAR *to = args->at.y;
    float threshold = (float)local->pointwise.threshold;
    switch (local->pointwise.curve) {
    case GHP_CURVE_EXP: LOOP(exp_of(x));
    case GHP_CURVE_POW: KERNEL(pow_forward)(from, to, at, (float)local->pointwise.exponent); break;
    case GHP_CURVE_LOG: LOOP(logf(x));
    case GHP_CURVE_SOFTPLUS: LOOP(softplus_of(x, threshold));
    case GHP_CURVE_ABS: LOOP(fabsf(x));
    case GHP_CURVE_SIN: LOOP(sinf(x));
    case GHP_CURVE_COS: LOOP(cosf(x));
    case GHP_CURVE_COUNT: break;
    }
}

#undef LOOP
#define LOOP(slope)                                                                                \
    for (int64_t i = at.first; i < at.end; i++) {                                                  \
        float x = GET(from[i]);                                                                    \
        to[i] = PUT(GET(dy[i]) * (slope));                                                         \
    }                                                                                              \
    break

static void KERNEL(pow_data)(const SCALAR *from, const SCALAR *dy, SCALAR *to, struct ghp_range at,
                             float exponent)
{
    switch (exponent == 2 ? 2 : exponent == -1 ? -1 : exponent == 0.5f ? 0 : 1) {
    case 2: LOOP(2.0f * x);
    case -1: LOOP(-1.0f / (x * x));
    case 0: LOOP(0.5f / sqrtf(x));
    default: LOOP(pow_slope(x, exponent));
    }
}

static void KERNEL(pointwise_data)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *from = args->at.x[0], *dy = args->at.dy;
    SCALAR *to = args->at.dx[0];
    float threshold = (float)local->pointwise.threshold;
    switch (local->pointwise.curve) {
    case GHP_CURVE_EXP: LOOP(exp_of(x));
    case GHP_CURVE_POW: KERNEL(pow_data)(from, dy, to, at, (float)local->pointwise.exponent); break;
    case GHP_CURVE_LOG: LOOP(1.0f / x);
    case GHP_CURVE_SOFTPLUS: LOOP(softplus_slope(x, threshold));
    case GHP_CURVE_ABS: LOOP(abs_slope(x));
    case GHP_CURVE_SIN: LOOP(cosf(x));
    case GHP_CURVE_COS: LOOP(-sinf(x));
    case GHP_CURVE_COUNT: break;
    }
}

#undef LOOP
#endif
