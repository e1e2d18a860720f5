/* tests/executor/engine/test_onnx_functions.c - functions of each element that become several layers, or that are
 * written out in several nodes, compute what they mean. */
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

static double size(const float *x, int i)
{
    return fabs((double)x[i]);
}

static double at_most_one(const float *x, int i)
{
    return x[i] < 1 ? (double)x[i] : 1;
}

/* x over its row's length. */
static double unit(const float *x, int i)
{
    double sum = 0;

    for (int k = 0; k < WIDE; k++)
        sum += (double)x[k] * (double)x[k];
    return (double)x[i] / sqrt(sum);
}

static double times_sizes(const float *x, int i)
{
    double sum = 0;

    for (int k = 0; k < WIDE; k++)
        sum += fabs((double)x[k]);
    return (double)x[i] * sum;
}

static double times_least(const float *x, int i)
{
    double least = (double)x[0];

    for (int k = 1; k < WIDE; k++)
        least = fmin(least, (double)x[k]);
    return (double)x[i] * least;
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

/* x with what a reduction makes of its row. */
static void put_reduced(const char *reduction, const char *op)
{
    static const int64_t last[1] = {-1};

    begin(13, BATCH, WIDE, 0, 0);
    list(node(reduction, "all", "x", NULL), "axes", last, 1);
    node(op, "y", "x", "all");
}

static void check_reductions(void)
{
    put_reduced("ReduceL2", "Div");
    means("y", GHP_OP_POINTWISE, 8, unit);
    put_reduced("ReduceL1", "Mul");
    means("y", GHP_OP_POINTWISE, 6, times_sizes);
    put_reduced("ReduceMin", "Mul");
    means("y", GHP_OP_ACTIVATION, 6, times_least);
}

static void check_extremes(void)
{
    begin(13, BATCH, WIDE, 0, 0);
    node("Neg", "below", "x", NULL);
    node("Max", "y", "x", "below");
    means("y", GHP_OP_ACTIVATION, 5, size);
    begin(13, BATCH, WIDE, 0, 0);
    number_of("one", 1);
    node("Min", "y", "one", "x");
    means("y", GHP_OP_ACTIVATION, 1, at_most_one);
    begin(13, BATCH, WIDE, 0, 0);
    weights_of("several", weights);
    node("Max", "y", "x", "several");
    refused(path, "y", GHP_ERR_INPUT, "compares a tensor with several numbers");
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

/* ---- of parameters ---- */

static const float square[WIDE * WIDE] = {1,  2, -1,    0.5f, 3, 0, 1,  -2,
                                          -1, 1, 0.25f, 4,    2, 2, -3, 1};

static double over_parameter(const float *x, int i)
{
    return (double)x[i] / (double)weights[i];
}

static double less_parameter(const float *x, int i)
{
    return (double)x[i] - (double)weights[i];
}

static double times_exponential(const float *x, int i)
{
    return (double)x[i] * exp((double)weights[i]);
}

static double times_squares(const float *x, int i)
{
    double sum = 0;

    for (int k = 0; k < WIDE; k++)
        sum += (double)x[k] * pow((double)square[k * WIDE + i], 2);
    return sum;
}

/* The product with a row over its length, and one. */
static double cosine(const float *x, int i)
{
    double sum = 0, all = 0;

    for (int k = 0; k < WIDE; k++) {
        sum += (double)x[k] * (double)square[i * WIDE + k];
        all += pow((double)square[i * WIDE + k], 2);
    }
    return sum / sqrt(all) + (double)weights[i];
}

static void begin_parameters(void)
{
    begin(13, BATCH, WIDE, 0, 0);
    graph.producer = "pytorch";
    weights_of("t.weight", weights);
    constant("w.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){WIDE, WIDE}, square);
    number_of("onnx::two", 2);
}

static void check_parameters(void)
{
    struct ghp_onnx_node *at;

    begin_parameters();
    node("Div", "y", "x", "t.weight");
    means("y", GHP_OP_PARAMETER, 3, over_parameter);
    begin_parameters();
    node("Sub", "y", "x", "t.weight");
    means("y", GHP_OP_PARAMETER, 3, less_parameter);
    begin_parameters();
    node("Exp", "factors", "t.weight", NULL);
    node("Mul", "y", "x", "factors");
    means("y", GHP_OP_PARAMETER, 3, times_exponential);
    begin_parameters();
    node("Pow", "squares", "w.weight", "onnx::two");
    node("MatMul", "y", "x", "squares");
    means("y", GHP_OP_PARAMETER, 7, times_squares);
    begin_parameters();
    number(node("LpNormalization", "units", "w.weight", NULL), "axis", -1);
    at = node3("Gemm", "y", "x", "units", "t.weight");
    number(at, "transB", 1);
    means("y", GHP_OP_PARAMETER, 10, cosine);
    number(at, "transA", 1);
    refused(path, "y", GHP_ERR_INPUT, "transposes its samples");
    begin_parameters();
    node("Mul", "squares", "t.weight", "t.weight");
    node("Mul", "y", "x", "squares");
    refused(path, "y", GHP_ERR_INPUT, "computes from the parameter 't.weight'");
}

static double half_parameter(const float *x, int i)
{
    return i < 2 ? (double)x[i] : (double)weights[i - 2];
}

/* A constant after a tensor. */
static void check_joined(void)
{
    static const int64_t first[2] = {0, 1};

    begin_parameters();
    constant("first", GHP_ONNX_INT64, 1, (int64_t[]){2}, first);
    constant("u.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){1, 2}, weights);
    number(node("Gather", "half", "x", "first"), "axis", 1);
    number(node("Concat", "y", "half", "u.weight"), "axis", 1);
    means("y", GHP_OP_VIEW, 3, half_parameter);
}

/* ---- patches ---- */

static double overlapping(const float *x, int i)
{
    return (double)x[i - i / 2];
}

static void check_patches(void)
{
    static const int64_t places[4] = {0, 1, 1, 2}, uneven[4] = {0, 1, 1, 3};

    for (int way = 0; way < 2; way++) {
        begin(13, BATCH, WIDE, 0, 0);
        constant("places", GHP_ONNX_INT64, 2, (int64_t[]){2, 2}, way == 0 ? places : uneven);
        number(node("Gather", "patches", "x", "places"), "axis", 1);
        node("Flatten", "y", "patches", NULL);
        if (way == 0)
            means("y", GHP_OP_VIEW, 1, overlapping);
        else
            refused(path, "y", GHP_ERR_INPUT, "that are not evenly spaced along each of its axes");
    }
}

CHECK_TEST(onnx_functions)
{
    begin_meanings("functions");
    check_functions();
    check_reductions();
    check_extremes();
    check_parameters();
    check_joined();
    check_patches();
    unlink(path);
    return check_end();
}
