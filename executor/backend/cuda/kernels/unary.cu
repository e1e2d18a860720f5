// executor/backend/cuda/kernels/unary.cu - functions of one element: relu, activation, gelu, silu, hard_swish,
// pointwise. A function says its value, and `back`, the gradient of its input: of y and dy where the backward pass reads the output,
// else of x and dy.
#include "executor/backend/cuda/kernels/elementwise.cuh"
#include "executor/backend/cuda/kernels/row.h"

namespace
{

struct relu {
    __device__ float value(float x) const
    {
        return x > 0 ? x : 0;
    }
    __device__ float back(float y, float dy) const
    {
        return y > 0 ? dy : 0;
    }
};

struct leaky_relu {
    float alpha;

    __device__ float value(float x) const
    {
        return x > 0 ? x : alpha * x;
    }
    __device__ float back(float y, float dy) const
    {
        return y > 0 ? dy : alpha * dy;
    }
};

struct sigmoid {
    __device__ float value(float x) const
    {
        return 1.0f / (1.0f + expf(-x));
    }
    __device__ float back(float y, float dy) const
    {
        return dy * y * (1.0f - y);
    }
};

struct hyperbolic_tangent {
    __device__ float value(float x) const
    {
        return tanhf(x);
    }
    __device__ float back(float y, float dy) const
    {
        return dy * (1.0f - y * y);
    }
};

struct elu {
    float alpha;

    __device__ float value(float x) const
    {
        return x > 0 ? x : alpha * expm1f(x);
    }
    __device__ float back(float y, float dy) const
    {
        return y > 0 ? dy : dy * (y + alpha);
    }
};

struct clip {
    float alpha, beta;

    __device__ float value(float x) const
    {
        return x < alpha ? alpha : x > beta ? beta : x;
    }
    __device__ float back(float y, float dy) const
    {
        return y > alpha && y < beta ? dy : 0;
    }
};

struct affine {
    float alpha, beta;

    __device__ float value(float x) const
    {
        return alpha * x + beta;
    }
    __device__ float back(float, float dy) const
    {
        return alpha * dy;
    }
};

struct gelu_erf { // 1 / sqrt(2) and 1 / sqrt(2 pi)
    __device__ float value(float x) const
    {
        return 0.5f * x * erfcf(-0.707106781f * x);
    }
    __device__ float back(float x, float dy) const
    {
        return dy * (0.5f * erfcf(-0.707106781f * x) + 0.398942280f * x * expf(-0.5f * x * x));
    }
};

struct gelu_tanh {
    // of sqrt(2 / pi) (x + 0.044715 x^3)
    __device__ static float tangent(float x)
    {
        return tanhf(0.797884561f * (x + 0.044715f * x * x * x));
    }
    __device__ float value(float x) const
    {
        return 0.5f * x * (1.0f + tangent(x));
    }
    __device__ float back(float x, float dy) const
    {
        float t = tangent(x);

        return dy * (0.5f * (1.0f + t) +
                     0.5f * x * (1.0f - t * t) * 0.797884561f * (1.0f + 0.134145f * x * x));
    }
};

struct silu {
    __device__ float value(float x) const
    {
        return x / (1.0f + expf(-x));
    }
    __device__ float back(float x, float dy) const
    {
        float s = 1.0f / (1.0f + expf(-x));

        return dy * (s + x * s * (1.0f - s));
    }
};

struct hard_swish {
    __device__ float value(float x) const
    {
        return x <= -3.0f ? 0 : x < 3.0f ? x * (x + 3.0f) * (1.0f / 6.0f) : x;
    }
    __device__ float back(float x, float dy) const
    {
        return x <= -3.0f ? 0 : x < 3.0f ? dy * (x * (1.0f / 3.0f) + 0.5f) : dy;
    }
};

struct exponential {
    __device__ float value(float x) const
    {
        return expf(x);
    }
    __device__ float back(float x, float dy) const
    {
        return dy * expf(x);
    }
};

struct raised {
    float exponent;

    __device__ float value(float x) const
    {
        return powf(x, exponent);
    }
    __device__ float back(float x, float dy) const
    {
        return exponent == 0 ? 0 : dy * exponent * powf(x, exponent - 1.0f);
    }
};

struct logarithm {
    __device__ float value(float x) const
    {
        return logf(x);
    }
    __device__ float back(float x, float dy) const
    {
        return dy / x;
    }
};

struct softplus {
    float threshold;

    __device__ float value(float x) const
    {
        return x > threshold ? x : fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    }
    __device__ float back(float x, float dy) const
    {
        return x > threshold ? dy : dy / (1.0f + expf(-x));
    }
};

struct magnitude {
    __device__ float value(float x) const
    {
        return fabsf(x);
    }
    __device__ float back(float x, float dy) const
    {
        return x > 0 ? dy : x < 0 ? -dy : 0;
    }
};

struct sine {
    __device__ float value(float x) const
    {
        return sinf(x);
    }
    __device__ float back(float x, float dy) const
    {
        return dy * cosf(x);
    }
};

struct cosine {
    __device__ float value(float x) const
    {
        return cosf(x);
    }
    __device__ float back(float x, float dy) const
    {
        return -dy * sinf(x);
    }
};

template <typename F> struct value_of {
    F f;

    __device__ float operator()(float x, float) const
    {
        return f.value(x);
    }
};

template <typename F> struct back_of {
    F f;

    __device__ float operator()(float at, float dy) const
    {
        return f.back(at, dy);
    }
};

struct pass { // what a row's function is called with
    struct ghp_launch launch;
    const struct ghp_local *local;
    const struct ghp_kernel_arguments *args;

    template <typename F> cudaError_t forward(F f) const
    {
        return map(launch, ghp_local_in_elements(local), args->at.x[0], nullptr, args->at.y,
                   value_of<F>{f});
    }
    template <typename F> cudaError_t backward(F f) const
    {
        const void *at = ghp_op_needs_input(local->op) ? args->at.x[0] : args->at.y;

        return map(launch, ghp_local_in_elements(local), at, args->at.dy, args->at.dx[0],
                   back_of<F>{f});
    }
};

template <typename F>
cudaError_t forward(struct ghp_launch launch, const struct ghp_local *local,
                    const struct ghp_kernel_arguments *args)
{
    return pass{launch, local, args}.forward(F{});
}

template <typename F>
cudaError_t backward(struct ghp_launch launch, const struct ghp_local *local,
                     const struct ghp_kernel_arguments *args)
{
    return pass{launch, local, args}.backward(F{});
}

// Calls run with the activation's function.
template <typename R> cudaError_t by_function(const struct ghp_activation &activation, R run)
{
    float alpha = (float)activation.alpha, beta = (float)activation.beta;

    switch (activation.function) {
    case GHP_FUNCTION_LEAKY_RELU: return run(leaky_relu{alpha});
    case GHP_FUNCTION_SIGMOID: return run(sigmoid{});
    case GHP_FUNCTION_TANH: return run(hyperbolic_tangent{});
    case GHP_FUNCTION_ELU: return run(elu{alpha});
    case GHP_FUNCTION_CLIP: return run(clip{alpha, beta});
    case GHP_FUNCTION_AFFINE: return run(affine{alpha, beta});
    case GHP_FUNCTION_COUNT: break;
    }
    return cudaErrorInvalidValue;
}

cudaError_t activation_forward(struct ghp_launch launch, const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args)
{
    return by_function(local->activation,
                       [&](auto f) { return pass{launch, local, args}.forward(f); });
}

cudaError_t activation_backward(struct ghp_launch launch, const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args)
{
    return by_function(local->activation,
                       [&](auto f) { return pass{launch, local, args}.backward(f); });
}

cudaError_t gelu_forward(struct ghp_launch launch, const struct ghp_local *local,
                         const struct ghp_kernel_arguments *args)
{
    pass p{launch, local, args};

    return local->norm.gelu == GHP_GELU_TANH ? p.forward(gelu_tanh{}) : p.forward(gelu_erf{});
}

cudaError_t gelu_backward(struct ghp_launch launch, const struct ghp_local *local,
                          const struct ghp_kernel_arguments *args)
{
    pass p{launch, local, args};

    return local->norm.gelu == GHP_GELU_TANH ? p.backward(gelu_tanh{}) : p.backward(gelu_erf{});
}

// Calls run with the function of a pointwise.
template <typename R> cudaError_t by_curve(const struct ghp_pointwise &by, R run)
{
    switch (by.curve) {
    case GHP_CURVE_EXP: return run(exponential{});
    case GHP_CURVE_POW: return run(raised{(float)by.exponent});
    case GHP_CURVE_LOG: return run(logarithm{});
    case GHP_CURVE_SOFTPLUS: return run(softplus{(float)by.threshold});
    case GHP_CURVE_ABS: return run(magnitude{});
    case GHP_CURVE_SIN: return run(sine{});
    case GHP_CURVE_COS: return run(cosine{});
    case GHP_CURVE_COUNT: break;
    }
    return cudaErrorInvalidValue;
}

cudaError_t pointwise_forward(struct ghp_launch launch, const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args)
{
    return by_curve(local->pointwise,
                    [&](auto f) { return pass{launch, local, args}.forward(f); });
}

cudaError_t pointwise_backward(struct ghp_launch launch, const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args)
{
    return by_curve(local->pointwise,
                    [&](auto f) { return pass{launch, local, args}.backward(f); });
}

} // namespace

extern "C" const struct ghp_cuda_row ghp_cuda_rows_unary[] = {
    {GHP_OP_RELU, GHP_PASS_FORWARD, forward<relu>, nullptr},
    {GHP_OP_RELU, GHP_PASS_BACKWARD_DATA, backward<relu>, nullptr},
    {GHP_OP_ACTIVATION, GHP_PASS_FORWARD, activation_forward, nullptr},
    {GHP_OP_ACTIVATION, GHP_PASS_BACKWARD_DATA, activation_backward, nullptr},
    {GHP_OP_GELU, GHP_PASS_FORWARD, gelu_forward, nullptr},
    {GHP_OP_GELU, GHP_PASS_BACKWARD_DATA, gelu_backward, nullptr},
    {GHP_OP_SILU, GHP_PASS_FORWARD, forward<silu>, nullptr},
    {GHP_OP_SILU, GHP_PASS_BACKWARD_DATA, backward<silu>, nullptr},
    {GHP_OP_HARD_SWISH, GHP_PASS_FORWARD, forward<hard_swish>, nullptr},
    {GHP_OP_HARD_SWISH, GHP_PASS_BACKWARD_DATA, backward<hard_swish>, nullptr},
    {GHP_OP_POINTWISE, GHP_PASS_FORWARD, pointwise_forward, nullptr},
    {GHP_OP_POINTWISE, GHP_PASS_BACKWARD_DATA, pointwise_backward, nullptr},
    {},
};
