/* executor/backend/reference/activations.c - relu, the functions of `activation`, gelu, silu, hard_swish and
 * the functions of `pointwise`: of each its value and its slope, number by number.
 *
 * Each slope of the first two follows from the output alone; at a corner it is the one towards 0. */
#include "executor/backend/reference/reference.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static double function_value(const struct ghp_activation *by, double x)
{
    switch (by->function) {
    case GHP_FUNCTION_LEAKY_RELU: return x > 0.0 ? x : by->alpha * x;
    case GHP_FUNCTION_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case GHP_FUNCTION_TANH: return tanh(x);
    case GHP_FUNCTION_ELU: return x > 0.0 ? x : by->alpha * (exp(x) - 1.0);
    case GHP_FUNCTION_CLIP: return x < by->alpha ? by->alpha : x > by->beta ? by->beta : x;
    case GHP_FUNCTION_AFFINE: return by->alpha * x + by->beta;
    case GHP_FUNCTION_COUNT: break;
    }
    return NAN;
}

static double function_slope(const struct ghp_activation *by, double y)
{
    switch (by->function) {
    case GHP_FUNCTION_LEAKY_RELU: return y > 0.0 ? 1.0 : by->alpha;
    case GHP_FUNCTION_SIGMOID: return y * (1.0 - y);
    case GHP_FUNCTION_TANH: return 1.0 - y * y;
    case GHP_FUNCTION_ELU: return y > 0.0 ? 1.0 : y + by->alpha;
    case GHP_FUNCTION_CLIP: return y > by->alpha && y < by->beta ? 1.0 : 0.0;
    case GHP_FUNCTION_AFFINE: return by->alpha;
    case GHP_FUNCTION_COUNT: break;
    }
    return NAN;
}

static double gelu_value(enum ghp_gelu gelu, double x)
{
    double u = sqrt(2.0 / pi) * (x + 0.044715 * x * x * x);

    return 0.5 * x * (gelu == GHP_GELU_ERF ? erfc(-x / sqrt(2.0)) : 1.0 + tanh(u));
}

/* The gate, and x times its slope. */
static double gelu_slope(enum ghp_gelu gelu, double x)
{
    double gate = 0.5 * erfc(-x / sqrt(2.0)), slope = exp(-0.5 * x * x) / sqrt(2.0 * pi);

    if (gelu == GHP_GELU_TANH) {
        double t = tanh(sqrt(2.0 / pi) * (x + 0.044715 * x * x * x));

        gate = 0.5 * (1.0 + t);
        slope = 0.5 * (1.0 - t * t) * sqrt(2.0 / pi) * (1.0 + 3.0 * 0.044715 * x * x);
    }
    return gate + x * slope;
}

static double silu_slope(double x)
{
    double s = 1.0 / (1.0 + exp(-x));

    return s + x * s * (1.0 - s);
}

static double curve_value(const struct ghp_pointwise *by, double x)
{
    switch (by->curve) {
    case GHP_CURVE_EXP: return exp(x);
    case GHP_CURVE_POW: return pow(x, by->exponent);
    case GHP_CURVE_LOG: return log(x);
    case GHP_CURVE_SOFTPLUS: return x > by->threshold ? x : fmax(x, 0.0) + log1p(exp(-fabs(x)));
    case GHP_CURVE_ABS: return fabs(x);
    case GHP_CURVE_SIN: return sin(x);
    case GHP_CURVE_COS: return cos(x);
    case GHP_CURVE_COUNT: break;
    }
    return NAN;
}

static double curve_slope(const struct ghp_pointwise *by, double x)
{
    switch (by->curve) {
    case GHP_CURVE_EXP: return exp(x);
    case GHP_CURVE_POW: /* a constant is flat at 0, too */
        return by->exponent == 0.0 ? 0.0 : by->exponent * pow(x, by->exponent - 1.0);
    case GHP_CURVE_LOG: return 1.0 / x;
    case GHP_CURVE_SOFTPLUS: return x > by->threshold ? 1.0 : 1.0 / (1.0 + exp(-x));
    case GHP_CURVE_ABS: return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
    case GHP_CURVE_SIN: return cos(x);
    case GHP_CURVE_COS: return -sin(x);
    case GHP_CURVE_COUNT: break;
    }
    return NAN;
}

static double value(const struct ghp_local *local, double x)
{
    if (local->op == GHP_OP_RELU) return x > 0.0 ? x : 0.0;
    if (local->op == GHP_OP_ACTIVATION) return function_value(&local->activation, x);
    if (local->op == GHP_OP_GELU) return gelu_value(local->norm.gelu, x);
    if (local->op == GHP_OP_SILU) return x / (1.0 + exp(-x));
    if (local->op == GHP_OP_HARD_SWISH) return x * fmin(fmax(x + 3.0, 0.0), 6.0) / 6.0;
    return curve_value(&local->pointwise, x);
}

static bool follows_from_output(const struct ghp_local *local)
{
    return local->op == GHP_OP_RELU || local->op == GHP_OP_ACTIVATION;
}

/* at: the output if the slope follows from it, else the input */
static double slope(const struct ghp_local *local, double at)
{
    if (local->op == GHP_OP_RELU) return at > 0.0 ? 1.0 : 0.0;
    if (local->op == GHP_OP_ACTIVATION) return function_slope(&local->activation, at);
    if (local->op == GHP_OP_GELU) return gelu_slope(local->norm.gelu, at);
    if (local->op == GHP_OP_SILU) return silu_slope(at);
    if (local->op == GHP_OP_HARD_SWISH) return at <= -3.0 ? 0.0 : at < 3.0 ? at / 3.0 + 0.5 : 1.0;
    return curve_slope(&local->pointwise, at);
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        y[i] = value(local, x[i]);
}

static void backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *at = follows_from_output(local) ? args->at.y : args->at.x[0], *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        dx[i] = dy[i] * slope(local, at[i]);
}

const struct ghp_reference_kernel ghp_reference_activations[] = {
    {GHP_OP_RELU, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_RELU, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_Y | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_Y | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_GELU, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_GELU, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_SILU, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_SILU, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_POINTWISE, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_POINTWISE, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {.run = NULL},
};
