/* executor/backend/reference/activations.c - relu, the functions of `activation`, gelu, silu, hard_swish and
 * the functions of `pointwise`.
 *
 * Each slope of the first two follows from the output alone; at a corner it is the one towards 0. */
#include "executor/backend/reference/reference.h"

#include <math.h>

static double relu(const struct ghp_activation *by, double x)
{
    (void)by;
    return x > 0.0 ? x : 0.0;
}

static double relu_slope(const struct ghp_activation *by, double y)
{
    (void)by;
    return y > 0.0 ? 1.0 : 0.0;
}

static double leaky_relu(const struct ghp_activation *by, double x)
{
    return x > 0.0 ? x : by->alpha * x;
}

static double leaky_relu_slope(const struct ghp_activation *by, double y)
{
    return y > 0.0 ? 1.0 : by->alpha;
}

static double sigmoid(const struct ghp_activation *by, double x)
{
    (void)by;
    return 1.0 / (1.0 + exp(-x));
}

static double sigmoid_slope(const struct ghp_activation *by, double y)
{
    (void)by;
    return y * (1.0 - y);
}

static double hyperbolic_tangent(const struct ghp_activation *by, double x)
{
    (void)by;
    return tanh(x);
}

static double hyperbolic_tangent_slope(const struct ghp_activation *by, double y)
{
    (void)by;
    return 1.0 - y * y;
}

static double elu(const struct ghp_activation *by, double x)
{
    return x > 0.0 ? x : by->alpha * (exp(x) - 1.0);
}

static double elu_slope(const struct ghp_activation *by, double y)
{
    return y > 0.0 ? 1.0 : y + by->alpha;
}

static double clip(const struct ghp_activation *by, double x)
{
    return x < by->alpha ? by->alpha : x > by->beta ? by->beta : x;
}

static double clip_slope(const struct ghp_activation *by, double y)
{
    return y > by->alpha && y < by->beta ? 1.0 : 0.0;
}

static double affine(const struct ghp_activation *by, double x)
{
    return by->alpha * x + by->beta;
}

static double affine_slope(const struct ghp_activation *by, double y)
{
    (void)y;
    return by->alpha;
}

struct function {
    double (*value)(const struct ghp_activation *by, double x);
    double (*slope)(const struct ghp_activation *by, double y);
};

static const struct function functions[GHP_FUNCTION_COUNT] = {
    [GHP_FUNCTION_LEAKY_RELU] = {leaky_relu, leaky_relu_slope},
    [GHP_FUNCTION_SIGMOID] = {sigmoid, sigmoid_slope},
    [GHP_FUNCTION_TANH] = {hyperbolic_tangent, hyperbolic_tangent_slope},
    [GHP_FUNCTION_ELU] = {elu, elu_slope},
    [GHP_FUNCTION_CLIP] = {clip, clip_slope},
    [GHP_FUNCTION_AFFINE] = {affine, affine_slope},
};

static void apply(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                  struct function function)
{
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        y[i] = function.value(&local->activation, x[i]);
}

static void apply_slope(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        struct function function)
{
    const double *y = args->at.y, *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        dx[i] = dy[i] * function.slope(&local->activation, y[i]);
}

static void relu_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    apply(local, args, (struct function){relu, relu_slope});
}

static void relu_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    apply_slope(local, args, (struct function){relu, relu_slope});
}

static void activation_forward(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args)
{
    apply(local, args, functions[local->activation.function]);
}

static void activation_backward(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args)
{
    apply_slope(local, args, functions[local->activation.function]);
}

/* ---- gelu ---- */

static const double pi = 3.14159265358979323846;

static void gelu_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++) {
        double u = sqrt(2.0 / pi) * (x[i] + 0.044715 * x[i] * x[i] * x[i]);

        y[i] = 0.5 * x[i] *
               (local->norm.gelu == GHP_GELU_ERF ? erfc(-x[i] / sqrt(2.0)) : 1.0 + tanh(u));
    }
}

/* The share below x, and x times its slope. */
static void gelu_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++) {
        double share = 0.5 * erfc(-x[i] / sqrt(2.0)),
               slope = exp(-0.5 * x[i] * x[i]) / sqrt(2.0 * pi);

        if (local->norm.gelu == GHP_GELU_TANH) {
            double t = tanh(sqrt(2.0 / pi) * (x[i] + 0.044715 * x[i] * x[i] * x[i]));

            share = 0.5 * (1.0 + t);
            slope = 0.5 * (1.0 - t * t) * sqrt(2.0 / pi) * (1.0 + 3.0 * 0.044715 * x[i] * x[i]);
        }
        dx[i] = dy[i] * (share + x[i] * slope);
    }
}

/* ---- silu ---- */

static void silu_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        y[i] = x[i] / (1.0 + exp(-x[i]));
}

static void silu_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++) {
        double s = 1.0 / (1.0 + exp(-x[i]));

        dx[i] = dy[i] * (s + x[i] * s * (1.0 - s));
    }
}

/* ---- hard_swish ---- */

static void hard_swish_forward(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        y[i] = x[i] * fmin(fmax(x[i] + 3.0, 0.0), 6.0) / 6.0;
}

static void hard_swish_backward(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        dx[i] = dy[i] * (x[i] <= -3.0 ? 0.0 : x[i] < 3.0 ? x[i] / 3.0 + 0.5 : 1.0);
}

/* ---- pointwise ---- */

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

static void pointwise_forward(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        y[i] = curve_value(&local->pointwise, x[i]);
}

static void pointwise_backward(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        dx[i] = dy[i] * curve_slope(&local->pointwise, x[i]);
}

const struct ghp_reference_kernel ghp_reference_activations[] = {
    {GHP_OP_RELU, GHP_PASS_FORWARD, relu_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_RELU, GHP_PASS_BACKWARD_DATA, relu_backward, GHP_REFERENCE_Y | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_FORWARD, activation_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y,
     NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_BACKWARD_DATA, activation_backward,
     GHP_REFERENCE_Y | GHP_REFERENCE_DY, GHP_REFERENCE_DX, NULL},
    {GHP_OP_GELU, GHP_PASS_FORWARD, gelu_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_GELU, GHP_PASS_BACKWARD_DATA, gelu_backward, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_SILU, GHP_PASS_FORWARD, silu_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_SILU, GHP_PASS_BACKWARD_DATA, silu_backward, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_FORWARD, hard_swish_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y,
     NULL},
    {GHP_OP_HARD_SWISH, GHP_PASS_BACKWARD_DATA, hard_swish_backward,
     GHP_REFERENCE_X | GHP_REFERENCE_DY, GHP_REFERENCE_DX, NULL},
    {GHP_OP_POINTWISE, GHP_PASS_FORWARD, pointwise_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_POINTWISE, GHP_PASS_BACKWARD_DATA, pointwise_backward,
     GHP_REFERENCE_X | GHP_REFERENCE_DY, GHP_REFERENCE_DX, NULL},
    {.run = NULL},
};
