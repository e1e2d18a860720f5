/* executor/backend/cpu/gelu.c - gelu and silu: x times a share that rises from 0 to 1.
 *
 * Their loops have no branches, so that they become vectors. */
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

#define BODY "executor/backend/cpu/gelu_body.h"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_gelu[] = {
    {GHP_OP_GELU, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(gelu_forward, NULL), NULL},
    {GHP_OP_GELU, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(gelu_data, NULL), NULL},
    {GHP_OP_SILU, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(silu_forward, NULL), NULL},
    {GHP_OP_SILU, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(silu_data, NULL), NULL},
    {.name = NULL},
};
