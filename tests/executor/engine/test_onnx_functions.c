/* tests/executor/engine/test_onnx_functions.c - functions of each element that become several layers, or that are written
 * out in several nodes, compute what they mean. */
#include "tests/executor/onnx_meaning.h"

static double log_sigmoid(const float *x, int i)
{
    return -log1p(exp(-(double)x[i]));
}

static double bent(const float *x, int i)
{
    return x[i] > 1 ? (double)x[i] : log(1 + exp(2 * (double)x[i])) / 2;
}

static double mish(const float *x, int i)
{
    return (double)x[i] * tanh(log1p(exp((double)x[i])));
}

static double celu(const float *x, int i)
{
    return x[i] > 0 ? (double)x[i] : 2 * expm1((double)x[i] / 2);
}

static double sloped(const float *x, int i)
{
    return (double)x[i] * (x[i] > 0 ? 1 : (double)weights[i]);
}

static double quotient(const float *x, int i)
{
    return (double)x[i] / (1 + (double)x[i] * (double)x[i]);
}

static double one_less(const float *x, int i)
{
    return exp((double)x[i]) - fabs((double)x[i]);
}

/* PyTorch's softplus with beta 2 and a threshold of 2, as its exporter writes it. */
static void put_bent(float by)
{
    begin(18, BATCH, WIDE, 0, 0);
    number_of("beta", 2);
    number_of("back", by);
    number_of("threshold", 2);
    node("Mul", "scaled", "x", "beta");
    node("Softplus", "smooth", "scaled", NULL);
    node("Div", "plus", "smooth", "back");
    node("Greater", "large", "scaled", "threshold");
    node3("Where", "y", "large", "x", "plus");
}

static void check_functions(void)
{
    begin(13, BATCH, WIDE, 0, 0);
    node("Sigmoid", "share", "x", NULL);
    node("Log", "y", "share", NULL);
    means("y", GHP_OP_ACTIVATION, 3, log_sigmoid);
    put_bent(2);
    means("y", GHP_OP_ACTIVATION, 3, bent);
    put_bent(3); /* not continued by x */
    refused(path, "y", GHP_ERR_INPUT, "(Greater, opset 18)");
    begin(18, BATCH, WIDE, 0, 0);
    node("Mish", "y", "x", NULL);
    means("y", GHP_OP_POINTWISE, 3, mish);
    begin(13, BATCH, WIDE, 0, 0);
    put_real(node("Celu", "y", "x", NULL), "alpha", 2);
    means("y", GHP_OP_ACTIVATION, 3, celu);
    begin(13, BATCH, WIDE, 0, 0);
    weights_of("slope", weights);
    node("PRelu", "y", "x", "slope");
    means("y", GHP_OP_RELU, 4, sloped);
    begin(13, BATCH, WIDE, 0, 0); /* of two tensors */
    number_of("one", 1);
    number_of("two", 2);
    node("Pow", "square", "x", "two");
    node("Add", "more", "square", "one");
    node("Div", "y", "x", "more");
    means("y", GHP_OP_POINTWISE, 4, quotient);
    begin(13, BATCH, WIDE, 0, 0);
    node("Exp", "exp", "x", NULL);
    node("Abs", "abs", "x", NULL);
    node("Sub", "y", "exp", "abs");
    means("y", GHP_OP_POINTWISE, 4, one_less);
    begin(13, BATCH, WIDE, 0, 0); /* an exponent for each element */
    weights_of("exponents", weights);
    node("Pow", "y", "x", "exponents");
    refused(path, "y", GHP_ERR_INPUT, "has several exponents");
}

CHECK_TEST(onnx_functions)
{
    begin_meanings("functions");
    check_functions();
    unlink(path);
    return check_end();
}
